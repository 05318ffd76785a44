"""Device time that the host hides: when it ends, the device waits for a host that was not waiting for it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.idle.causes import IdleCauses, blocked_threads
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.rank_trace import RankTrace

_COPY_SLACK, _SHARED = 1_000, 2
"""A blocking copy may be stamped as done this much after its call, ns, or runs for half of it and more."""


@memoize_per_rank(last=8)
def hidden_by_host(rank_trace: RankTrace, idle: IdleCauses) -> Intervals:
    """The busy time of a device side that does not lie on the critical path, because the host is late anyway.

    A busy stretch that is followed by a gap in which the device waits for a host that is not blocked could be
    shorter without the next launch coming earlier. What ran before a synchronising call returned is not
    hidden, nor what ran before a copy that was done when its call returned: the host may have waited for it.

    Returns:
        Parts of the busy time. Work in them may be removed without a gain.
    """
    begin, end = idle.gaps.end[:-1], idle.gaps.start[1:]
    launching = _gaps_with(idle, "host_busy") | _gaps_with(idle, "launch_latency")
    late = (launching & ~_gaps_with(idle, "host_sync"))[1:]  # in the gap that follows
    blocked = blocked_threads(rank_trace) | _blocking_copies(rank_trace)
    free = blocked.within_each(np.stack([end - 1, end + 1], 1)) == 0
    returned = np.append(np.iinfo(np.int64).min, blocked.end)[np.searchsorted(blocked.end, end, side="right")]
    start, stop = np.maximum(begin, returned)[late & free], end[late & free]
    return Intervals(start[start < stop], stop[start < stop])


def _gaps_with(idle: IdleCauses, cause: str) -> npt.NDArray[np.bool_]:
    """Which gaps are due to a cause in part."""
    found = np.zeros(len(idle.gaps), np.bool_)
    found[np.searchsorted(idle.gaps.end, idle.causes[cause].start, side="right")] = True
    return found


def _blocking_copies(rank_trace: RankTrace) -> Intervals:
    """When calls are open that return after the copy that they ordered, as from pageable memory."""
    rows = np.flatnonzero((rank_trace.event_class == EventClass.MEMORY_COPY) & (rank_trace.launch >= 0))
    call = rank_trace.launch[rows]
    returned = rank_trace.end[call]
    most = _SHARED * (returned - rank_trace.start[rows]) >= np.maximum(
        rank_trace.dur[rows], rank_trace.dur[call]
    )
    waits = (rank_trace.end[rows] <= returned + _COPY_SLACK) | most
    rows, call = rows[waits], call[waits]
    return Intervals.union(rank_trace.start[call], np.maximum(rank_trace.end[call], rank_trace.end[rows] + 1))
