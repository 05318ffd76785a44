"""The neighbours of a slice or an empty place: its caller, its first call, the next of its name, the gap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from hta_widgets.timeline.lanes import Lanes


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


def same_kind(lanes: Lanes, position: int, step: int) -> int:
    """Position of the slice of the same name and class on its rank that begins next (`step` 1) or last before
    (-1), or -1; slices that begin at once follow each other by position."""
    rank = lanes.track_of(position).rank
    found = np.concatenate(
        [
            start + np.flatnonzero(lanes.kind[start:end] == lanes.kind[position])
            for track in lanes.tracks
            if track.rank == rank
            for start, end in [_bounds(lanes, range(track.first, track.first + track.lanes))]
        ]
    )
    found = found[np.lexsort((found, lanes.start[found]))]
    at = int(np.flatnonzero(found == position)[0]) + step
    return int(found[at]) if 0 <= at < len(found) else -1


def shortest_gap(lanes: Lanes, rank: int, time_ns: int) -> tuple[int, int, int] | None:
    """The first lane, start and end of the shortest gap of a rank's streams at a moment; None if all run."""
    gaps = []
    for track in lanes.tracks:
        if track.rank == rank and track.kind == "stream":
            gap = gap_at(lanes, range(track.first, track.first + track.lanes), time_ns)
            if gap is not None:
                gaps.append((track.first, *gap))
    return min(gaps, key=lambda gap: (gap[2] - gap[1], gap[0]), default=None)


def _bounds(lanes: Lanes, chosen: range) -> tuple[int, int]:
    """Where the slices of neighbouring lanes begin and end."""
    return int(lanes.offsets[chosen.start]), int(lanes.offsets[chosen.stop])
