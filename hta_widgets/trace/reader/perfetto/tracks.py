"""Which process and thread the tracks of a Perfetto trace are of, and the events that say so in JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hta_widgets.trace.reader.perfetto.layout import (
    FLAGS,
    IS_PROCESS,
    IS_SEQUENCE,
    IS_THREAD,
    LABELS,
    PARENT,
    PID,
    PROCESS_NAME,
    PROCESS_SORT,
    THREAD_NAME,
    THREAD_SORT,
    TID,
    TRACK_NAME,
)

_DEEPEST = 64
_NO_SORT = -(1 << 63)
_OVERHEAD = 0x7FFFFFFF  # PyTorch's process -1 for the profiler's own work, without its sign


@dataclass(frozen=True)
class Track:
    """The process and thread of a track, as JSON has them, and its own name."""

    pid: str
    tid: str
    name: str


def places(tracks: npt.NDArray[np.int64], names: Sequence[str]) -> list[Track]:
    """The place of each track: that of the nearest one above it that is of a thread, else of a process.

    A track of neither stays apart, under its name or its number.
    """
    rows = tracks.tolist()
    cache: dict[int, tuple[str | None, str | None]] = {}

    def place(at: int) -> tuple[str | None, str | None]:
        path: list[int] = []
        found: tuple[str | None, str | None] = (None, None)
        while at >= 0 and at not in cache and len(path) < _DEEPEST and at not in path:
            row = rows[at]
            if row[FLAGS] & IS_THREAD:
                found = (_pid(row[PID]), str(row[TID]))
                break
            if row[FLAGS] & IS_PROCESS:
                found = (_pid(row[PID]), None)
                break
            path.append(at)
            at = row[PARENT]
        else:
            found = cache.get(at, found)
        for track in path:
            cache[track] = found
        return found

    result = []
    for at, row in enumerate(rows):
        pid, tid = (None, None) if row[FLAGS] & IS_SEQUENCE else place(at)
        name = names[row[TRACK_NAME]] if row[TRACK_NAME] >= 0 else ""
        result.append(
            Track("" if pid is None else pid, (name or str(row[TID])) if tid is None else tid, name)
        )
    return result


def metadata_events(
    tracks: npt.NDArray[np.int64], names: Sequence[str]
) -> list[tuple[str, str, str, str, Any]]:
    """(name of the event, pid, tid, column, value) of each name and place that the descriptors state."""
    found: dict[tuple[str, str, str], tuple[str, Any]] = {}

    def add(event: str, pid: str, tid: str, column: str, value: Any) -> None:
        found.setdefault((event, pid, tid), (column, value))

    for row in tracks.tolist():
        pid, tid = _pid(row[PID]), str(row[TID])
        own = names[row[TRACK_NAME]] if row[TRACK_NAME] >= 0 else ""
        if row[FLAGS] & IS_PROCESS:
            name = names[row[PROCESS_NAME]] if row[PROCESS_NAME] >= 0 else own
            if name:
                add("process_name", pid, "0", "args_name", name)
            if row[LABELS] >= 0:
                add("process_labels", pid, "0", "args_labels", names[row[LABELS]])
            if row[PROCESS_SORT] != _NO_SORT:
                add("process_sort_index", pid, "0", "args_sort_index", row[PROCESS_SORT])
        if row[FLAGS] & IS_THREAD:
            name = names[row[THREAD_NAME]] if row[THREAD_NAME] >= 0 else own
            if name:
                add("thread_name", pid, tid, "args_name", name)
            if row[THREAD_SORT] != _NO_SORT:
                add("thread_sort_index", pid, tid, "args_sort_index", row[THREAD_SORT])
    return [(event, pid, tid, column, value) for (event, pid, tid), (column, value) in found.items()]


def _pid(number: int) -> str:
    return "-1" if number == _OVERHEAD else str(number)
