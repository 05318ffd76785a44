"""The time with which a timeline opens: the iterations, where they are a small part of what was recorded."""

from __future__ import annotations

import numpy as np

from hta_widgets.trace.model import Trace
from hta_widgets.trace.rank_trace import RankTrace

_SMALL = 0.5  # of the recording: iterations that take more of it are in sight beside the rest
_MOST = 0.5  # of the work
_MARGIN = 0.05  # on each side, as a share of their length, where so much is recorded


def first_view(trace: Trace) -> tuple[int, int] | None:
    """(start, end) in ns of all iterations, with a margin; None where a timeline opens with all it has.

    It does where iterations take half of the recording or more, or hold less than half of the work. Else
    what lies outside is mostly the profiler, a process that starts, or a host that waits.
    """
    iterations = trace.iterations
    if iterations.empty or trace.exceeds_memory:
        return None
    start, end = int(iterations["start_ns"].min()), int(iterations["end_ns"].max())
    if end - start >= _SMALL * trace.summary["duration_ns"]:
        return None
    inside, recorded = np.sum(trace.each(_work, start, end), axis=0)
    if inside < _MOST * recorded:
        return None
    room, (first, last) = round(_MARGIN * (end - start)), trace.extent_ns
    return max(start - room, first), min(end + room, last)


def _work(rank_trace: RankTrace, start: int, end: int) -> tuple[int, int]:
    """How many of a rank's device events lie in this time, and of how many; without any, of its events."""
    shown = rank_trace.is_device if rank_trace.device_events else np.ones(len(rank_trace.start), np.bool_)
    inside = shown & (rank_trace.start < end) & (rank_trace.end > start)
    return int(inside.sum()), int(shown.sum())
