"""Where every slice of a job is drawn: lane = (rank, track, depth).

A *track* has a label ("GPU 0 stream 7", "thread 21587"); slices of one track may overlap (nested calls,
concurrent kernels that report one stream, annotations that straddle each other), so a track has as many
*lanes* as it needs for the slices of each lane to be disjoint. No slice is dropped: `Lanes` is a permutation
of the ranks' rows.

The result is *lane-major*: lane after lane, and sorted by start inside a lane. Binary search, delta coding
and level-of-detail merging all work on that order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from hta_widgets.jit import kernel
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.reader.schema import NULL

if TYPE_CHECKING:
    from hta_widgets.trace.rank_trace import RankTrace

Int64 = NDArray[np.int64]
Int32 = NDArray[np.int32]

TrackKind = Literal["stream", "sync", "annotation", "thread"]
TRACK_KINDS: tuple[TrackKind, ...] = ("stream", "sync", "annotation", "thread")
_STREAM, _SYNC, _ANNOTATION, _THREAD = range(len(TRACK_KINDS))


@dataclass(frozen=True)
class Track:
    """One labelled group of lanes: `lanes` lanes from lane `first` on, holding `count` slices."""

    rank: int
    kind: TrackKind
    label: str
    first: int
    lanes: int
    count: int


@dataclass(frozen=True)
class Kinds:
    """The distinct (name, category, class) triples: what a slice's `kind` number stands for."""

    names: list[str]
    categories: list[str]
    classes: NDArray[np.uint8]


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

    @property
    def n(self) -> int:
        return len(self.start)

    @property
    def extent(self) -> tuple[int, int]:
        """First start and last end in ns; (0, 0) without slices."""
        if not self.n:
            return 0, 0
        return int(self.start.min()), int((self.start + self.dur).max())

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


def build_lanes(ranks: Sequence[RankTrace], checkpoint: Callable[[], None] = lambda: None) -> Lanes:
    """Arrange the slices of `ranks` on lanes: device streams first, then annotations, then threads, rank by
    rank.

    `checkpoint` is called between ranks and may raise to stop the work.
    """
    kinds = _KindTable()
    parts: list[_RankLanes] = []
    tracks: list[Track] = []
    first_lane = 0
    for rank_trace in ranks:
        checkpoint()
        part = _rank_lanes(rank_trace, kinds, first_lane)
        parts.append(part)
        tracks += part.tracks
        first_lane += len(part.lane_sizes)
    bases = np.cumsum([0] + [len(p.start) for p in parts])

    sizes = np.concatenate([np.zeros(1, np.int64), *(p.lane_sizes for p in parts)])
    return Lanes(
        start=_joined([p.start for p in parts]),
        dur=_joined([p.dur for p in parts]),
        kind=_joined([p.kind for p in parts]).astype(np.int32),
        event_id=_joined([p.event_id for p in parts]).astype(np.int32),
        offsets=np.cumsum(sizes),
        tracks=tuple(tracks),
        kinds=kinds.result(),
        flow_source=_joined([p.flow_source + b for p, b in zip(parts, bases, strict=False)]).astype(np.int32),
        flow_target=_joined([p.flow_target + b for p, b in zip(parts, bases, strict=False)]).astype(np.int32),
    )


def _joined(columns: list[Int64] | list[Int32]) -> Int64:
    return np.concatenate([np.empty(0, np.int64), *columns])


@dataclass(frozen=True)
class _RankLanes:
    start: Int64
    dur: Int64
    kind: Int32
    event_id: Int32
    lane_sizes: Int64
    tracks: list[Track]
    flow_source: Int64
    flow_target: Int64


def _rank_lanes(rank: RankTrace, kinds: _KindTable, first_lane: int) -> _RankLanes:
    track_of_row, labels, track_kinds = _tracks_of(rank)
    counts = np.bincount(track_of_row, minlength=len(labels))
    order = np.lexsort((-rank.dur, rank.start, track_of_row))
    stacked = np.array([k != _STREAM for k in track_kinds], np.bool_)
    depth, lanes_per_track = _assign_depths(
        order, track_of_row, rank.start, rank.start + rank.dur, stacked, len(labels)
    )
    bases = np.concatenate([np.zeros(1, np.int64), np.cumsum(lanes_per_track)])
    lane = bases[track_of_row] + depth
    lane_sizes = np.bincount(lane, minlength=int(bases[-1])).astype(np.int64)
    rows = _lane_major(order, lane, lane_sizes)
    position = np.empty(rank.n, np.int64)
    position[rows] = np.arange(rank.n)
    target_rows = np.flatnonzero(rank.launch >= 0)
    return _RankLanes(
        start=rank.start[rows],
        dur=rank.dur[rows],
        kind=kinds.encode(rank)[rows],
        event_id=rank.event_id[rows],
        lane_sizes=lane_sizes,
        tracks=[
            Track(
                rank=rank.rank,
                kind=TRACK_KINDS[track_kinds[i]],
                label=labels[i],
                first=first_lane + int(bases[i]),
                lanes=int(lanes_per_track[i]),
                count=int(counts[i]),
            )
            for i in range(len(labels))
        ],
        flow_source=position[rank.launch[target_rows]],
        flow_target=position[target_rows],
    )


def _tracks_of(rank: RankTrace) -> tuple[Int64, list[str], list[int]]:
    """Track number of every row (in display order), the tracks' labels and kinds."""
    sync = np.isin(rank.category, [i for i, c in enumerate(rank.categories) if c == "cuda_sync"])
    kind = np.full(rank.n, _THREAD, np.int64)
    kind[rank.event_class == int(EventClass.ANNOTATION)] = _ANNOTATION
    kind[sync] = _SYNC
    kind[rank.is_device] = _STREAM
    # Streams are identified by (device, stream), everything else by (process, thread).
    major, minor = rank.pid.astype(np.int64), rank.tid.astype(np.int64)
    on_stream = np.flatnonzero(kind <= _SYNC)
    devices, device_code = np.unique(rank.device[on_stream], return_inverse=True)
    streams, stream_code = np.unique(rank.stream[on_stream], return_inverse=True)
    major[on_stream], minor[on_stream] = device_code, stream_code
    n_minor = int(minor.max(initial=0)) + 2
    n_major = int(major.max(initial=0)) + 2
    key = (kind * n_major + major + 1) * n_minor + minor + 1
    unique, track, counts = np.unique(key, return_inverse=True, return_counts=True)

    threads = _thread_names(rank)
    labels: list[str] = []
    track_kinds: list[int] = []
    for value in unique.tolist():
        k, rest = divmod(value, n_major * n_minor)
        a, b = divmod(rest, n_minor)
        track_kinds.append(k)
        if k <= _SYNC:
            labels.append(_stream_label(int(devices[a - 1]), int(streams[b - 1])) + (" sync" * (k == _SYNC)))
        else:
            pid = rank.pids[a - 1] if a else ""
            tid = rank.tids[b - 1] if b else ""
            labels.append(("annotations · " * (k == _ANNOTATION)) + threads.get((pid, tid), f"thread {tid}"))
    # Streams keep their numeric order; among annotations and threads the busiest comes first.
    by_use = np.where(np.array(track_kinds, np.int64) >= _ANNOTATION, -counts, 0)
    display = np.lexsort((np.arange(len(unique)), by_use, np.array(track_kinds, np.int64)))
    place = np.empty(len(unique), np.int64)
    place[display] = np.arange(len(unique))
    return place[track], [labels[i] for i in display], [track_kinds[i] for i in display]


def _stream_label(device: int, stream: int) -> str:
    on = "GPU" if device == NULL else f"GPU {device}"
    return on if stream == NULL else f"{on} stream {stream}"


def _thread_names(rank: RankTrace) -> dict[tuple[str, str], str]:
    """Readable names of (pid, tid): the profiler's thread name without the number that it repeats."""
    names: dict[tuple[str, str], str] = {}
    frame = rank.threads
    for pid, tid, name in zip(frame["pid"], frame["tid"], frame["thread_name"], strict=True):
        if isinstance(name, str) and name.strip():
            names[(str(pid), str(tid))] = name.strip()
    return names


class _KindTable:
    """Numbers the distinct (name, category, class) triples over all ranks."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, str, int], int] = {}

    def encode(self, rank: RankTrace) -> Int32:
        width = len(rank.categories) + 1
        key = (rank.name.astype(np.int64) + 1) * width + rank.category + 1
        key = key * 256 + rank.event_class
        unique, inverse = np.unique(key, return_inverse=True)
        codes = np.empty(len(unique), np.int32)
        for i, value in enumerate(unique.tolist()):
            rest, event_class = divmod(value, 256)
            name, category = divmod(rest, width)
            triple = (
                rank.names[name - 1] if name else "",
                rank.categories[category - 1] if category else "",
                event_class,
            )
            codes[i] = self._numbers.setdefault(triple, len(self._numbers))
        return codes[inverse]

    def result(self) -> Kinds:
        return Kinds(
            names=[k[0] for k in self._numbers],
            categories=[k[1] for k in self._numbers],
            classes=np.array([k[2] for k in self._numbers], np.uint8),
        )


@kernel
def _assign_depths(
    order: Int64, track: Int64, start: Int64, end: Int64, stacked: NDArray[np.bool_], n_tracks: int
) -> tuple[Int64, Int64]:
    """Depth of every row inside its track, and the number of lanes of every track.

    Rows come in `order` (track, start, longest first). On a stacked track a slice goes below the innermost
    slice that is still open; on the others into the first lane that is free. Either way the lane must be
    free: partial overlaps move down.
    """
    depth = np.zeros(len(order), np.int64)
    lanes = np.zeros(n_tracks, np.int64)
    free_at = np.empty(64, np.int64)  # end of the last slice of each lane of the current track
    open_end = np.empty(64, np.int64)  # stack of open slices: end and lane
    open_lane = np.empty(64, np.int64)
    n_open = 0
    used = 0
    current = -1
    for row in order:
        if track[row] != current:
            current = track[row]
            n_open = 0
            used = 0
        s = start[row]
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
        free_at[d] = end[row]
        used = max(used, d + 1)
        lanes[current] = max(lanes[current], used)
        open_end[n_open] = end[row]
        open_lane[n_open] = d
        if stacked[current]:
            n_open += 1
        depth[row] = d
    return depth, lanes


@kernel
def _lane_major(order: Int64, lane: Int64, lane_sizes: Int64) -> Int64:
    """Stable counting sort of `order` by lane: rows stay sorted by start inside their lane."""
    next_free = np.zeros(len(lane_sizes), np.int64)
    for i in range(1, len(lane_sizes)):
        next_free[i] = next_free[i - 1] + lane_sizes[i - 1]
    rows = np.empty(len(order), np.int64)
    for row in order:
        rows[next_free[lane[row]]] = row
        next_free[lane[row]] += 1
    return rows
