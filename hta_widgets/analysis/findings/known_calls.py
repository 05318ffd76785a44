"""Rules about long calls of the host that need not be where they are: DDP's search for unused parameters, and
checkpoints that are written while devices wait."""

from __future__ import annotations

import re
from functools import partial
from typing import Final

from hta_widgets.analysis.core.claim import Claim, say
from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.core.longest import longest_row
from hta_widgets.analysis.device_time.busy import busy
from hta_widgets.analysis.findings.call_time import open_time
from hta_widgets.analysis.findings.finding import Finding, severity_of
from hta_widgets.analysis.findings.idle_rules import idle_device, idle_finding
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.loss import lost_on
from hta_widgets.analysis.findings.rule import GETS_AHEAD, Change, idle_rule, never
from hta_widgets.analysis.idle.causes import rows_named
from hta_widgets.analysis.replay import edits
from hta_widgets.arrays import Int64
from hta_widgets.trace.rank_trace import RankTrace

_SEARCHES: Final = r"^torch\.distributed\.ddp\.reducer::search_unused_parameters$"
_SAVES: Final = (
    r"(?:^|/)(?:torch/serialization|torch/distributed/checkpoint/state_dict_saver)\.py\(\d+\): save$"
    r"|(?:^|/)safetensors/torch\.py\(\d+\): save_file$"
)


def _judge(pattern: str, doing: str, advice: str, inputs: Inputs) -> Finding | None:
    frame = inputs.temporal
    if frame.empty:
        return None
    time = {rank: inputs.of(rank, _without_work, pattern) for rank in frame["rank"].tolist()}
    loss = lost_on(frame, {rank: each.length for rank, each in time.items()})
    if loss is None or not severity_of(loss.share_pct):
        return None
    rank_trace = inputs.trace.rank(loss.worst)
    row = longest_row(rank_trace, _calls(rank_trace, pattern))
    names = sorted(filter(re.compile(pattern).search, rank_trace.names))
    longest, about = int(rank_trace.dur[row]), {"names": names}
    text = say(
        f"{{who}} without compute and communication {{lost}} while the host {doing}. "
        "The longest call takes {longest}.",
        who=idle_device(loss, "most_without_work_in", names=names),
        lost=inputs.time_lost("without_work_in", loss.share_pct, loss.cost_ns, loss.ranks, names=names),
        longest=Claim("longest_of_calls", longest, "ns", ranks=(loss.worst,), about=about),
    )
    gone = [edits.without(edits.exactly(name)) for name in names]
    change = Change("without these calls", lambda _: gone, GETS_AHEAD)
    return idle_finding(inputs, loss, time, text, advice, row, change=change)


def _without_work(inputs: Inputs, rank: int, pattern: str) -> Intervals:
    """When a device neither computes nor communicates while the host is in these calls."""
    rank_trace = inputs.trace.rank(rank)
    time = open_time(rank_trace, _calls(rank_trace, pattern))
    if not len(time):
        return time
    work = busy(rank_trace, inputs.scope)
    return (time & inputs.judged_time(rank)) - work.compute - work.communication


def _calls(rank_trace: RankTrace, pattern: str) -> Int64:
    rows = rows_named(rank_trace, re.compile(pattern).search)
    return rows[~rank_trace.is_device[rows]]


RULES = (
    idle_rule(
        topic="unused_parameters",
        title="Waiting for DDP's search for unused parameters",
        label="Unused parameters",
        cause="DDP's search for unused parameters",
        judge=partial(
            _judge,
            _SEARCHES,
            "searches the graph for unused parameters, as find_unused_parameters=True asks DDP to",
            "Set find_unused_parameters=False if every step uses all parameters. "
            "Set static_graph=True if the same ones are unused in every step.",
        ),
        applies=lambda inputs: inputs.has_ddp,
        risk="DDP then fails in a step that leaves a parameter without a gradient.",
        needs="Parameters that take part in each step, or the same ones in all steps.",
        wrong_if="Other parameters are used from step to step: then DDP needs the search.",
    ),
    idle_rule(
        topic="checkpoints",
        title="Waiting for checkpoints to be saved",
        label="Saving checkpoints",
        cause="saving checkpoints",
        judge=partial(
            _judge,
            _SAVES,
            "saves a file",
            "Save less often, or copy the state to the host and write it in the background: "
            "torch.distributed.checkpoint.async_save.",
        ),
        applies=never,
        risk="A copy of the state takes memory of the host until it is written.",
        needs="Memory of the host for the state.",
        wrong_if="The job saves less often than in these steps.",
    ),
)
