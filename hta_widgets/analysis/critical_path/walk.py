"""The walk back from the end of a window to its start, at each point to the cause that came last."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hta_widgets.analysis.critical_path.device import PROMPT_NS, Device
from hta_widgets.analysis.critical_path.host import Host
from hta_widgets.jit import kernel
from hta_widgets.trace.reader.schema import NULL

Int64 = npt.NDArray[np.int64]
Whole = int | np.int64

__all__ = ["KINDS", "walk"]

KINDS = ("operator", "host", "sync", "kernel", "launch_delay", "kernel_kernel", "dependency")
OPERATOR, HOST, SYNC, KERNEL, LAUNCH_DELAY, KERNEL_KERNEL, DEPENDENCY = range(len(KINDS))
NOBODY = -1


@kernel
def walk(device: Device, host: Host, position: Whole, thread: Whole, end: Whole, start: Whole) -> Int64:
    """The path from `end` back to `start`, latest segment first.

    Args:
        position: device event that the path ends with, or -1 for ``thread``, which then is busy or idle at
            `end`.

    Returns:
        int64[k, 6]: start, end, kind (index in `KINDS`), row (-1 for none), thread index (-1 on the device),
        1 if the step was inferred. Each segment starts where the next one ends.
    """
    segments = np.empty((64, 6), np.int64)
    n = 0
    time = np.int64(end)
    # Device events are visited in falling order of position, so events without length cannot form a circle.
    limit = len(device.row) if position < 0 else position
    while time > start:
        if n + 2 > len(segments):
            larger = np.empty((2 * len(segments), 6), np.int64)
            larger[:n] = segments[:n]
            segments = larger
        if position >= 0:
            row, limit = device.row[position], position
            begun = device.start[position]
            _put(segments, n, begun, time, KERNEL, row, NOBODY, 0)
            n += 1
            previous, source = device.previous[position], device.source[position]
            arrived, kind, inferred = np.int64(NULL), -1, np.int64(0)
            if previous >= 0:
                arrived, kind = device.end[previous], KERNEL_KERNEL
            if source >= 0 and device.end[source] > arrived:
                arrived, kind, inferred = device.end[source], DEPENDENCY, np.int64(device.inferred[position])
            if device.called[position] > arrived:
                arrived, kind, inferred = device.handed[position], LAUNCH_DELAY, np.int64(0)
            if kind < 0 or (device.handed[position] == NULL and begun - arrived > PROMPT_NS):
                # Its launch is not recorded and nothing else just ended: the host launched it about now.
                time, position, thread = begun, NOBODY, host.main
                continue
            _put(segments, n, arrived, begun, kind, row, NOBODY, inferred)
            n += 1
            time = arrived
            if kind == LAUNCH_DELAY:
                thread, position = device.thread[position], NOBODY
            else:
                position = source if kind == DEPENDENCY else previous
            continue
        first, last = host.offset[thread], host.offset[thread + 1]
        at = first + np.searchsorted(host.start[first:last], time) - 1
        inside = at >= first and host.end[at] >= time
        if inside and host.works[at]:
            awaited = _awaited(device, host, at, time, limit)
            if awaited >= 0:
                arrived = device.end[awaited]
                _put(segments, n, arrived, time, SYNC, host.row[at], thread, np.int64(host.inferred[at]))
                position = awaited
            else:
                arrived = host.start[at]
                _put(segments, n, arrived, time, OPERATOR, host.row[at], thread, 0)
            n += 1
            time = arrived
            continue
        # Nothing is recorded on the thread: it follows the last operator to end on another thread.
        row = host.row[at] if inside else np.int64(-1)
        begun = host.start[at] if inside else (host.end[at] if at >= first else np.int64(start))
        other = np.searchsorted(host.end_time, time, side="right") - 1
        inferred = np.int64(0)
        if other >= 0 and host.end_time[other] > begun and host.end_thread[other] != thread:
            begun, thread_then, inferred = host.end_time[other], host.end_thread[other], np.int64(1)
        else:
            thread_then = thread
        _put(segments, n, begun, time, HOST, row, thread, inferred)
        n += 1
        time, thread = begun, thread_then
    return segments[:n]


@kernel
def _put(
    segments: Int64,
    n: Whole,
    start: Whole,
    end: Whole,
    kind: Whole,
    row: Whole,
    thread: Whole,
    inferred: Whole,
) -> None:
    segments[n, 0], segments[n, 1], segments[n, 2] = start, end, kind
    segments[n, 3], segments[n, 4], segments[n, 5] = row, thread, inferred


@kernel
def _awaited(device: Device, host: Host, piece: Whole, time: Whole, limit: Whole) -> Whole:
    """Position of the device event whose end a call that is open at `time` waited for, -1 for none."""
    position = host.waits_for[piece]
    group = host.waits_in[piece]
    if group >= 0:
        first, last = device.group_offset[group], device.group_offset[group + 1]
        items = device.group_items[first:last]
        low, high = 0, len(items)
        while low < high:
            middle = (low + high) // 2
            if device.end[items[middle]] <= time and items[middle] < limit:
                low = middle + 1
            else:
                high = middle
        position = max(position, items[low - 1]) if low else position
    if position < 0 or position >= limit or device.end[position] > time:
        return NOBODY
    # Work that ended before the call, or before this piece of it, did not delay anything here.
    return position if device.end[position] > host.start[piece] else NOBODY
