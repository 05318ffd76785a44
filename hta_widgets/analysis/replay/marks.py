"""Where iterations begin and end on the host: points that a replay moves with their thread."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.arrays import Bool, Int64
from hta_widgets.jit import kernel
from hta_widgets.trace.ordering import unique
from hta_widgets.trace.rank_trace import RankTrace


class Marks(NamedTuple):
    """Attributes:
    time, thread: int64, of each mark: ns, and `RankTrace.thread`.
    begin, end: int64 for each row of `RankTrace.iterations`: its mark, -1 where nothing on the host
        happens then (an iteration that ends with device work).
    """

    time: Int64
    thread: Int64
    begin: Int64
    end: Int64


@memoize_per_rank()
def marks_of(rank_trace: RankTrace) -> Marks:
    """The boundaries of a rank's iterations, on the threads of the longest calls that begin or end there."""
    frame = rank_trace.iterations
    boundaries = np.stack(
        [frame[name].to_numpy(np.int64) for name in ("host_start_ns", "host_end_ns")], axis=1
    )
    if not len(boundaries):
        nothing = np.empty(0, np.int64)
        return Marks(nothing, nothing, nothing, nothing)
    edges = unique(boundaries)
    thread_at: dict[int, int] = {}
    on_host = rank_trace.on_host
    for times in (rank_trace.start, rank_trace.end):
        there = on_host.copy()
        _leave(times, edges, there)
        rows = np.flatnonzero(there)
        # Of several calls the longest comes last and stays; of equal ones a call, no span of the profiler.
        by_class = -rank_trace.event_class[rows].astype(np.int64)
        rows = rows[np.lexsort((by_class, rank_trace.dur[rows]))]
        thread_at |= dict(zip(times[rows].tolist(), rank_trace.thread[rows].tolist(), strict=True))
    time = sorted(thread_at)
    marks = {when: at for at, when in enumerate(time)}
    found = np.array([marks.get(when, -1) for when in boundaries.reshape(-1).tolist()], np.int64)
    begin, end = found.reshape(-1, 2).T
    return Marks(
        np.array(time, np.int64), np.array([thread_at[when] for when in time], np.int64), begin, end
    )  # fmt: skip


@kernel
def _leave(times: Int64, edges: Int64, chosen: Bool) -> None:
    """Leave of what is chosen only what is at one of the edges, which ascend.

    A row lies mostly between the same two edges as the one before it; else these are searched for.
    """
    at = np.int64(0)  # the first edge that is not before the time
    for row in range(len(times)):
        if not chosen[row]:
            continue
        time = times[row]
        if (at and edges[at - 1] >= time) or (at < len(edges) and edges[at] < time):
            at, end = np.int64(0), np.int64(len(edges))
            while at < end:
                middle = (at + end) // 2
                if edges[middle] < time:
                    at = middle + 1
                else:
                    end = middle
        chosen[row] = at < len(edges) and edges[at] == time
