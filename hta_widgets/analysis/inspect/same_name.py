"""How long the events of one name take, and where one of them stands among them."""

from __future__ import annotations

import numpy as np

from hta_widgets.analysis.core.longest import longest_row
from hta_widgets.analysis.inspect.record import SameName
from hta_widgets.analysis.inspect.refs import ref, ref_or_none
from hta_widgets.arrays import Int64
from hta_widgets.trace.rank_trace import RankTrace

_BINS = 24


def same_name(rank_trace: RankTrace, row: int) -> SameName:
    """The distribution of the events of a row's name and class on its rank."""
    named = rank_trace.name == rank_trace.name[row]
    rows = np.flatnonzero(named & (rank_trace.event_class == rank_trace.event_class[row]))
    rows = rows[np.lexsort((rank_trace.event_id[rows], rank_trace.start[rows]))]
    dur, own = rank_trace.dur[rows], int(rank_trace.dur[row])
    quartile, median, upper = np.rint(np.quantile(dur, [0.25, 0.5, 0.75])).astype(np.int64).tolist()
    edges, counts = _histogram(dur)
    at = int(np.flatnonzero(rows == row)[0])
    return SameName(
        count=len(rows),
        time_ns=int(dur.sum()),
        shortest_ns=int(dur.min()),
        quartile_ns=quartile,
        median_ns=median,
        upper_quartile_ns=upper,
        longest_ns=int(dur.max()),
        shorter=int((dur < own).sum()),
        longer=int((dur > own).sum()),
        edges_ns=tuple(edges.tolist()),
        counts=tuple(counts.tolist()),
        previous=ref_or_none(rank_trace, int(rows[at - 1]) if at else -1),
        next=ref_or_none(rank_trace, int(rows[at + 1]) if at + 1 < len(rows) else -1),
        longest=ref(rank_trace, longest_row(rank_trace, rows)),
    )


def _histogram(dur: Int64) -> tuple[Int64, Int64]:
    """Edges and counts of bins that grow by a constant factor, on whole nanoseconds."""
    low, high = int(dur.min()), int(dur.max()) + 1
    edges = np.unique(np.rint(np.geomspace(max(low, 1), max(high, 2), _BINS + 1)).astype(np.int64))
    edges[0], edges[-1] = low, max(high, 2)
    at = np.searchsorted(edges, dur, side="right") - 1
    return edges, np.bincount(at, minlength=len(edges) - 1)
