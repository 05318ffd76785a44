"""Rules about why a device waits for its host that go by what the host's calls are: compilers, launches that
return only when their kernel has ended, or any calls, now and then, as where threads wait for cores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from hta_widgets.analysis.core.claim import Claim, Said, Text, say
from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.core.longest import longest_row
from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.findings.call_time import open_time
from hta_widgets.analysis.findings.contention_rule import TURN_NS, interrupted
from hta_widgets.analysis.findings.finding import Finding, severity_of
from hta_widgets.analysis.findings.idle_rules import idle_device, idle_finding
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.loss import Loss, lost_on
from hta_widgets.analysis.findings.rule import GETS_AHEAD, Change, idle_rule, never
from hta_widgets.analysis.idle.causes import rows_named
from hta_widgets.analysis.idle.cold_calls import COMPILES
from hta_widgets.analysis.replay import edits
from hta_widgets.arrays import Int64
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.rank_trace import RankTrace

RECOMPILES: Final = (
    "Code is compiled anew for other shapes or values: TORCH_LOGS=recompiles says for which. "
    "torch.compile(dynamic=True), or inputs of few sizes, need fewer versions."
)
_NEARLY_ALL_PCT: Final = 90.0
_ENOUGH: Final = 50
_MOST: Final = 0.5
"""Of the time for which hosts are late: with less, other reasons are the first thing to look at."""
_LEAST_NS: Final = 10_000
"""A kernel that is shorter may end before its launch returns anyway."""


_Calls = Callable[[RankTrace], Int64]
_Found = tuple[Loss, dict[int, Intervals]]


def _idle(
    inputs: Inputs, calls: _Calls | None = None, is_meant: Callable[[int], bool] = lambda rank: True
) -> _Found | None:
    """The idle time in which the hosts of the ranks that are meant are late, and in some calls, if these are
    given; and what of it is lost."""
    if inputs.idle.empty:
        return None
    none = Intervals.union([], [])
    ranks = inputs.idle["rank"].tolist()
    time = {rank: inputs.of(rank, _late, calls) if is_meant(rank) else none for rank in ranks}
    loss = lost_on(inputs.idle, {rank: each.length for rank, each in time.items()})
    return (loss, time) if loss is not None and severity_of(loss.share_pct) else None


def _late(inputs: Inputs, rank: int, calls: _Calls | None) -> Intervals:
    judged = inputs.judged_time(rank)
    if calls is not None:
        rank_trace = inputs.trace.rank(rank)
        judged &= open_time(rank_trace, calls(rank_trace))
    return inputs.idle_causes(rank).late_host & judged if len(judged) else judged


def _said(inputs: Inputs, loss: Loss, part: str, text: str, **parts: Said) -> Text:
    lost = inputs.time_lost("late_host", loss.share_pct, loss.cost_ns, loss.ranks, part=part)
    return say(text, who=idle_device(loss, part=part), lost=lost, **parts)


def recompiling(inputs: Inputs) -> Finding | None:
    """Devices that wait while code is compiled, in steps that come after others which compile none."""
    found = _idle(inputs, _compilers)
    if found is None:
        return None
    rank = found[0].worst
    rank_trace = inputs.trace.rank(rank)
    row, windows = longest_row(rank_trace, _compilers(rank_trace)), rank_trace.windows(inputs.scope)
    count, name = int((found[1][rank].within_each(windows) > 0).sum()), rank_trace.names[rank_trace.name[row]]
    text = _said(
        inputs,
        found[0],
        "compiling",
        "{who} idle {lost} while the host compiles code, in {count} of {all} steps, longest in {name}.",
        count=Claim("steps_that_wait", count, "count", ranks=(rank,)),
        all=Claim("steps", len(windows), "count", ranks=(rank,)),
        name=Claim("longest_compiler", name, "name", ranks=(rank,)),
    )
    change = Change("without compiling", lambda _: [edits.without(edits.exactly(name))], GETS_AHEAD)
    return idle_finding(inputs, *found, text, RECOMPILES, row, change=change)


def _compilers(rank_trace: RankTrace) -> Int64:
    rows = rows_named(rank_trace, COMPILES.search)
    return rows[~rank_trace.is_device[rows]]


def blocking_launches(inputs: Inputs) -> Finding | None:
    """Devices that wait because each launch returns only when its kernel has ended."""
    ranks = inputs.trace.ranks_of(inputs.scope)
    pct = {rank: inputs.of(rank, _blocking_pct) for rank in ranks}
    if max(pct.values(), default=0.0) < _NEARLY_ALL_PCT:
        return None
    found = _idle(inputs, is_meant=lambda rank: pct[rank] >= _NEARLY_ALL_PCT)
    if found is None:
        return None
    rank = found[0].worst
    rank_trace = inputs.trace.rank(rank)
    launches = rank_trace.launch[_kernels(inputs, rank)].astype(np.int64)
    text = _said(
        inputs,
        found[0],
        "blocking",
        "{who} idle {lost} because the host launches too late: {share} of the launches return only when "
        "their kernel has ended.",
        share=Claim("launches_that_block", pct[rank], "%", "launches", (rank,)),
    )
    return idle_finding(
        inputs,
        *found,
        text,
        "Unset CUDA_LAUNCH_BLOCKING (on AMD HIP_LAUNCH_BLOCKING, AMD_SERIALIZE_KERNEL) outside of debugging.",
        longest_row(rank_trace, launches),
        saves_at_most="at most: the host may not be ahead of the device then, either",
    )


def _kernels(inputs: Inputs, rank: int) -> Int64:
    """The kernels of the judged time that are launched by themselves, and do not end at once."""
    rank_trace = inputs.trace.rank(rank)
    compute = (rank_trace.event_class == EventClass.COMPUTE) & rank_trace.is_device & (rank_trace.launch >= 0)
    rows = np.flatnonzero(compute & (rank_trace.dur >= _LEAST_NS))
    return rows[rank_trace.belong(rows, inputs.scope)]


def _blocking_pct(inputs: Inputs, rank: int) -> float:
    """Of the launches of these kernels, the share that returns when they have ended."""
    rank_trace, rows = inputs.trace.rank(rank), _kernels(inputs, rank)
    ends = rank_trace.end[rank_trace.launch[rows]]
    return 100.0 * float((ends >= rank_trace.end[rows]).mean()) if len(rows) >= _ENOUGH else 0.0


def without_core(inputs: Inputs) -> Finding | None:
    """Devices that wait since calls of all kinds take far longer than usual, now one, now another."""
    late = _idle(inputs)
    if late is None or not _is_most(late, _idle(inputs, _long_calls)):  # which is quick to see
        return None
    found = _idle(inputs, _interrupted)
    if found is None or not _is_most(late, found):
        return None
    loss = found[0]
    rank_trace = inputs.trace.rank(loss.worst)
    row = longest_row(rank_trace, _interrupted(rank_trace))
    name = rank_trace.names[rank_trace.name[row]]
    text = _said(
        inputs,
        loss,
        "interrupted",
        "{who} idle {lost} while calls of the host take ten times as long as usual, the longest {name}. "
        "Calls of all kinds do so, now one, now another, as where threads wait for cores.",
        name=Claim("longest_interrupted", name, "name", ranks=(loss.worst,)),
    )
    return idle_finding(
        inputs,
        *found,
        text,
        "Give each rank cores of its own (numactl, taskset), and run fewer threads (OMP_NUM_THREADS), "
        "DataLoader workers and other programs beside it. A container may have fewer cores than PyTorch "
        "counts.",
        row,
        change=Change("without these pauses", lambda _: [edits.host(0, exposed=True)]),
    )


def _is_most(late: _Found, found: _Found | None) -> bool:
    """Whether it is most of the time for which the same hosts are late."""
    if found is None:
        return False
    (loss, time), (_, whole) = found, late
    return sum(time[each].length for each in loss.ranks) >= _MOST * sum(
        whole[each].length for each in loss.ranks
    )


def _long_calls(rank_trace: RankTrace) -> Int64:
    return np.flatnonzero((rank_trace.event_class == EventClass.HOST_OP) & (rank_trace.dur >= TURN_NS))


@memoize_per_rank()
def _interrupted(rank_trace: RankTrace) -> Int64:
    threads = np.unique(rank_trace.thread[rank_trace.event_class == EventClass.HOST_OP]).tolist()
    return np.concatenate([np.empty(0, np.int64), *(interrupted(rank_trace, each)[0] for each in threads)])


RULES = (
    idle_rule(
        topic="without_core",
        title="Waiting for a host that waits for cores",
        label="Waits for cores",
        cause="hosts that wait for cores",
        judge=without_core,
        applies=never,
        risk="DataLoader workers that lack cores make batches more slowly.",
        needs="Control of the programs and threads that share the machine.",
        wrong_if="Other threads of the program interrupt the host, as they hold Python's lock.",
    ),
    idle_rule(
        topic="recompiling",
        title="Waiting for code to be compiled",
        label="Compiling",
        cause="code that is compiled again",
        judge=recompiling,
        applies=never,
        risk="Code for any size may be slower than code for one.",
        needs="torch.compile(dynamic=True), or inputs of few sizes.",
        wrong_if="The program still starts: later steps find what they need compiled.",
    ),
    idle_rule(
        topic="blocking_launches",
        title="Launching one kernel at a time",
        label="Blocking launches",
        cause="launches that wait for their kernel",
        judge=blocking_launches,
        applies=never,
        needs="Access to the environment of the program.",
        wrong_if="A debugger or another tool serialises the launches.",
    ),
)
