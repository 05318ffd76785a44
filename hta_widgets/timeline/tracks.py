"""Tracks: the labelled groups of lanes, and which of them each slice of a rank belongs to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hta_widgets.arrays import Int64
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.ordering import distinct
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.reader.schema import NULL

TrackKind = Literal["stream", "sync", "annotation", "thread"]
KINDS: tuple[TrackKind, ...] = ("stream", "sync", "annotation", "thread")
_STREAM, _SYNC, _ANNOTATION, _MODULES, _THREAD, _PYTHON = range(6)  # in the order of display
_KIND_OF: tuple[TrackKind, ...] = ("stream", "sync", "annotation", "thread", "thread", "thread")
_MODULE = "nn.Module: "  # how PyTorch names the frame of a module's call

_ON_THREADS = {  # the label of a track, and what those of all ranks are together
    _ANNOTATION: ("annotations · {}", "annotations"),
    _MODULES: ("modules · {}", "modules"),
    _THREAD: ("{}", "threads"),
    _PYTHON: ("Python · {}", "Python"),
}
_WHOLE = "whole device"
_NO_STREAM = (NULL, -1, 2**32 - 1)  # CUPTI writes the latter two for waits of the whole device


class Described(NamedTuple):
    """What a track is: `process` runs it (or the device does), and of other ranks those are like it whose
    `alike` is the same.
    """

    kind: TrackKind
    label: str
    process: str
    alike: str


@dataclass(frozen=True)
class Track:
    """One labelled group of lanes: `lanes` lanes from lane `first` on, holding `count` slices."""

    rank: int
    kind: TrackKind
    label: str
    process: str
    alike: str
    first: int
    lanes: int
    count: int


def tracks_of(rank: RankTrace, python_apart: bool = False) -> tuple[Int64, list[Described]]:
    """Track number of every row, and the tracks in the order of display.

    `python_apart`: Python's frames do not stand around the operators that they call: modules of the model
    have a track of their own, and so has the rest.
    """
    kind = _kinds_of(rank, python_apart)
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
    # Annotations of a device are of the process that has the device's number.
    pids, first = np.unique(rank.pid[rank.is_device], return_index=True)
    numbers = rank.device[rank.is_device][first]
    processes = {
        int(pid): _device_names(device_kind, int(number), NULL)[0]
        for pid, number in zip(pids, numbers, strict=True)
    }
    described: list[Described] = []
    kinds = unique // (n_major * n_minor)
    for value in unique.tolist():
        k, rest = divmod(value, n_major * n_minor)
        a, b = divmod(rest, n_minor)
        if k <= _SYNC:
            process, alike = _device_names(device_kind, int(devices[a]), int(streams[b]))
            waits = " sync" * (k == _SYNC)
            label = process if alike == _WHOLE else f"{process} {alike}"
            described.append(Described(_KIND_OF[k], label + waits, process, alike + waits))
        else:
            thread = threads.get((rank.pids[a], rank.tids[b]), f"thread {rank.tids[b]}")
            label, alike = _ON_THREADS[k]
            process = processes.get(a) or _process_name(rank.pids[a])
            described.append(Described(_KIND_OF[k], label.format(thread), process, alike))
    # Streams keep their numeric order; among annotations and threads the busiest comes first.
    by_use = np.where(kinds >= _ANNOTATION, -counts, 0)
    display = np.lexsort((np.arange(len(unique)), by_use, kinds))
    place = np.empty(len(unique), np.int64)
    place[display] = np.arange(len(unique))
    return place[track], [described[i] for i in display]


def _kinds_of(rank: RankTrace, python_apart: bool) -> NDArray[np.uint8]:
    """Of each row, on what kind of track it lies."""
    sync = np.array([category == "cuda_sync" for category in rank.categories], np.bool_)
    kind = np.where(rank.event_class == int(EventClass.ANNOTATION), np.uint8(_ANNOTATION), np.uint8(_THREAD))
    if python_apart:
        module = np.array([name.startswith(_MODULE) for name in rank.names], np.bool_)
        python = rank.event_class == int(EventClass.PYTHON)
        kind[python] = _PYTHON
        kind[python & module[rank.name]] = _MODULES
    kind[sync[rank.category]] = _SYNC
    kind[rank.is_device] = _STREAM
    return kind


def _device_kind(rank: RankTrace) -> str:
    """What the devices of a rank are called; those that the file shows no sign of are mostly GPUs."""
    word = rank.accelerator.word
    return "GPU" if word == "device" else word


def _device_names(kind: str, device: int, stream: int) -> tuple[str, str]:
    """The device, and what it has in common with those of other ranks."""
    process = kind if device == NULL else f"{kind} {device}"
    return process, _WHOLE if stream in _NO_STREAM else f"stream {stream}"


def _process_name(pid: str) -> str:
    return f"process {pid}" if pid.isdecimal() else pid


def _thread_names(rank: RankTrace) -> dict[tuple[str, str], str]:
    """Readable names of (pid, tid); the profiler ends that of a thread without one with empty brackets."""
    names: dict[tuple[str, str], str] = {}
    frame = rank.threads
    for pid, tid, name in zip(frame["pid"], frame["tid"], frame["thread_name"], strict=True):
        if isinstance(name, str) and name.strip():
            names[(str(pid), str(tid))] = name.strip().removesuffix(" ()")
    return names
