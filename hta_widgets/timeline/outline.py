"""What the timeline shows besides slices: its tracks, names, iterations and the overview of device
activity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hta_widgets.jit import kernel
from hta_widgets.timeline.lanes import Lanes
from hta_widgets.trace.classify import EventClass

ACTIVITY_CLASSES = (
    (EventClass.COMPUTE,),
    (EventClass.COMMUNICATION,),
    (EventClass.MEMORY_COPY, EventClass.MEMORY_SET),
)


def outline(
    lanes: Lanes, labels: dict[int, str], iterations: pd.DataFrame, bins: int = 600
) -> dict[str, Any]:
    """Everything the front end needs before the first slice, as JSON-compatible values.

    Args:
        labels: what each rank is called.
        iterations: columns iteration, rank, label, start_ns, end_ns of the job.
        bins: resolution of the overview.

    Returns:
        `n`, `extent` [ns, ns], `replayed` (these are not the recorded times), `ranks`, `tracks` (`sizes`:
        slices per lane), `names`, `categories`, `category_of` and `class_of` (both per kind), `iterations`,
        and `activity`: per class group, per bin, the mean number of busy lanes.
    """
    start, end = lanes.extent
    categories = sorted(set(lanes.kinds.categories))
    number = {name: i for i, name in enumerate(categories)}
    sizes = np.diff(lanes.offsets)
    return {
        "n": lanes.n,
        "extent": [start, end],
        "replayed": lanes.recorded is not None,
        "ranks": [{"rank": rank, "label": label} for rank, label in labels.items()],
        "tracks": [
            {
                "rank": t.rank,
                "kind": t.kind,
                "label": t.label,
                "process": t.process,
                "alike": t.alike,
                "first": t.first,
                "sizes": sizes[t.first : t.first + t.lanes].tolist(),
            }
            for t in lanes.tracks
        ],
        "names": lanes.kinds.names,
        "categories": categories,
        "category_of": [number[c] for c in lanes.kinds.categories],
        "class_of": lanes.kinds.classes.tolist(),
        "iterations": [
            {"iteration": int(i), "rank": int(r), "label": str(label), "start": int(a), "end": int(b)}
            for i, r, label, a, b in zip(
                *(iterations[c] for c in ("iteration", "rank", "label", "start_ns", "end_ns")), strict=True
            )
        ],
        "activity": [np.round(row, 4).tolist() for row in activity(lanes, bins)],
    }


def activity(lanes: Lanes, bins: int) -> NDArray[np.float64]:
    """Mean number of busy stream lanes per class group and bin; of host threads where nothing runs on a
    device."""
    streams = [track for track in lanes.tracks if track.kind == "stream"]
    classes: Sequence[Sequence[EventClass]] = ACTIVITY_CLASSES if streams else ((EventClass.HOST_OP,),)
    group_of_class = np.full(256, -1, np.int64)
    for group, members in enumerate(classes):
        group_of_class[list(members)] = group
    shown = [
        lane for track in streams or lanes.tracks for lane in range(track.first, track.first + track.lanes)
    ]
    first, last = lanes.extent
    edges = np.linspace(first, last, bins + 1)
    covered = _covered(
        lanes.start, lanes.dur, lanes.kind, lanes.offsets, group_of_class[lanes.kinds.classes],
        np.array(shown, np.int64), edges, len(classes),
    )  # fmt: skip
    return covered.reshape(len(classes), bins) / max((last - first) / bins, 1e-9)


@kernel
def _covered(
    start: NDArray[np.int64],
    dur: NDArray[np.int64],
    kind: NDArray[np.int32],
    offsets: NDArray[np.int64],
    group_of_kind: NDArray[np.int64],
    lanes: NDArray[np.int64],
    edges: NDArray[np.float64],
    groups: int,
) -> NDArray[np.float64]:
    """Time between neighbouring edges that slices of each group cover on some lanes, group after group.

    Slices of a lane come by start, so that one pass over the edges does for all of them.
    """
    bins = len(edges) - 1
    covered = np.zeros(groups * bins, np.float64)
    for lane in lanes:
        first = 0
        for i in range(offsets[lane], offsets[lane + 1]):
            group = group_of_kind[kind[i]]
            if group < 0:
                continue
            begin = float(start[i])
            end = float(start[i] + dur[i])
            while first < bins - 1 and edges[first + 1] <= begin:
                first += 1
            at = first
            while at < bins and edges[at] < end:
                covered[group * bins + at] += min(end, edges[at + 1]) - max(begin, edges[at])
                at += 1
    return covered
