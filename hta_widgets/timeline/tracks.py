"""Tracks: the labelled groups of lanes, and which of them each slice of a rank belongs to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.ordering import distinct
from hta_widgets.trace.reader.schema import NULL

if TYPE_CHECKING:
    from hta_widgets.trace.rank_trace import RankTrace

Int64 = NDArray[np.int64]

TrackKind = Literal["stream", "sync", "annotation", "thread"]
TRACK_KINDS: tuple[TrackKind, ...] = ("stream", "sync", "annotation", "thread")
STREAM, _SYNC, _ANNOTATION, _THREAD = range(len(TRACK_KINDS))

_NO_STREAM = (NULL, -1, 2**32 - 1)  # CUPTI writes the latter two for waits of the whole device


@dataclass(frozen=True)
class Track:
    """One labelled group of lanes: `lanes` lanes from lane `first` on, holding `count` slices."""

    rank: int
    kind: TrackKind
    label: str
    first: int
    lanes: int
    count: int


def tracks_of(rank: RankTrace) -> tuple[Int64, list[str], list[int]]:
    """Track number of every row (in display order), the tracks' labels and kinds."""
    sync = np.array([category == "cuda_sync" for category in rank.categories], np.bool_)
    kind = np.where(rank.event_class == int(EventClass.ANNOTATION), np.uint8(_ANNOTATION), np.uint8(_THREAD))
    kind[sync[rank.category]] = _SYNC
    kind[rank.is_device] = STREAM
    # Streams are identified by (device, stream), everything else by (process, thread).
    on_stream = np.flatnonzero(kind <= _SYNC)
    devices, device = distinct(rank.device[on_stream])
    streams, stream = distinct(rank.stream[on_stream])
    n_major = max(len(rank.pids), len(devices))
    n_minor = max(len(rank.tids), len(streams))
    key = kind.astype(np.int64)
    key *= n_major
    key += rank.pid
    key[on_stream] += device - rank.pid[on_stream]
    key *= n_minor
    key += rank.tid
    key[on_stream] += stream - rank.tid[on_stream]
    unique, track = distinct(key)
    counts = np.bincount(track, minlength=len(unique))

    threads, device_kind = _thread_names(rank), _device_kind(rank)
    labels: list[str] = []
    track_kinds: list[int] = []
    for value in unique.tolist():
        k, rest = divmod(value, n_major * n_minor)
        a, b = divmod(rest, n_minor)
        track_kinds.append(k)
        if k <= _SYNC:
            label = _stream_label(device_kind, int(devices[a]), int(streams[b]))
            labels.append(label + (" sync" * (k == _SYNC)))
        else:
            pid, tid = rank.pids[a], rank.tids[b]
            labels.append(("annotations · " * (k == _ANNOTATION)) + threads.get((pid, tid), f"thread {tid}"))
    # Streams keep their numeric order; among annotations and threads the busiest comes first.
    by_use = np.where(np.array(track_kinds, np.int64) >= _ANNOTATION, -counts, 0)
    display = np.lexsort((np.arange(len(unique)), by_use, np.array(track_kinds, np.int64)))
    place = np.empty(len(unique), np.int64)
    place[display] = np.arange(len(unique))
    return place[track], [labels[i] for i in display], [track_kinds[i] for i in display]


def _device_kind(rank: RankTrace) -> str:
    """What the devices of a rank are called, by the categories that the profiler of their kind writes."""
    prefixes = {category.split("_")[0] for category in rank.categories}
    return next((kind.upper() for kind in ("mtia", "hpu", "xpu") if kind in prefixes), "GPU")


def _stream_label(kind: str, device: int, stream: int) -> str:
    on = kind if device == NULL else f"{kind} {device}"
    return on if stream in _NO_STREAM else f"{on} stream {stream}"


def _thread_names(rank: RankTrace) -> dict[tuple[str, str], str]:
    """Readable names of (pid, tid): the profiler's thread name without the number that it repeats."""
    names: dict[tuple[str, str], str] = {}
    frame = rank.threads
    for pid, tid, name in zip(frame["pid"], frame["tid"], frame["thread_name"], strict=True):
        if isinstance(name, str) and name.strip():
            names[(str(pid), str(tid))] = name.strip()
    return names
