"""Communication that slows the compute kernels beside it: they share memory and multiprocessors."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from hta_widgets.analysis.core.claim import Claim, say
from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.core.longest import longest_row
from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.findings.finding import Evidence, Finding
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.rule import Rule
from hta_widgets.analysis.operators.recorded import recorded_inputs
from hta_widgets.arrays import Bool, Float64, Int32, Int64
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.ordering import distinct, order_in_groups
from hta_widgets.trace.rank_trace import RankTrace

ENOUGH: Final = 5
"""Kernels that make a median and quartiles, alone and beside communication."""

SLOWER: Final = 1.1
"""Less than this is no matter of communication: caches and clocks make as much."""


class _Slowed(NamedTuple):
    """Kernels of a rank that take longer beside communication."""

    lost_ns: int  # by which all of them together take longer than alone, less what others take shorter
    ratio: float  # how many times as long they take
    kernels: int  # how many
    name: str  # of those that lose most; event_id and span: of the longest of these beside communication
    event_id: int
    span: tuple[int, int]


class _Runs(NamedTuple):
    """Of runs of kernels: the row, a number for kernels that are alike, ns, whether beside communication."""

    rows: Int64
    number: Int64
    ns: Int64
    beside: Bool


_NONE = np.empty(0, np.int64)
_NO_RUNS = _Runs(_NONE, _NONE, _NONE, _NONE > 0)


class _Quartiles(NamedTuple):
    """Of kernels, by number: how many runs, their median and quartiles, ns."""

    number: Int64
    runs: Int64
    median: Float64
    low: Float64
    high: Float64


def slowed_by_communication(inputs: Inputs) -> Finding | None:
    """The same kernels, with the same launch and the same inputs, take longer beside communication.

    No clocks of ranks are compared. A kernel counts as slowed only if three of four runs beside communication
    take longer than three of four alone. Without recorded shapes nothing is said: kernels of one name and
    grid may multiply different depths.
    """
    found = {rank: inputs.of(rank, _slowed) for rank in inputs.judged_ns}
    ranks = {rank: slowed for rank, slowed in found.items() if slowed}
    if not ranks:
        return None
    rank = max(sorted(ranks), key=lambda rank: ranks[rank].lost_ns)
    slowed = ranks[rank]
    share = 100.0 * slowed.lost_ns / inputs.judged_ns[rank]
    several = len(inputs.judged_ns) > 1
    of = (rank,)
    return Finding(
        slowed.lost_ns,
        share,
        say(
            "{count} compute kernels{of_rank} take {ratio} times as long beside communication as the same "
            "kernels with the same inputs alone. That is {lost}.",
            count=Claim("slowed_kernels", slowed.kernels, "count", ranks=of),
            of_rank=say(" of {rank}", rank=Claim("most_slowed_rank", of, "ranks")) if several else "",
            ratio=Claim("slowed_by", slowed.ratio, "x", ranks=of),
            lost=inputs.time_lost("slowed_beside_communication", share, slowed.lost_ns, of),
        ),
        _advice(inputs.trace.rank(rank)),
        "comm_comp_overlap",
        Evidence(
            rank=rank if several else None,
            name=slowed.name,
            event_rank=rank,
            event_id=slowed.event_id,
            span=slowed.span,
        ),
    )


def _advice(rank_trace: RankTrace) -> str:
    """With the settings of NCCL where its kernels run on CUDA."""
    ways, calls = "", any(name.startswith("cuda") for name in rank_trace.names)
    if calls and any(name.startswith("nccl") for name in rank_trace.names):
        ways = (
            " (NCCL_MAX_CTAS, or config.max_ctas of a process group), or copy engines (NCCL_CTA_POLICY, "
            "symmetric memory)"
        )
    return f"Give communication fewer multiprocessors{ways}; or move it beside work that needs less memory."


def _slowed(inputs: Inputs, rank: int) -> _Slowed | None:
    rank_trace = inputs.trace.rank(rank)
    runs = _runs(rank_trace)
    chosen = rank_trace.overlap(runs.rows, inputs.scope)
    if not chosen.any():
        return None
    runs = _Runs(runs.rows[chosen], runs.number[chosen], runs.ns[chosen], runs.beside[chosen])
    both = ~runs.beside & np.isin(runs.number, runs.number[runs.beside])  # only these are compared
    if not both.any():
        return None
    alone, beside = (_quartiles(runs.number[chosen], runs.ns[chosen]) for chosen in (both, runs.beside))
    _, mine, theirs = np.intersect1d(alone.number, beside.number, assume_unique=True, return_indices=True)
    apart = (beside.low[theirs] > alone.high[mine]) | (beside.high[theirs] < alone.low[mine])
    mine, theirs = mine[apart], theirs[apart]
    lost = (beside.median[theirs] - alone.median[mine]) * beside.runs[theirs]
    usual = float((alone.median[mine] * beside.runs[theirs]).sum())
    if not (lost > 0).any() or lost.sum() < (SLOWER - 1) * usual:
        return None
    alike = runs.rows[runs.beside & (runs.number == alone.number[mine][lost.argmax()])]
    most = longest_row(rank_trace, alike)
    return _Slowed(
        lost_ns=round(float(lost.sum())),
        ratio=1 + float(lost.sum()) / usual,
        kernels=int(beside.runs[theirs].sum()),
        name=rank_trace.names[int(rank_trace.name[most])],
        event_id=int(rank_trace.event_id[most]),
        span=(int(rank_trace.start[most]), int(rank_trace.end[most])),
    )


def _quartiles(number: Int64, run_ns: Int64) -> _Quartiles:
    """Of each kernel with enough runs, by its number: how many they are, median and quartiles."""
    ns = run_ns.astype(np.float64)
    order = order_in_groups(number, run_ns)  # one sort instead of one for each kernel and quantile
    number, ns = number[order], ns[order]
    first = np.flatnonzero(np.diff(number, prepend=-1))
    count = np.diff(first, append=len(number))
    first, count = first[count >= ENOUGH], count[count >= ENOUGH]

    def quantile(part: float) -> Float64:
        below = np.floor(part * (count - 1)).astype(np.int64)
        above = np.minimum(below + 1, count - 1)
        low, high = ns[first + below], ns[first + above]
        return low + (high - low) * (part * (count - 1) - below)

    return _Quartiles(number[first], count, quantile(0.5), quantile(0.25), quantile(0.75))


@memoize_per_rank()
def _runs(rank_trace: RankTrace) -> _Runs:
    """Compute kernels with known shapes that run all alone or all beside communication.

    Beside other work they are left out: it may slow them as well.
    """
    rows = np.flatnonzero(rank_trace.is_device & (rank_trace.dur > 0))
    exchanges = rank_trace.event_class[rows] == EventClass.COMMUNICATION
    spans = Intervals.union(rank_trace.start[rows[exchanges]], rank_trace.end[rows[exchanges]])
    if not spans.length:
        return _NO_RUNS
    rows = _apart(rank_trace, rows[~exchanges])
    rows = rows[(rank_trace.event_class[rows] == EventClass.COMPUTE) & (rank_trace.launch[rows] >= 0)]
    rows = np.sort(rows, kind="stable")  # quick: almost in order
    operator = rank_trace.parent[rank_trace.issuer[rows]]
    rows, operator = rows[operator >= 0], operator[operator >= 0]
    recorded = recorded_inputs(rank_trace)
    shapes = recorded.shapes[recorded.of_row[operator]]
    rows, shapes = rows[shapes >= 0], shapes[shapes >= 0]
    if not len(rows):
        return _NO_RUNS
    ns = rank_trace.dur[rows]
    shared = spans.within_each(np.stack([rank_trace.start[rows], rank_trace.end[rows]], axis=1))
    number = _alike(rank_trace, rows, shapes)
    whole = (shared == 0) | (shared == ns)
    return _Runs(rows[whole], number[whole], ns[whole], shared[whole] > 0)


def _alike(rank_trace: RankTrace, rows: Int64, shapes: Int32) -> Int64:
    """A number for each name with each launch and each inputs; of those recorded or not."""
    number = rank_trace.name[rows].astype(np.int64)
    for codes in (*(rank_trace.argument_codes(name)[rows] for name in ("grid", "block")), shapes):
        number = distinct(number * (int(codes.max()) + 2) + codes + 1)[1]
    return number


def _apart(rank_trace: RankTrace, rows: Int64) -> Int64:
    """Those of these rows during which no other of them runs."""
    rows = rows[np.argsort(rank_trace.start[rows], kind="stable")]
    start, end = rank_trace.start[rows], rank_trace.end[rows]
    before = np.append(start[:1], np.maximum.accumulate(end)[:-1])
    after = np.append(start[1:], end[-1:])
    return rows[(before <= start) & (after >= end)]


RULE = Rule(
    topic="slowed_by_communication",
    question="what communication costs",
    title="Communication that slows compute",
    label="Slowed compute",
    cause="communication that slows compute",
    judge=slowed_by_communication,
    no_change="communication takes its share of the device wherever it runs",
    risk="Communication with fewer multiprocessors may take longer.",
    needs="Communication that is not exposed.",
    wrong_if="these kernels work on other values then, or clocks are lower at that time.",
)
