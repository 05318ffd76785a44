"""The rule about an optimizer that updates parameters on the host, while the device waits."""

from __future__ import annotations

import re
from typing import Final

from hta_widgets.analysis.core.claim import Claim, say
from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.core.longest import longest_name
from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.findings.call_time import open_time
from hta_widgets.analysis.findings.callers import begins_in
from hta_widgets.analysis.findings.finding import Evidence, Finding
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.loss import lost_on_ranks
from hta_widgets.analysis.findings.rule import Change, idle_rule
from hta_widgets.analysis.idle.causes import rows_named
from hta_widgets.analysis.idle.places import short_place
from hta_widgets.analysis.replay import edits
from hta_widgets.arrays import Int64
from hta_widgets.formatting import brief
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.rank_trace import RankTrace

# PyTorch's range around any optimizer, and functions of DeepSpeed's for the host.
_UPDATES: Final = re.compile(r"^Optimizer\.step#|cpu_(?:adam|adagrad|lion)\.py\(\d+\): step$")
_LAUNCHES: Final = re.compile("launch", re.IGNORECASE)
_ADVICE: Final = (
    "Keep the optimizer's states on the device if they fit there: sharded over the ranks (FSDP, ZeRO), or in "
    "8 bits. Else offload only a part of them (DeepSpeed: ratio of offload_optimizer), and update on more "
    "threads with a vectorised optimizer (DeepSpeedCPUAdam, or fused=True)."
)


def optimizer_on_host(inputs: Inputs) -> Finding | None:
    """The device idles while the host updates parameters."""
    if inputs.idle.empty:
        return None
    ranks = inputs.idle["rank"].tolist()
    lost = {rank: inputs.of(rank, waits_for_update) for rank in ranks}
    if not any(map(len, lost.values())):
        return None
    _, share, cost, worst = lost_on_ranks(inputs, lost)
    rank_trace = inputs.trace.rank(worst)
    rows = updates_on_host(rank_trace)
    names = sorted({rank_trace.names[code] for code in rank_trace.name[rows].tolist()})
    name = longest_name(rank_trace, rows)
    return Finding(
        cost,
        share,
        say(
            "The optimizer runs on the host. The device is idle {lost} meanwhile, in {name}.",
            lost=inputs.share_of_time("idle_in_calls", share, ranks, calls=names),
            name=Claim(
                "longest_calls", (name,), "name", "", (worst,), {"calls": names}, brief(short_place(name))
            ),
        ),
        _ADVICE,
        "idle_breakdown",
        Evidence(name=name, event_rank=worst, span=lost[worst].longest),
        change=Change("without updates on the host", lambda _: [edits.without(edits.exactly(name))]),
        lost=inputs.when(ranks, lambda rank: lost[rank]),
    )


@memoize_per_rank()
def updates_on_host(rank_trace: RankTrace) -> Int64:
    """The rows of optimizers that launch no kernel; none where launches are not recorded."""
    rows = rows_named(rank_trace, _UPDATES.search)
    rows = rows[~rank_trace.is_device[rows]]
    launches = rows_named(rank_trace, _LAUNCHES.search)
    launches = launches[rank_trace.event_class[launches] == EventClass.RUNTIME]
    on_device = not len(launches) or begins_in(rank_trace, launches, rows).any()
    return rows[:0] if on_device else rows


def waits_for_update(inputs: Inputs, rank: int) -> Intervals:
    """When a device is idle in the judged time while its host updates parameters."""
    rank_trace = inputs.trace.rank(rank)
    rows = updates_on_host(rank_trace)
    return inputs.idle_causes(rank).gaps & open_time(rank_trace, rows) & inputs.judged_time(rank)


RULE = idle_rule(
    topic="optimizer_on_host",
    title="Updating parameters on the host",
    label="Optimizer on the host",
    cause="an optimizer that runs on the host",
    judge=optimizer_on_host,
    applies=lambda inputs: bool(inputs.judged),
    risk="The optimizer's states take memory of the device.",
    wrong_if="The host only waits in it for the device.",
)
