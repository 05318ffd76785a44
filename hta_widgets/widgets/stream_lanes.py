"""On which lane of a timeline a stream is drawn, and which stream a lane shows."""

from __future__ import annotations

import numpy as np

from hta_widgets.timeline import Lanes
from hta_widgets.trace.model import Trace


def stream_of(lanes: Lanes, trace: Trace, lane: int) -> tuple[int, int] | None:
    """The rank and the stream whose slices lie on a lane; None if there is no such lane."""
    if not 0 <= lane < len(lanes.offsets) - 1:
        return None
    position = int(lanes.offsets[lane])
    rank_trace = trace.rank(lanes.track_of(position).rank)
    row = int(np.searchsorted(rank_trace.event_id, lanes.event_id[position]))
    return rank_trace.rank, int(rank_trace.stream[row])


def lane_of_stream(lanes: Lanes, trace: Trace, rank: int, stream: int) -> int | None:
    """The first lane of a rank's stream; None if none shows it."""
    streams = (track.first for track in lanes.tracks if track.rank == rank and track.kind == "stream")
    return next((lane for lane in streams if stream_of(lanes, trace, lane) == (rank, stream)), None)


def lanes_of_streams(lanes: Lanes, trace: Trace, rank: int) -> dict[tuple[int, int], int]:
    """The first lane of each (device, stream) of a rank."""
    rank_trace, found = trace.rank(rank), {}
    for track in lanes.tracks:
        if track.rank == rank and track.kind == "stream":
            row = np.searchsorted(rank_trace.event_id, lanes.event_id[lanes.offsets[track.first]])
            found[int(rank_trace.device[row]), int(rank_trace.stream[row])] = track.first
    return found
