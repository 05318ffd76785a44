"""The neighbours of a slice or an empty place: the calling slice, the first called one, the idle gap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from hta_widgets.timeline.lanes import Lanes

__all__ = ["gap_at", "relative"]


def relative(lanes: Lanes, position: int, to: Literal["parent", "child"]) -> int:
    """Position of the innermost slice around this one on its track, or of the first one inside it; or -1."""
    lane, track = lanes.lane_of(position), lanes.track_of(position)
    start, end = int(lanes.start[position]), int(lanes.start[position] + lanes.dur[position])
    if to == "parent":
        for above in range(lane - 1, track.first - 1, -1):
            a, b = int(lanes.offsets[above]), int(lanes.offsets[above + 1])
            at = a + int(np.searchsorted(lanes.start[a:b], start, side="right")) - 1
            if at >= a and lanes.start[at] + lanes.dur[at] >= end:
                return at
        return -1
    for below in range(lane + 1, track.first + track.lanes):
        a, b = int(lanes.offsets[below]), int(lanes.offsets[below + 1])
        at = a + int(np.searchsorted(lanes.start[a:b], start))
        if at < b and lanes.start[at] < end and lanes.start[at] + lanes.dur[at] <= end:
            return at
    return -1


def gap_at(lanes: Lanes, chosen: Sequence[int], time_ns: float) -> tuple[int, int] | None:
    """The time around `time_ns` in which none of the chosen lanes has a slice; None if there is a slice.

    Before the first and after the last slice, it extends to the end of the trace.
    """
    first, last = lanes.extent
    for lane in chosen:
        a, b = int(lanes.offsets[lane]), int(lanes.offsets[lane + 1])
        after = a + int(np.searchsorted(lanes.start[a:b], time_ns, side="right"))
        if after > a:
            first = max(first, int(lanes.start[after - 1] + lanes.dur[after - 1]))
        if after < b:
            last = min(last, int(lanes.start[after]))
    return (first, last) if first <= time_ns < last else None
