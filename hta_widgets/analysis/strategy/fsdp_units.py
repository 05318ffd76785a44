"""What each unit of a model sharded by FSDP gathers, computes and reduces, and what of it nothing hides."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pandas as pd

from hta_widgets.analysis.communication.collectives import collectives_of
from hta_widgets.analysis.core.entry import Analysis
from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.device_time.busy import busy, device_ranks
from hta_widgets.analysis.strategy.fsdp_passes import (
    BACKWARD,
    FORWARD,
    RECORD,
    Passes,
    UnitPass,
    gather_ranges,
    names_ranges,
    passes_of,
)
from hta_widgets.arrays import Int64
from hta_widgets.charts.spec import Bars, Segments, Series
from hta_widgets.errors import MissingDataError
from hta_widgets.formatting import counted, duration, percent
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.model import Trace
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.scope import Scope

GATHER: Final = "all_gather"
COMPUTE: Final = "compute"
CAUSES: Final = {
    "in time": "there is nothing to compute, while their units do not wait for them",
    "issued late": "they are issued late",
    "out of order": "they are issued behind what is needed later",
    "queued": "they queue behind other collectives of their stream",
    "link busy": "the link is too busy or too slow",
    "held back": "they are held back after their issue",
    "other ranks": "other ranks arrive late",
    "first unit": "no unit computes before them",
}
"""Why an all-gather is exposed, and that in words."""

_WAKES_NS: Final = 20_000
"""A kernel that waits for another stream starts within this time."""
_ALWAYS: Final = np.iinfo(np.int64).max // 2
_LONG_AGO: Final = np.iinfo(np.int64).min // 2
_PARTS = {"allgather": GATHER, "reduce_scatter": "reduce_scatter", "allreduce": "all_reduce"}
_COLUMNS = {
    "rank": "int64", "iteration": "Int64", "unit": "int64", "name": "str", "phase": "str", "part": "str",
    "event_id": "Int64", "kernel": "str", "bytes": "Int64", "issued_ns": "Int64", "start_ns": "int64",
    "end_ns": "int64", "dur_ns": "int64", "exposed_ns": "int64", "queued_ns": "Int64", "held_ns": "Int64",
    "prefetched": "boolean", "prefetch_units": "Int64", "cause": "str",
}  # fmt: skip


def fsdp_units(trace: Trace, scope: Scope | None = None) -> pd.DataFrame:
    """When does each FSDP unit gather its parameters, compute and reduce its gradient, and what is exposed?

    Units and their turns are known by the ranges that FSDP records: by the name in them (`fully_shard`), or
    by the order of forward, and of backward in reverse, if the sizes of their messages agree with that
    (`FullyShardedDataParallel`). Compute belongs to the unit in whose turn the host launched it.

    Exposed is the time in which communication runs and no compute does (`temporal_breakdown`). Where several
    of these collectives run at once, it counts for that which started first: so the exposed times of all rows
    add up to the exposed time of these collectives.

    Why an all-gather is exposed is the first of these reasons that held for more than half of the exposed
    time, in `cause`. "in time": its unit does not wait for it, but begins later anyway. "other ranks": they
    entered late (its time beyond the shortest of those matched). "first unit": no unit computes before it in
    its forward pass. "held back": it was issued and its stream free, but it waited for something else, such
    as a limit of all-gathers. "out of order": it was issued behind a collective of its stream that is needed
    later: the all-gather of a unit that computes later, or, for backward and unless it was prefetched, a
    reduction. "queued": behind another one. "issued late": between the beginning of the unit's compute before
    its own and its start, nothing was on the link. What remains is "link busy": sent for a unit earlier, it
    would be no earlier.

    Args:
        trace: the job.
        scope: kernels that belong to it (`RankTrace.members`), whole; default all.

    Returns:
        One row per rank, iteration, unit, turn, and part of it: each collective, and all compute. By rank,
        start_ns. Columns: rank (int64), iteration (Int64), unit (int64, in the order of forward), name (str:
        the module, "(root)" for the outermost one, or "unit 3", with its module if Python stacks were
        recorded), phase (str: "forward", "backward"), part (str: "all_gather", "compute", "reduce_scatter",
        "all_reduce" of hybrid sharding), event_id (Int64, of a collective), kernel (str, its name), bytes
        (Int64), issued_ns (Int64 ns, when its launch began), start_ns, end_ns (int64 ns, of compute the first
        and last kernel's), dur_ns (int64 ns, of compute without gaps), exposed_ns (int64 ns), queued_ns
        (Int64 ns, from the issue until its stream had no earlier collective), held_ns (Int64 ns, from then to
        its start), prefetched (boolean, an all-gather was issued in the turn of another unit),
        prefetch_units (Int64, how many other units computed between the issue of an all-gather and the first
        kernel of its unit after it), cause (str, why an all-gather is exposed, else ""). Columns of
        collectives are NA, and texts "", in rows of compute.

    Raises:
        MissingDataError: no selected rank has ranges of FSDP, or these do not distinguish the units.
    """
    scope = scope or Scope()
    parts, why, any_ranges, ranks = [], "", False, 0
    for rank, rank_trace in device_ranks(trace, scope):
        ranks += 1
        passes = _passes(trace, rank)
        if passes is None:
            continue
        any_ranges, why = True, why or passes.why
        if passes.passes:
            parts.append(_of_rank(trace, rank_trace, passes, scope))
    if ranks and not any_ranges:
        raise MissingDataError("FSDP ranges", RECORD)
    if ranks and not parts:
        raise MissingDataError("FSDP ranges", "Record whole steps with PyTorch 2.5 or later.", why)
    rows = [row for part in parts for row in part]
    frame = pd.DataFrame(rows, columns=list(_COLUMNS)).astype(_COLUMNS)
    return frame.sort_values(["rank", "start_ns", "unit", "part"], kind="stable", ignore_index=True)


@memoize_per_rank(last=8)
def _passes(trace: Trace, rank: int) -> Passes | None:
    rank_trace = trace.rank(rank)
    if not names_ranges(rank_trace):  # which shows sooner than the collectives of all ranks
        return None
    found = collectives_of(trace, rank)
    return passes_of(rank_trace, found, _rows_of(rank_trace, found))


def _rows_of(rank_trace: RankTrace, found: pd.DataFrame) -> Int64:
    """The positions of collectives in their rank, whose rows are in file order."""
    return np.searchsorted(rank_trace.event_id, found["event_id"].to_numpy(np.int32)).astype(np.int64)


def _of_rank(trace: Trace, rank_trace: RankTrace, passes: Passes, scope: Scope) -> list[dict[str, Any]]:
    found = collectives_of(trace, rank_trace.rank)
    rows = _rows_of(rank_trace, found)
    work = np.flatnonzero(
        rank_trace.is_device & (rank_trace.event_class == EventClass.COMPUTE) & (rank_trace.launch >= 0)
    )
    # copies into the buffer of an all-gather run ahead of the unit, which computes nothing by that
    gathering = gather_ranges(rank_trace)
    begun = rank_trace.start[rank_trace.issuer[work]]
    work = work[gathering.within_each(np.stack([begun, begun + 1], 1)) == 0]
    work = work[np.argsort(rank_trace.start[work], kind="stable")]
    turn = passes.of_launches(rank_trace, rank_trace.issuer[work].astype(np.int64))
    computing = _Computing(passes, rank_trace.start[work], rank_trace.end[work], turn)
    inside = rank_trace.belong(work, scope) & (turn >= 0)
    table = [
        _compute_row(rank_trace, passes.passes[at], of_turn)
        for at, of_turn in _by_turn(work[inside], turn[inside]).items()
    ]
    table += _collective_rows(rank_trace, passes, found, rows, computing, scope)
    return table


def _by_turn(values: Int64, turn: Int64) -> dict[int, Int64]:
    """The values of each turn, in their order."""
    order = np.argsort(turn, kind="stable")
    turns, first = np.unique(turn[order], return_index=True)
    return dict(zip(turns.tolist(), np.split(values[order], first[1:]), strict=True)) if len(turns) else {}


class _Computing:
    """Compute kernels in order of start, each with the turn that it belongs to, -1 for none."""

    def __init__(self, passes: Passes, start: Int64, end: Int64, turn: Int64) -> None:
        self._start, self._turn = start, turn
        self._ended = np.maximum.accumulate(end) if len(end) else end
        self._of = _by_turn(start[turn >= 0], turn[turn >= 0])
        self._began: dict[int, int] = {}  # when units begin to compute in each forward pass
        for at, starts in self._of.items():
            each = passes.passes[at]
            if each.phase == FORWARD:
                self._began[each.run] = min(self._began.get(each.run, int(starts[0])), int(starts[0]))

    def use(self, turn: int, after: int) -> int | None:
        """When the first kernel of a turn starts after a moment."""
        starts = self._of.get(turn)
        at = 0 if starts is None else int(np.searchsorted(starts, after))
        return None if starts is None or at == len(starts) else int(starts[at])

    def before(self, turn: int, use: int) -> int:
        """When the turn that computes last before a moment, other than this one, began to compute."""
        at = int(np.searchsorted(self._start, use)) - 1
        while at >= 0 and self._turn[at] in (turn, -1):
            at -= 1
        if at < 0:
            return use
        starts = self._of[int(self._turn[at])]
        # of the kernels that it has run without another turn in between
        while at > 0 and self._turn[at - 1] in (self._turn[at], -1):
            at -= 1
        return int(max(self._start[at], starts[0]))

    def is_first(self, turn: int, run: int) -> bool:
        """Whether no unit computes before a turn in its forward pass."""
        return turn in self._of and int(self._of[turn][0]) == self._began.get(run)

    def others(self, turn: int, begin: int, end: int) -> int:
        """How many other turns compute between two moments."""
        low = int(np.searchsorted(self._ended, begin, side="right"))
        high = int(np.searchsorted(self._start, end))
        return len(set(np.unique(self._turn[low:high]).tolist()) - {turn, -1})


def _compute_row(rank_trace: RankTrace, turn: UnitPass, rows: Int64) -> dict[str, Any]:
    start, end = rank_trace.start[rows], rank_trace.end[rows]
    return _row(rank_trace, turn, int(rows[0])) | {
        "part": COMPUTE, "event_id": pd.NA, "kernel": "", "bytes": pd.NA, "issued_ns": pd.NA,
        "start_ns": int(start.min()), "end_ns": int(end.max()), "dur_ns": Intervals.union(start, end).length,
        "exposed_ns": 0, "queued_ns": pd.NA, "held_ns": pd.NA, "prefetched": pd.NA, "prefetch_units": pd.NA,
        "cause": "",
    }  # fmt: skip


def _row(rank_trace: RankTrace, turn: UnitPass, row: int) -> dict[str, Any]:
    number = int(rank_trace.iteration[row])
    iteration = pd.NA if number < 0 else number
    return {
        "rank": rank_trace.rank, "iteration": iteration, "unit": turn.unit, "name": turn.name,
        "phase": turn.phase,
    }  # fmt: skip


def _collective_rows(
    rank_trace: RankTrace,
    passes: Passes,
    found: pd.DataFrame,
    rows: Int64,
    computing: _Computing,
    scope: Scope,
) -> list[dict[str, Any]]:
    turns = {at: turn for turn, each in enumerate(passes.passes) for at in (*each.gathers, *each.reductions)}
    chosen = np.array(sorted(turns), np.int64)
    chosen = chosen[rank_trace.belong(rows[chosen], scope)]
    start, end = (found[name].to_numpy(np.int64) for name in ("start_ns", "end_ns"))
    issued = rank_trace.start[rank_trace.issuer[rows[chosen]]]
    exposed = busy(rank_trace, scope).exposed_communication.within_each(_once(start[chosen], end[chosen]))
    ahead = _last_before(start, end, found["stream"].fillna(-1).to_numpy(np.int64))
    free = np.where(ahead >= 0, end[ahead], _LONG_AGO)[chosen]
    communicating = Intervals.union(start, end)
    queued = np.clip(np.minimum(free, start[chosen]) - issued, 0, None)
    held = np.clip(start[chosen] - issued - queued, 0, None)
    latency = int(held.min()) if len(held) else 0
    waited = found["dur_ns"].to_numpy(np.int64) - found["transfer_ns"].to_numpy(np.int64)
    names, size, operation = (found[name].tolist() for name in ("name", "bytes", "collective"))
    events = found["event_id"].tolist()
    uses = {
        at: computing.use(turn, int(end[at])) for at, turn in turns.items() if operation[at] == "allgather"
    }
    table = []
    for place, at in enumerate(chosen.tolist()):
        turn = turns[at]
        each = passes.passes[turn]
        row = _row(rank_trace, each, int(rows[at])) | {
            "part": _PARTS.get(operation[at], operation[at]), "event_id": events[at], "kernel": names[at],
            "bytes": size[at], "issued_ns": int(issued[place]), "start_ns": int(start[at]),
            "end_ns": int(end[at]), "dur_ns": int(end[at] - start[at]), "exposed_ns": int(exposed[place]),
            "queued_ns": int(queued[place]), "held_ns": int(held[place]), "prefetched": pd.NA,
            "prefetch_units": pd.NA, "cause": "",
        }  # fmt: skip
        if at in each.gathers:
            use, before = uses[at], int(ahead[at])
            row["prefetched"] = at in each.ahead
            row["prefetch_units"] = pd.NA if use is None else computing.others(turn, int(issued[place]), use)
            needed = uses.get(before)
            later = needed > use if needed is not None and use is not None else False
            if before in turns and before not in uses:  # no forward can go before an earlier backward
                later = each.phase == BACKWARD and not row["prefetched"]
            idle = 0
            if use is not None:
                begin = min(computing.before(turn, use), int(start[at]))
                idle = int(start[at]) - begin - communicating.clip(begin, int(start[at])).length
            kept = {
                "in time": _ALWAYS * (use is None or use - int(end[at]) > _WAKES_NS),
                "other ranks": int(waited[at]),
                "first unit": _ALWAYS * (each.phase == FORWARD and computing.is_first(turn, each.run)),
                "held back": int(held[place]) - latency,
                "out of order" if later else "queued": int(queued[place]),
                "issued late": idle,
                "link busy": _ALWAYS,
            }
            row["cause"] = _cause(int(exposed[place]), kept)
        table.append(row)
    return table


def _cause(exposed: int, kept: dict[str, int]) -> str:
    """Why an all-gather is exposed: the first reason that kept it for more than half of that time."""
    return next((reason for reason, ns in kept.items() if 2 * ns > exposed), "") if exposed else ""


def _once(start: Int64, end: Int64) -> Int64:
    """For each stretch of time what no stretch that started before it takes: (begin, end), perhaps empty."""
    order = np.argsort(start, kind="stable")
    taken = np.concatenate([[np.iinfo(np.int64).min], np.maximum.accumulate(end[order])[:-1]])[: len(order)]
    pieces = np.empty((len(order), 2), np.int64)
    pieces[order, 0] = np.maximum(start[order], np.minimum(taken, end[order]))
    pieces[order, 1] = end[order]
    return pieces


def _last_before(start: Int64, end: Int64, lane: Int64) -> Int64:
    """Of what started before each stretch of time, on its lane, what ends last; -1 for none."""
    found = np.full(len(start), -1, np.int64)
    for each in np.unique(lane).tolist():
        mine = np.flatnonzero(lane == each)
        mine = mine[np.argsort(start[mine], kind="stable")]
        latest = np.maximum.accumulate(end[mine])
        # where the running maximum was reached
        reached = np.maximum.accumulate(np.where(end[mine] == latest, np.arange(len(mine)), 0))
        found[mine[1:]] = mine[reached[:-1]]
    return found


def sentence(frame: pd.DataFrame) -> str:
    """The answer of `fsdp_units` in words."""
    gathers = frame[frame["part"] == GATHER]
    if gathers.empty:
        return "No all-gather of an FSDP unit lies in the selection."
    units = frame["unit"].nunique()
    exposed = int(gathers["exposed_ns"].sum())
    share = percent(100.0 * exposed / int(gathers["dur_ns"].sum()))
    text = (
        f"{counted(units, 'FSDP unit')} {'issues' if units == 1 else 'issue'} "
        f"{counted(len(gathers), 'all-gather')}. Nothing hides {duration(exposed)} of them, "
        f"{share} of their time"
    )
    late = gathers[gathers["cause"] != ""]
    if late.empty:
        return f"{text}."
    causes = late.groupby("cause", sort=True)["exposed_ns"].sum()
    cause = str(causes.idxmax())
    return f"{text}. For {duration(int(causes.max()))} of that, the reason is that {CAUSES[cause]}."


def _series() -> tuple[Series, ...]:
    return (
        Series(GATHER, "All-gather", "communication"),
        Series(COMPUTE, "Compute", "compute"),
        Series("reduce_scatter", "Reduce-scatter", "communication", "/"),
        Series("all_reduce", "All-reduce", "communication", "x"),
    )


ANALYSIS = Analysis(
    label="FSDP units",
    group="Communication",
    title="What each FSDP unit gathers and reduces that no compute hides",
    function=fsdp_units,
    sentence=sentence,
    chart=Bars(
        "exposed_ns",
        ("part", "phase", "name"),
        "communication",
        names="kernel",
        no_event="",
        note="cause",
        measure="Exposed time",
    ),
    requires=("device events", "FSDP ranges"),
    pictured=Segments(_series(), "start_ns", "dur_ns", "part", "phase", ("rank", "name")),
)
