"""What the timeline shows besides slices: its tracks, names, iterations and the overview of device
activity."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

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
        lanes: the slices.
        labels: the label of each rank.
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
    on_stream = np.zeros(lanes.n, np.bool_)
    for track in lanes.tracks:
        if track.kind == "stream":
            on_stream[lanes.offsets[track.first] : lanes.offsets[track.first + track.lanes]] = True
    first, last = lanes.extent
    edges = np.linspace(first, last, bins + 1)
    classes = lanes.classes
    if on_stream.any():
        groups = [on_stream & np.isin(classes, group) for group in ACTIVITY_CLASSES]
    else:
        groups = [classes == EventClass.HOST_OP]
    width = max((last - first) / bins, 1e-9)
    return np.array([_covered(lanes.start[g], lanes.dur[g], first, edges) / width for g in groups])


def _covered(
    start: NDArray[np.int64], dur: NDArray[np.int64], origin: int, edges: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Time covered between neighbouring edges: the difference of sum(clip(edge - start, 0, dur)) over the
    slices."""

    def passed(points: NDArray[np.int64]) -> NDArray[np.float64]:
        points = np.sort(points)
        sums = np.concatenate([[0.0], np.cumsum(points - origin, dtype=np.float64)])
        before = np.searchsorted(points, edges)
        result: NDArray[np.float64] = before * (edges - origin) - sums[before]
        return result

    return np.maximum(np.diff(passed(start) - passed(start + dur)), 0)
