"""The critical path on the timeline's lanes."""

from __future__ import annotations

import zlib

import numpy as np
import pandas as pd

from hta_widgets.arrays import Int64
from hta_widgets.timeline.lanes import Lanes
from hta_widgets.timeline.pack import Packed, shuffled
from hta_widgets.trace.ordering import paired

_WAITS = ("launch_delay", "kernel_kernel", "dependency")  # segments in which their event has not begun yet
_UNRECORDED = "host"  # segments in which a thread did something that is not recorded


def lanes_of_path(lanes: Lanes, frame: pd.DataFrame) -> tuple[Int64, Int64]:
    """(position, lane) of each segment of `critical_path`'s answer; position -1 where it names no event.

    Unrecorded time of a thread is on its outermost lane, whatever annotation surrounds it; lane -1 if no
    event shows which lane that is.
    """
    position = np.full(len(frame), -1, np.int64)
    ranks, events = frame["rank"].to_numpy(), frame["event_id"].to_numpy()
    for rank in np.unique(ranks).tolist():
        here = np.flatnonzero((ranks == rank) & (events >= 0))
        where = np.full(int(events[here].max(initial=-1)) + 1, -1, np.int64)
        for track in (t for t in lanes.tracks if t.rank == rank):
            a, b = int(lanes.offsets[track.first]), int(lanes.offsets[track.first + track.lanes])
            known = np.flatnonzero(lanes.event_id[a:b] < len(where))
            where[lanes.event_id[a:b][known]] = a + known
        position[here] = where[events[here]]
    lane = np.where(position >= 0, np.searchsorted(lanes.offsets, position, side="right") - 1, -1)
    lane[(frame["kind"] == _UNRECORDED).to_numpy()] = -1
    _place_unrecorded(lanes, frame, lane)
    return position, lane


def _place_unrecorded(lanes: Lanes, frame: pd.DataFrame, lane: Int64) -> None:
    """Give segments without a lane the first one of the track that shows their thread."""
    outermost = np.full(len(lanes.offsets) - 1, -1, np.int64)
    for track in lanes.tracks:
        if track.kind == "thread":
            outermost[track.first : track.first + track.lanes] = track.first
    thread = paired(frame["rank"].to_numpy(), pd.Categorical(frame["thread"]).codes)
    shown = np.where(lane >= 0, outermost[lane], -1)
    first_of = np.full(int(thread.max(initial=-1)) + 1, -1, np.int64)
    known = shown >= 0
    first_of[thread[known]] = shown[known]
    unnamed = lane < 0
    lane[unnamed] = first_of[thread[unnamed]]


def pack_path(lanes: Lanes, frame: pd.DataFrame) -> Packed:
    """Start, end (float64), lane, position, kind (int32; -1 for none), limit and what is special (uint8).

    The flags are: wait (1), inferred (2), not recorded (4).
    """
    position, lane = lanes_of_path(lanes, frame)
    kind = np.where(position >= 0, lanes.kind[position], -1)
    bound = pd.Categorical(frame["bound_by"]).remove_unused_categories()
    special = (
        1 * frame["kind"].isin(_WAITS).to_numpy()
        | 2 * frame["inferred"].to_numpy()
        | 4 * (frame["kind"] == _UNRECORDED).to_numpy()
    )
    data = b"".join(
        [
            *(frame[name].to_numpy().astype("<f8").tobytes() for name in ("start_ns", "end_ns")),
            *(shuffled(column.astype(np.int32)) for column in (lane, position, kind)),
            bound.codes.astype(np.uint8).tobytes(),
            special.astype(np.uint8).tobytes(),
        ]
    )
    return Packed({"n": len(frame), "limits": bound.categories.tolist()}, zlib.compress(data, 1))
