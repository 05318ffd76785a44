"""What a stretch of time consists of, and the same stretch of other iterations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final, Literal, get_args

import numpy as np
import pandas as pd

from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.device_time.temporal import temporal_breakdown
from hta_widgets.analysis.inspect.refs import lane_of
from hta_widgets.analysis.operators.calls import operator_calls
from hta_widgets.arrays import Int32, Int64, UInt8
from hta_widgets.engine import checkpoint
from hta_widgets.errors import MissingDataError
from hta_widgets.jit import inline, kernel
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.model import Trace
from hta_widgets.trace.ordering import distinct, first_of_each
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.reader.schema import NULL
from hta_widgets.trace.scope import Scope

Windows = tuple[Int64, Int64, Int64]

WindowBy = Literal["class", "name", "lane", "operator"]
WINDOW_BY: Final = get_args(WindowBy)
_NO_OPERATOR = "(no operator)"
_COLUMNS: Final = {
    "rank": "int64",
    "name": "str",
    "event_class": "str",
    "count": "int64",
    "time_ns": "int64",
    "covered_ns": "int64",
    "covered_pct": "float64",
    "longest_ns": "int64",
    "event_id": "int64",
}
_PARTS = ("compute_ns", "exposed_communication_ns", "exposed_memory_ns", "idle_ns")


def inspect_window(trace: Trace, scope: Scope | None = None, by: WindowBy = "name") -> pd.DataFrame:
    """What does a stretch of time consist of?

    Every event that overlaps the windows of the scope counts, with the part of it that lies inside. Host
    calls lie in each other, so `time_ns` counts a nanosecond once for each call that is open; `covered_ns`
    counts it once.

    Args:
        trace: the job.
        scope: ranks, iterations, time window, streams, names to look at; default everything.
        by: a row for each "class" of events, for each "name" and class, for each "lane" (thread or stream,
            without annotations), or for each "operator" that launched device work, which then alone counts.

    Returns:
        One row per rank and group, by rank, then most covered_ns. Columns: rank (int64), name (str: of the
        class, event, lane or operator; "(no operator)"), event_class (str; by lane and operator that of the
        event with most time inside), count (int64, events), time_ns (int64, ns of them inside, added up),
        covered_ns (int64, ns in which any was open), covered_pct (float64, % of the windows), longest_ns
        (int64, ns inside of the longest), event_id (int64, which that is).

    Raises:
        MissingDataError: by operator, no selected rank has operators.
        ValueError: `by` is none of the above.
    """
    if by not in WINDOW_BY:
        raise ValueError(f"by must be one of {', '.join(WINDOW_BY)}, not {by!r}")
    scope = scope or Scope()
    ranks = [trace.rank(rank) for rank in trace.ranks_of(scope)]
    if by == "operator":
        having = [rank_trace for rank_trace in ranks if (rank_trace.event_class == EventClass.HOST_OP).any()]
        if ranks and not having:
            remedy = "Record with torch.profiler.profile(activities=[ProfilerActivity.CPU, ...])."
            raise MissingDataError("operators", remedy)
        ranks = having
    frames = []
    for rank_trace in ranks:
        checkpoint()
        frames.append(_of_rank(rank_trace, scope, by))
    found = [frame for frame in frames if len(frame)]
    frame = pd.concat(found, ignore_index=True) if found else pd.DataFrame({name: [] for name in _COLUMNS})
    return frame[list(_COLUMNS)].astype(_COLUMNS)


def same_stretch(trace: Trace, rank: int, window_ns: tuple[int, int]) -> pd.DataFrame:
    """What is the same part of the other iterations made of?

    The window must lie within one iteration. It begins and ends after a share of that; in each other complete
    iteration the stretch between the same shares is looked at.

    Args:
        trace: the job.
        rank: its rank.
        window_ns: start and end in ns on the job's axis.

    Returns:
        One row per complete iteration, in order of time. Columns: iteration (int64), own (bool, the window
        lies in it), start_ns, end_ns, window_ns, compute_ns, exposed_communication_ns, exposed_memory_ns,
        idle_ns (int64, ns; as `temporal_breakdown` divides the stretch).

    Raises:
        KeyError: there is no such rank.
        MissingDataError: the window lies in no complete iteration, there is no other one, or the rank has no
            device events.
    """
    rank_trace = trace.rank(rank)
    start, end = Scope(window_ns=window_ns).window_ns or window_ns
    whole = rank_trace.iterations[~rank_trace.iterations["partial"]]
    begins, ends = whole["start_ns"].to_numpy(np.int64), whole["end_ns"].to_numpy(np.int64)
    own = np.flatnonzero((begins <= start) & (end <= ends))
    if len(own) != 1 or len(whole) < 2:
        raise MissingDataError(
            "other iterations with the same stretch",
            "Select a window inside one of several complete iterations.",
            "the window lies in no complete iteration" if not len(own) else "there is only one iteration",
        )
    at = int(own[0])
    length = int(ends[at] - begins[at])
    rows = []
    for row, (begin, stop) in enumerate(zip(begins.tolist(), ends.tolist(), strict=True)):
        low, high = (begin + (stop - begin) * (edge - int(begins[at])) // length for edge in (start, end))
        if low < high:
            part = temporal_breakdown(trace, Scope(ranks=(rank,), window_ns=(low, high))).iloc[0]
            number = int(whole["iteration"].iloc[row])
            times = {name: int(part[name]) for name in ("window_ns", *_PARTS)}
            rows.append({"iteration": number, "own": row == at, "start_ns": low, "end_ns": high, **times})
    return pd.DataFrame(rows)


def _of_rank(rank_trace: RankTrace, scope: Scope, by: WindowBy) -> pd.DataFrame:
    windows = rank_trace.windows(scope)
    inside = Intervals.union(windows[:, 0], windows[:, 1])
    if not len(inside):
        return pd.DataFrame()
    rows = rank_trace.rows(replace(scope, window_ns=(int(windows[0, 0]), int(windows[-1, 1]))))
    if by == "operator":
        rows = rows[rank_trace.is_device[rows]]
    elif by == "lane":  # annotations span what they name, and are no work of a thread or stream
        rows = rows[rank_trace.event_class[rows] != EventClass.ANNOTATION]
    group, name_of = _groups(rank_trace, rows, by)
    sums = np.zeros((6, int(group.max(initial=-1)) + 1), np.int64)
    before = np.append(0, np.cumsum(inside.end - inside.start))
    _add_up(rows, group, rank_trace.start, rank_trace.end, (inside.start, inside.end, before), *sums)
    held = np.flatnonzero(sums[0])
    count, time, covered, longest, of, _ = sums[:, held]
    example = rows[of]
    found = pd.DataFrame(
        {
            "rank": rank_trace.rank,
            "name": [name_of(number) for number in held.tolist()],
            "event_class": [EventClass(number).label for number in rank_trace.event_class[example].tolist()],
            "count": count,
            "time_ns": time,
            "covered_ns": covered,
            "covered_pct": 100.0 * covered / inside.length,
            "longest_ns": longest,
            "event_id": rank_trace.event_id[example],
        }
    )
    order = ["covered_ns", "name", "event_class"]
    return found.sort_values(order, ascending=[False, True, True], kind="stable")


def _groups(rank_trace: RankTrace, rows: Int64, by: WindowBy) -> tuple[Int32, Callable[[int], str]]:
    """The number of each row's group, and what names a group."""
    if by == "class":
        return rank_trace.event_class[rows].astype(np.int32), lambda number: EventClass(number).label
    if by == "name":
        group = np.empty(len(rows), np.int32)
        _by_name_and_class(rows, rank_trace.name, rank_trace.event_class, len(EventClass), group)
        return group, lambda number: rank_trace.names[number // len(EventClass)]
    if by == "operator":
        calls = operator_calls(rank_trace)
        call = calls.around[rows]
        name = np.where(call >= 0, rank_trace.name[np.append(calls.rows, 0)[call]], np.int32(-1))
        return name + 1, lambda number: rank_trace.names[number - 1] if number else _NO_OPERATOR
    device, stream, thread = (getattr(rank_trace, each)[rows] for each in ("device", "stream", "thread"))
    on_device = (device != NULL) | (stream != NULL)  # one lane, whatever threads the file says
    place = np.zeros(len(rows), np.int64)
    for part in (device, stream, np.where(on_device, -1, thread)):
        parts, code = distinct(part)
        place = distinct(place * len(parts) + code)[1]
    first = rows[first_of_each(place)]
    return place.astype(np.int32), lambda number: lane_of(rank_trace, int(first[number]))


@kernel
def _by_name_and_class(rows: Int64, name: Int32, event_class: UInt8, classes: int, group: Int32) -> None:
    """In one pass: of a long recording each further array is memory that is touched for the first time."""
    for i in range(len(rows)):
        group[i] = name[rows[i]] * classes + event_class[rows[i]]


@inline
def _inside(windows: Windows, time: int) -> int:
    """How long windows last before a time; `windows`: their starts, ends, and how long those before last."""
    starts, ends, before = windows
    begun = np.searchsorted(starts, time, side="right")
    return int(before[begun] - max(0, ends[begun - 1] - time)) if begun else 0


@kernel
def _add_up(
    rows: Int64,
    group: Int32,
    starts: Int64,
    ends: Int64,
    windows: Windows,
    count: Int64,
    time: Int64,
    covered: Int64,
    longest: Int64,
    of: Int64,
    reach: Int64,
) -> None:
    """Per group: the events, the time in them, in any of them, and in the longest, and which that is.

    The events are sorted by start. `reach`: until when a group is covered.
    """
    for i in range(len(rows)):
        g = group[i]
        start, end = _inside(windows, starts[rows[i]]), _inside(windows, ends[rows[i]])
        length = end - start
        if not count[g] or length > longest[g]:
            longest[g] = length
            of[g] = i
        count[g] += 1
        time[g] += length
        covered[g] += max(0, end - max(start, reach[g]))
        reach[g] = max(reach[g], end)
