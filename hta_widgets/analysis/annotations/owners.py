"""The annotation that each piece of device work belongs to."""

from __future__ import annotations

import numpy as np

from hta_widgets.analysis.annotations.regions import annotations_of
from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.kernels.breakdown import device_work_of
from hta_widgets.arrays import Int64
from hta_widgets.jit import kernel
from hta_widgets.trace.ordering import distinct
from hta_widgets.trace.rank_trace import RankTrace


class Owners:
    """The annotation of each piece of a rank's device work.

    ``row`` holds for each row of the rank the row of its annotation, -1 for none. ``source`` says how it was
    found. "gpu_user_annotation", if the rank has device-side annotations: a kernel belongs to the shortest
    annotation on its (pid, tid) that overlaps it, as in Holistic Trace Analysis. Otherwise "user_annotation":
    the shortest one open on the thread of the issuer (`RankTrace.issuer`) when that began.
    """

    def __init__(self, rank_trace: RankTrace) -> None:
        found = annotations_of(rank_trace)
        lane = rank_trace.pid.astype(np.int64) * len(rank_trace.tids) + rank_trace.tid
        self.row = np.full(rank_trace.n, -1, np.int64)
        work = np.sort(device_work_of(rank_trace).rows)
        if len(found.device):
            self.source = "gpu_user_annotation"
            place, start, end = lane[work], rank_trace.start[work], rank_trace.end[work]
            # Of regions that span the same kernels, the inner one is the shorter one on the host.
            inner = np.where(found.cause >= 0, rank_trace.dur[found.cause], np.iinfo(np.int64).max)
            regions = _shortest_first(rank_trace, found.device, inner)
        else:
            self.source = "user_annotation"
            work = work[rank_trace.launch[work] >= 0]
            call = rank_trace.issuer[work]
            place, start = lane[call], rank_trace.start[call]
            end = start
            regions = _shortest_first(rank_trace, found.host, np.zeros(rank_trace.n, np.int64))
        # An event of zero length counts where it starts.
        owner = _first_overlapping(
            place, start, np.maximum(end, start + 1),
            lane[regions], rank_trace.start[regions], rank_trace.end[regions],
        )  # fmt: skip
        self.row[work] = np.append(regions, -1)[owner]


owners = memoize_per_rank()(Owners)


def _shortest_first(rank_trace: RankTrace, rows: Int64, inner: Int64) -> Int64:
    """Rows of annotations, shortest first; of equals the lower `inner`, the later start, then by name."""
    names, name = distinct(rank_trace.name[rows])
    alphabetic = np.argsort(np.argsort(np.array([rank_trace.names[code] for code in names.tolist()], object)))
    if not len(rows):
        return rows
    return rows[np.lexsort((alphabetic[name], -rank_trace.start[rows], inner[rows], rank_trace.dur[rows]))]


def _first_overlapping(
    place: Int64, start: Int64, end: Int64, region_place: Int64, region_start: Int64, region_end: Int64
) -> Int64:
    """For each event the first region in the given order that shares its place and some time; -1 for none."""
    order = np.lexsort((start, place))
    place, start, end = place[order], start[order], end[order]
    owner = np.full(len(order), -1, np.int64)
    first, stop = np.zeros(len(region_place), np.int64), np.zeros(len(region_place), np.int64)
    for here in np.unique(region_place).tolist():
        low, high = np.searchsorted(place, [here, here + 1])
        at = region_place == here
        # No event before the first whose predecessors reach beyond the region's start can overlap it.
        reach = np.maximum.accumulate(end[low:high])
        first[at] = low + np.searchsorted(reach, region_start[at], side="right")
        stop[at] = low + np.searchsorted(start[low:high], region_end[at], side="left")
    _claim(first, stop, region_start, end, owner)
    found = np.empty(len(order), np.int64)
    found[order] = owner
    return found


@kernel
def _claim(first: Int64, stop: Int64, region_start: Int64, end: Int64, owner: Int64) -> None:
    # following[i]: the next event from i on that may still be free; paths are shortened as they are walked,
    # so that each event is visited about once, however deep regions nest.
    following = np.arange(len(end) + 1)
    for region in range(len(first)):
        event = first[region]
        while True:
            free = event
            while following[free] != free:
                free = following[free]
            while following[event] != free and following[event] != event:
                event, following[event] = following[event], free
            if free >= stop[region]:
                break
            if end[free] > region_start[region]:
                owner[free] = region
                following[free] = free + 1
            event = free + 1
