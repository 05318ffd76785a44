"""Where every slice of a job is drawn: lane = (rank, track, depth).

A *track* has a label ("GPU 0 stream 7", "thread 21587"); slices of one track may overlap (nested calls,
concurrent kernels that report one stream, annotations that straddle each other), so a track has as many
*lanes* as it needs for the slices of each lane to be disjoint. No slice is dropped: `Lanes` is a permutation
of the ranks' rows.

The result is *lane-major*: lane after lane, and sorted by start inside a lane. Binary search, delta coding
and level-of-detail merging all work on that order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hta_widgets.arrays import Int32, Int64
from hta_widgets.jit import kernel
from hta_widgets.timeline.kinds import Kinds, KindTable
from hta_widgets.timeline.tracks import Track, tracks_of
from hta_widgets.trace.ordering import grouped, order_in_groups
from hta_widgets.trace.rank_trace import RankTrace


@dataclass(frozen=True)
class Lanes:
    """All slices of some ranks, lane-major. Position in these columns is the slice's id in the timeline."""

    start: Int64  # ns relative to the job's start
    dur: Int64  # ns
    kind: Int32  # index into `kinds`
    event_id: Int32  # row in the rank's event table
    offsets: Int64  # lane l owns positions offsets[l]:offsets[l + 1]
    tracks: tuple[Track, ...]
    kinds: Kinds
    flow_source: Int32  # position of the launching host call ...
    flow_target: Int32  # ... and of the device slice that it launched
    recorded: tuple[Int64, Int64] | None = (
        None  # start and duration in ns, where the slices lie at other times
    )

    @property
    def n(self) -> int:
        return len(self.start)

    @cached_property
    def extent(self) -> tuple[int, int]:
        """First start and last end in ns; (0, 0) without slices."""
        if not self.n:
            return 0, 0
        filled = np.flatnonzero(np.diff(self.offsets))  # slices of a lane are disjoint and by start
        last = self.offsets[1:][filled] - 1
        first_start = self.start[self.offsets[:-1][filled]].min()
        return int(first_start), int((self.start[last] + self.dur[last]).max())

    @property
    def classes(self) -> NDArray[np.uint8]:
        """Event class of every slice."""
        return self.kinds.classes[self.kind] if self.n else np.empty(0, np.uint8)

    def lane_of(self, position: int) -> int:
        return int(np.searchsorted(self.offsets, position, side="right")) - 1

    def track_of(self, position: int) -> Track:
        lane = self.lane_of(position)
        return next(t for t in self.tracks if t.first <= lane < t.first + t.lanes)

    def find(self, rank: int, event_id: int) -> int:
        """Position of an event of a rank, or -1 if the event is no slice of it."""
        for track in self.tracks:
            if track.rank == rank:
                a, b = self.offsets[track.first], self.offsets[track.first + track.lanes]
                hit = np.flatnonzero(self.event_id[a:b] == event_id)
                if len(hit):
                    return int(a + hit[0])
        return -1

    def flows_of(self, position: int) -> list[tuple[int, int]]:
        """(launching call, device slice) pairs that the slice takes part in."""
        rows = np.flatnonzero((self.flow_source == position) | (self.flow_target == position))
        return [(int(self.flow_source[i]), int(self.flow_target[i])) for i in rows]


Times = tuple[Int64, Int64]


def build_lanes(
    ranks: Sequence[RankTrace],
    checkpoint: Callable[[], None] = lambda: None,
    replayed: Mapping[int, Times] | None = None,
    python_apart: bool = False,
) -> Lanes:
    """Arrange the slices of `ranks` on lanes: device streams first, then annotations, then threads, rank by
    rank.

    `checkpoint` is called between ranks and may raise to stop the work. `replayed`: by rank the (start, end)
    of each row at which it lies instead, on the same track. `python_apart`: Python's frames have tracks of
    their own, instead of standing around the operators that they call.
    """
    kinds = KindTable()
    parts: list[_RankLanes] = []
    tracks: list[Track] = []
    first_lane = 0
    for rank_trace in ranks:
        checkpoint()
        times = _recorded(rank_trace) if replayed is None else replayed[rank_trace.rank]
        part = _rank_lanes(rank_trace, kinds, first_lane, times, python_apart)
        parts.append(part)
        tracks += part.tracks
        first_lane += len(part.lane_sizes)
    bases = np.cumsum([0] + [len(p.start) for p in parts[:-1]]).astype(np.int32)
    return Lanes(
        start=_joined([p.start for p in parts], np.int64),
        dur=_joined([p.dur for p in parts], np.int64),
        kind=_joined([p.kind for p in parts], np.int32),
        event_id=_joined([p.event_id for p in parts], np.int32),
        offsets=np.cumsum(_joined([np.zeros(1, np.int64), *(p.lane_sizes for p in parts)], np.int64)),
        tracks=tuple(tracks),
        kinds=kinds.result(),
        flow_source=_joined([p.flow_source + b for p, b in zip(parts, bases, strict=False)], np.int32),
        flow_target=_joined([p.flow_target + b for p, b in zip(parts, bases, strict=False)], np.int32),
        recorded=None
        if replayed is None
        else (
            _joined([rank.start[p.rows] for rank, p in zip(ranks, parts, strict=True)], np.int64),
            _joined([rank.dur[p.rows] for rank, p in zip(ranks, parts, strict=True)], np.int64),
        ),
    )


def _joined(columns: Sequence[NDArray[Any]], dtype: type[np.integer[Any]]) -> NDArray[Any]:
    """The columns of all ranks as one; that of a single rank is not copied."""
    return columns[0] if len(columns) == 1 else np.concatenate([np.empty(0, dtype), *columns])


@dataclass(frozen=True)
class _RankLanes:
    start: Int64
    dur: Int64
    kind: Int32
    event_id: Int32
    lane_sizes: Int64
    tracks: list[Track]
    flow_source: Int32
    flow_target: Int32
    rows: Int64


def _recorded(rank: RankTrace) -> Times:
    return rank.start, rank.start + rank.dur


def _rank_lanes(
    rank: RankTrace, kinds: KindTable, first_lane: int, times: Times, python_apart: bool
) -> _RankLanes:
    start_of_row, end_of_row = times
    dur_of_row = end_of_row - start_of_row
    track_of_row, described = tracks_of(rank, python_apart)
    counts = np.bincount(track_of_row, minlength=len(described))
    # of equal starts the longest is outermost
    order = order_in_groups(track_of_row, start_of_row, -dur_of_row)
    track = track_of_row[order]
    stacked = np.array([track.kind != "stream" for track in described], np.bool_)
    depth, lanes_per_track = _assign_depths(track, start_of_row[order], end_of_row[order], stacked)
    bases = np.concatenate([np.zeros(1, np.int64), np.cumsum(lanes_per_track)])
    lane = bases.astype(np.int32)[track] + depth
    lane_sizes = np.bincount(lane, minlength=int(bases[-1])).astype(np.int64)
    rows = order[grouped(lane)]
    position = np.empty(rank.n, np.int32)
    position[rows] = np.arange(rank.n, dtype=np.int32)
    target_rows = np.flatnonzero(rank.launch >= 0)
    return _RankLanes(
        start=start_of_row[rows],
        dur=dur_of_row[rows],
        kind=kinds.encode(rank)[rows],
        event_id=rank.event_id[rows],
        lane_sizes=lane_sizes,
        tracks=[
            Track(
                rank.rank,
                *one,
                first=first_lane + int(bases[i]),
                lanes=int(lanes_per_track[i]),
                count=int(counts[i]),
            )
            for i, one in enumerate(described)
        ],
        flow_source=position[rank.launch[target_rows]],
        flow_target=position[target_rows],
        rows=rows,
    )


@kernel
def _assign_depths(track: Int64, start: Int64, end: Int64, stacked: NDArray[np.bool_]) -> tuple[Int32, Int64]:
    """Depth of every slice inside its track, and the number of lanes of every track.

    Slices come by track, start, and the longest first. On a stacked track a slice goes below the innermost
    slice that is still open; on the others into the first lane that is free. Either way the lane must be
    free: partial overlaps move down.
    """
    depth = np.empty(len(track), np.int32)
    lanes = np.zeros(len(stacked), np.int64)
    free_at = np.empty(64, np.int64)  # end of the last slice of each lane of the current track
    open_end = np.empty(64, np.int64)  # stack of open slices: end and lane
    open_lane = np.empty(64, np.int64)
    n_open = 0
    used = 0
    current = -1
    for i in range(len(track)):
        if track[i] != current:
            current = track[i]
            n_open = 0
            used = 0
        s = start[i]
        d = 0
        if stacked[current]:
            while n_open and open_end[n_open - 1] <= s:
                n_open -= 1
            if n_open:
                d = open_lane[n_open - 1] + 1
        while d < used and free_at[d] > s:
            d += 1
        if max(d, n_open) + 1 >= len(free_at):
            free_at = np.concatenate((free_at, np.empty_like(free_at)))
            open_end = np.concatenate((open_end, np.empty_like(open_end)))
            open_lane = np.concatenate((open_lane, np.empty_like(open_lane)))
        free_at[d] = end[i]
        used = max(used, d + 1)
        lanes[current] = max(lanes[current], used)
        open_end[n_open] = end[i]
        open_lane[n_open] = d
        if stacked[current]:
            n_open += 1
        depth[i] = d
    return depth, lanes
