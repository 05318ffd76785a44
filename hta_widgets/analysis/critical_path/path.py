"""The critical path of a window of one rank, as a table of segments without gaps."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pandas as pd

from hta_widgets.analysis.core.entry import Analysis
from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.critical_path.device import Device, device_side
from hta_widgets.analysis.critical_path.host import Host, host_rows, host_side, thread_of
from hta_widgets.analysis.critical_path.summary import sentence
from hta_widgets.analysis.critical_path.walk import (
    DEPENDENCY,
    HOST,
    KERNEL,
    KERNEL_KERNEL,
    KINDS,
    LAUNCH_DELAY,
    OPERATOR,
    SYNC,
    walk,
)
from hta_widgets.analysis.replay.device_events import device_rows
from hta_widgets.charts.spec import Segments, Series, Stack
from hta_widgets.engine import checkpoint
from hta_widgets.errors import RECORD_DEVICE, MissingDataError
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.reader.schema import NULL
from hta_widgets.trace.scope import Scope

if TYPE_CHECKING:
    from hta_widgets.trace.model import Trace
    from hta_widgets.trace.rank_trace import RankTrace

__all__ = ["ANALYSIS", "DATA_LOADING", "NO_OPERATOR", "critical_path"]

DATA_LOADING = (r"DataLoader",)
NO_OPERATOR = "(no operator recorded)"
_COLUMNS = {
    "rank": "int64",
    "start_ns": "int64",
    "end_ns": "int64",
    "dur_ns": "int64",
    "kind": "str",
    "event_id": "int64",
    "name": "str",
    "event_class": "str",
    "thread": "str",
    "stream": "Int64",
    "bound_by": "str",
    "inferred": "bool",
}
_BOUND_BY_KIND = {
    SYNC: "sync",
    LAUNCH_DELAY: "kernel_launch_overhead",
    KERNEL_KERNEL: "kernel_kernel_overhead",
    DEPENDENCY: "sync",
}
_BOUND_BY_CLASS = {
    EventClass.COMMUNICATION: "gpu_communication_bound",
    EventClass.MEMORY_COPY: "gpu_memory_bound",
    EventClass.MEMORY_SET: "gpu_memory_bound",
}

_LIMITS = (
    "cpu_bound",
    "data_loading",
    "gpu_compute_bound",
    *dict.fromkeys([*_BOUND_BY_CLASS.values(), *_BOUND_BY_KIND.values()]),
)

Int64 = npt.NDArray[np.int64]
Bool = npt.NDArray[np.bool_]


class _Sides:
    """What is computed once per rank: its host and device side, and the index of each thread."""

    def __init__(self, rank_trace: RankTrace) -> None:
        thread = thread_of(rank_trace)
        calls = rank_trace.launch[device_rows(rank_trace)]
        self.host_rows = host_rows(rank_trace)
        self.threads = np.unique(np.append(thread[self.host_rows], thread[calls[calls >= 0]]))
        self.device: Device = device_side(rank_trace, thread, self.threads)
        checkpoint()
        self.host: Host = host_side(rank_trace, self.device, self.threads)
        self.launches = np.bincount(self.device.thread[self.device.thread >= 0], minlength=len(self.threads))
        # When device work was caused, ascending, and the last to end (a position) of what was caused so far.
        launch = rank_trace.launch[self.device.row]
        caused = np.where(launch >= 0, rank_trace.start[launch], self.device.start)
        order = np.argsort(caused, kind="stable")
        self.caused, self.last_to_end = caused[order], np.maximum.accumulate(order)


_sides_of = memoize_per_rank()(_Sides)


def critical_path(
    trace: Trace,
    scope: Scope | None = None,
    *,
    annotation: str | None = None,
    instance: int = 0,
    data_loading: Sequence[str] = DATA_LOADING,
) -> pd.DataFrame:
    """What was a rank waiting for at each instant of a window?

    The walk starts at the end of the window, with the device event that finishes last of all work launched
    before it or, if the device is done by then, with the host. It goes back from effect to cause and, of
    several causes, takes the last one:

    - a device event starts after the event before it on its stream, after its launch (the call's end; if the
      call is still open then, its start; a graph launch launches many events), and after the event on another
      stream that it waits for. The time from the last of them to its start is a segment of its own.
      Where the launch is not recorded and nothing ended within 10 us before, the host is taken to have
      launched the event just then.
    - a synchronising call returns after the device work it waits for; the rest of the call is its own time.
    - any other call follows what its thread did before. If the trace shows nothing on the thread, it follows
      the last operator to end on another launching thread (autograd's threads); this is inferred.

    Waits are taken from ``cuda_sync`` events. Without these (``inferred``) synchronising calls are known by
    name and wait for the last work to end before they return, and an event that starts within 10 us of the
    end of work on another stream, although it could have started over 10 us earlier, waited for that work.

    Args:
        trace: the job.
        scope: ranks, and the iterations or the time window to look at. Without either, the first iteration
            that is not cut by the recording.
        annotation: instead, take the window of a host annotation whose name contains this text.
        instance: which one, counted in time order from 0.
        data_loading: regular expressions; host time inside annotations and calls that match one is
            ``data_loading``.

    Returns:
        One row per segment, by rank and time. Within a window each segment starts where the one before ends,
        the first at its start and the last at its end. Columns: rank int64; start_ns, end_ns, dur_ns (int64,
        ns); kind str (operator, host, sync, kernel, launch_delay, kernel_kernel, dependency); event_id int64
        (-1 for none), name, event_class (str) of the event that the segment is attributed to (of delays: the
        event that was delayed); thread str ("pid/tid", empty on the device); stream Int64 (null on the host);
        bound_by str (cpu_bound, data_loading, gpu_compute_bound, gpu_communication_bound, gpu_memory_bound,
        kernel_launch_overhead, kernel_kernel_overhead, sync); inferred bool.

    Raises:
        MissingDataError: no selected rank has device work with a recorded launch.
        ValueError: the annotation has no such instance.

    The causes are those of the critical path analysis of Holistic Trace Analysis (`CriticalPathAnalysis`),
    whose path is the longest chain of work and leaves out waiting; this one has no gaps.
    """
    scope = scope or Scope()
    frames: list[pd.DataFrame] = []
    ranks = trace.ranks_of(scope)
    launched = False
    for rank in ranks:
        checkpoint()
        rank_trace = trace.rank(rank)
        if not (rank_trace.launch >= 0).any():
            continue
        launched = True
        windows = _windows(rank_trace, scope, annotation, instance)
        if windows:
            frames.append(_of_rank(rank_trace, windows, data_loading))
    if ranks and not launched:
        raise MissingDataError(
            "link from device work to its launch",
            RECORD_DEVICE,
            "no device event has a launching call with the same correlation id",
        )
    if not frames:
        return pd.DataFrame({name: pd.Series(dtype=dtype) for name, dtype in _COLUMNS.items()})
    frame = pd.concat(frames, ignore_index=True) if len(frames) > 1 else frames[0]
    return frame.astype(_COLUMNS)


def _windows(
    rank_trace: RankTrace, scope: Scope, annotation: str | None, instance: int
) -> list[tuple[int, int]]:
    if annotation is not None:
        rows = annotation_rows(rank_trace, annotation)
        if not 0 <= instance < len(rows):
            raise ValueError(
                f"{annotation!r} has {len(rows)} instances on rank {rank_trace.rank}, not {instance}"
            )
        row = rows[instance]
        return [(int(rank_trace.start[row]), int(rank_trace.end[row]))]
    if scope.iterations is None and scope.window_ns is None:
        frame = rank_trace.iterations
        whole = frame[~frame["partial"]]
        chosen = (whole if len(whole) else frame).head(1)
        spans = chosen[["start_ns", "end_ns"]].to_numpy(np.int64)
    else:
        spans = rank_trace.windows(scope)
    return [(int(first), int(last)) for first, last in spans if first < last]


def annotation_rows(rank_trace: RankTrace, text: str) -> Int64:
    """The host rows whose name contains `text`, in time order: annotations, or else other calls."""
    matches = np.array([text in name for name in rank_trace.names], np.bool_)[rank_trace.name]
    matches &= (
        (rank_trace.stream == NULL) & ~rank_trace.is_device & (rank_trace.event_class != EventClass.SYNC)
    )
    annotations = matches & (rank_trace.event_class == EventClass.ANNOTATION)
    chosen = annotations if annotations.any() else matches
    return rank_trace.by_start[chosen[rank_trace.by_start]]


def _of_rank(
    rank_trace: RankTrace, windows: Sequence[tuple[int, int]], data_loading: Sequence[str]
) -> pd.DataFrame:
    sides = _sides_of(rank_trace)
    paths = []
    for first, last in windows:
        checkpoint()
        segments = walk(sides.device, sides.host, *_end(sides, last), first)[::-1]
        segments[:, :2] = np.clip(segments[:, :2], first, last)
        paths.append(segments[segments[:, 0] < segments[:, 1]])
    return _frame(rank_trace, sides, np.concatenate(paths), data_loading)


def _end(sides: _Sides, last: int) -> tuple[int, int, int]:
    """Where the path of a window that ends at `last` ends: device position, thread index, time."""
    device, host = sides.device, sides.host
    at = int(np.searchsorted(sides.caused, last, side="left")) - 1
    if at >= 0:
        position = int(sides.last_to_end[at])
        if device.end[position] >= last:
            return position, -1, int(device.end[position])
    # Of the threads that are busy at the end, the one with the most launches, else the last to be busy.
    busy = []
    for thread, (first, stop) in enumerate(pairwise(host.offset.tolist())):
        piece = first + int(np.searchsorted(host.start[first:stop], last, side="left")) - 1
        if piece >= first:
            busy.append((min(int(host.end[piece]), last), int(sides.launches[thread]), thread))
    return -1, max(busy)[2] if busy else host.main, last


def _frame(
    rank_trace: RankTrace,
    sides: _Sides,
    segments: Int64,
    data_loading: Sequence[str],
) -> pd.DataFrame:
    start, end, kind, row, thread, inferred = np.ascontiguousarray(segments.T)
    known = row >= 0
    event_class = np.where(known, rank_trace.event_class[row], len(EventClass))
    on_device = thread < 0
    stream = pd.Series(rank_trace.stream[row], dtype="Int64").mask(
        ~on_device | (rank_trace.stream[row] == NULL)
    )
    return pd.DataFrame(
        {
            "rank": rank_trace.rank,
            "start_ns": start,
            "end_ns": end,
            "dur_ns": end - start,
            "kind": _text(KINDS, kind),
            "event_id": np.where(known, rank_trace.event_id[row], -1),
            "name": _text(
                [*rank_trace.names, NO_OPERATOR],
                np.where(known, rank_trace.name[row], len(rank_trace.names)),
            ),
            "event_class": _text([*(event_class.label for event_class in EventClass), ""], event_class),
            "thread": _text(_thread_labels(rank_trace, sides.threads), thread),
            "stream": stream,
            "bound_by": _bound_by(rank_trace, sides, kind, thread, event_class, start, data_loading),
            "inferred": inferred == 1,
        }
    )


def _text(texts: Sequence[str], codes: Int64) -> pd.Series[str]:
    return pd.Series(pd.array(list(texts), dtype="str").take(codes))


def _thread_labels(rank_trace: RankTrace, threads: Int64) -> list[str]:
    width = len(rank_trace.tids)
    labels = [
        f"{rank_trace.pids[number // width]}/{rank_trace.tids[number % width]}" for number in threads.tolist()
    ]
    return [*labels, ""]  # thread -1, the device, finds the empty one


def _bound_by(
    rank_trace: RankTrace,
    sides: _Sides,
    kind: Int64,
    thread: Int64,
    event_class: Int64,
    start: Int64,
    data_loading: Sequence[str],
) -> pd.Series[str]:
    by_class = np.full(len(EventClass) + 1, _LIMITS.index("gpu_compute_bound"))
    by_class[list(_BOUND_BY_CLASS)] = [_LIMITS.index(label) for label in _BOUND_BY_CLASS.values()]
    by_kind = np.zeros(len(KINDS), np.int64)
    by_kind[list(_BOUND_BY_KIND)] = [_LIMITS.index(label) for label in _BOUND_BY_KIND.values()]
    bound = np.where(kind == KERNEL, by_class[event_class], by_kind[kind])
    loading = np.flatnonzero((kind == OPERATOR) | (kind == HOST))
    loading = loading[_within(rank_trace, sides, thread[loading], start[loading], data_loading)]
    bound[loading] = _LIMITS.index("data_loading")
    return _text(_LIMITS, bound)


def _within(
    rank_trace: RankTrace, sides: _Sides, thread: Int64, time: Int64, patterns: Sequence[str]
) -> Bool:
    """Which (thread, time) lie within a host row whose name matches one of the patterns."""
    within = np.zeros(len(time), np.bool_)
    named = np.array(
        [any(re.search(pattern, name) for pattern in patterns) for name in rank_trace.names], np.bool_
    )
    rows = sides.host_rows[named[rank_trace.name[sides.host_rows]]]
    if not len(rows):
        return within
    lane = np.searchsorted(sides.threads, thread_of(rank_trace)[rows])
    for lane_id in np.unique(lane).tolist():
        mine = rows[lane == lane_id]
        mine = mine[np.argsort(rank_trace.start[mine], kind="stable")]
        starts, ends = rank_trace.start[mine], np.maximum.accumulate(rank_trace.end[mine])
        here = np.flatnonzero(thread == lane_id)
        at = np.searchsorted(starts, time[here], side="right") - 1
        within[here] = (at >= 0) & (ends[np.maximum(at, 0)] > time[here])
    return within


_HELD_UP = (
    Series("cpu_bound", "Host", "host"),
    Series("data_loading", "Data loading", "host", "/"),
    Series("gpu_compute_bound", "Compute", "compute"),
    Series("gpu_communication_bound", "Communication", "communication"),
    Series("gpu_memory_bound", "Memory", "memory"),
    Series("kernel_launch_overhead", "Launch delay", "idle"),
    Series("kernel_kernel_overhead", "Between kernels", "idle", "/"),
    Series("sync", "Synchronisation", "sync"),
)

ANALYSIS = Analysis(
    kind="critical_path",
    label="Critical path",
    group="Critical path",
    title="What decides how long the window takes",
    function=critical_path,
    sentence=sentence,
    chart=Stack(_HELD_UP, "path_ns", part="bound_by", value="dur_ns"),
    requires=("link from device work to its launch",),
    pictured=Segments(_HELD_UP, "start_ns", "dur_ns", "bound_by", "name"),
)
