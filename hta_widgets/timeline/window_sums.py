"""What lies in a window of time on some lanes, summed up: for the line beside a brush that is being drawn."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.arrays import Int64
from hta_widgets.timeline.lanes import Lanes

_NAMED = 3


def window_sums(lanes: Lanes, start: int, end: int, shown: Sequence[int]) -> dict[str, Any]:
    """Count and sum up the slices that lie in a window, as far as they do.

    Args:
        shown: the lanes to look at.

    Returns:
        `slices`: how many begin or run in the window. `busy`: [rank, ns] pairs, how long at least one of the
        streams looked at works. `longest`: [kind, ns, slices] of the kinds with most time in the window, on
        streams where there are any among the lanes, else on threads, callers with what they call.
    """
    of_lane = {
        lane: track for track in lanes.tracks for lane in range(track.first, track.first + track.lanes)
    }
    known = [lane for lane in shown if lane in of_lane]
    streams = {lane for lane in known if of_lane[lane].kind == "stream"}
    named = streams or {lane for lane in known if of_lane[lane].kind == "thread"}
    slices = 0
    by_rank: dict[int, list[tuple[Int64, Int64]]] = defaultdict(list)
    time = np.zeros(len(lanes.kinds.names), np.int64)
    count = np.zeros(len(lanes.kinds.names), np.int64)
    for lane in known:
        first, last = int(lanes.offsets[lane]), int(lanes.offsets[lane + 1])
        starts = lanes.start[first:last]
        stop = first + int(np.searchsorted(starts, end))
        begin = first + int(np.searchsorted(starts, start))
        # slices of a lane do not overlap: of those before the window only the last can reach into it
        if begin > first and lanes.start[begin - 1] + lanes.dur[begin - 1] > start:
            begin -= 1
        slices += stop - begin
        if lane not in named:
            continue
        at = slice(begin, stop)
        a = np.maximum(lanes.start[at], start)
        b = np.minimum(lanes.start[at] + lanes.dur[at], end)
        np.add.at(time, lanes.kind[at], b - a)
        np.add.at(count, lanes.kind[at], 1)
        if lane in streams:
            by_rank[of_lane[lane].rank].append((a, b))
    longest = [kind for kind in np.argsort(-time, kind="stable")[:_NAMED].tolist() if time[kind] > 0]
    return {
        "slices": slices,
        "busy": [
            [rank, Intervals.union(*map(np.concatenate, zip(*parts, strict=True))).length]
            for rank, parts in by_rank.items()
        ],
        "longest": [[kind, int(time[kind]), int(count[kind])] for kind in longest],
    }
