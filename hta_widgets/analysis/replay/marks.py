"""Where iterations begin and end on the host: points that a replay moves with their thread."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.trace.reader.schema import NULL

if TYPE_CHECKING:
    from hta_widgets.trace.rank_trace import RankTrace

Int64 = npt.NDArray[np.int64]

__all__ = ["Marks", "marks_of"]


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
    boundaries = frame[["host_start_ns", "host_end_ns"]].to_numpy(np.int64)
    if not len(boundaries):
        nothing = np.empty(0, np.int64)
        return Marks(nothing, nothing, nothing, nothing)
    edges = np.unique(boundaries)
    thread_at: dict[int, int] = {}
    on_host = np.flatnonzero(~rank_trace.is_device & (rank_trace.stream == NULL))
    for times in (rank_trace.start, rank_trace.end):
        place = np.minimum(np.searchsorted(edges, times[on_host]), len(edges) - 1)
        rows = on_host[edges[place] == times[on_host]]
        # Of several calls the longest comes last and stays.
        rows = rows[np.argsort(rank_trace.dur[rows], kind="stable")]
        thread_at |= dict(zip(times[rows].tolist(), rank_trace.thread[rows].tolist(), strict=True))
    time = sorted(thread_at)
    marks = {when: at for at, when in enumerate(time)}
    found = np.array([marks.get(when, -1) for when in boundaries.reshape(-1).tolist()], np.int64)
    begin, end = found.reshape(-1, 2).T
    return Marks(
        np.array(time, np.int64), np.array([thread_at[when] for when in time], np.int64), begin, end
    )  # fmt: skip
