"""The host side: each thread's innermost open call at each instant, and the device work it waits for."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from hta_widgets.analysis.critical_path.device import ALL, Device, group_of
from hta_widgets.jit import kernel
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.reader.schema import NULL
from hta_widgets.trace.waits import sync_calls

if TYPE_CHECKING:
    from hta_widgets.trace.rank_trace import RankTrace

Int64 = npt.NDArray[np.int64]
Bool = npt.NDArray[np.bool_]

__all__ = ["Host", "host_rows", "host_side", "thread_of"]

# Calls that return only when device work is done. A copy waits for its own copy (`wait_item`) where the
# device finished it before the call returned; asynchronous copies from or to pageable memory do that too.
_WAITS = re.compile(r"^(cuda|hip|cu|mu|xpu)\w*Synchronize|^(cuda|hip)(Free|FreeHost)$")
_COPIES = re.compile(r"^(cuda|hip|cu)Memcpy")
# Of calls with equal times, the first of these classes is the caller.
_CALLER_FIRST = {EventClass.ANNOTATION: 0, EventClass.PYTHON: 1, EventClass.HOST_OP: 2, EventClass.RUNTIME: 3}
_ON_THREADS = (*_CALLER_FIRST, EventClass.OVERHEAD)
_WORKS = (EventClass.HOST_OP, EventClass.RUNTIME, EventClass.OVERHEAD)

NO_GROUP = -1


class Host(NamedTuple):
    """The host side of a rank as disjoint pieces: the innermost open call of each thread over time.

    Attributes (int64 unless said otherwise; pieces sorted by thread, then time):
        start, end, row: the piece and its call.
        works: bool, the call is an operator or runtime call; else a Python frame or an annotation.
        waits_in: group of device work that the call waits for (see `Device.group_items`), -1 for none.
        waits_for: position of the one device event that the call waits for, -1 for none.
        waits_since: start of that call.
        inferred: bool, the wait is not recorded but inferred from the call's name.
        offset: first piece of each thread, and the number of pieces.
        end_time, end_thread: the ends of working pieces on threads that launch device work, by time.
        main: the thread with most launches.
    """

    start: Int64
    end: Int64
    row: Int64
    works: Bool
    waits_in: Int64
    waits_for: Int64
    waits_since: Int64
    inferred: Bool
    offset: Int64
    end_time: Int64
    end_thread: Int64
    main: int


def host_rows(rank_trace: RankTrace) -> Int64:
    """The rows that host threads spend time in, in file order."""
    on_host = (rank_trace.stream == NULL) & np.isin(rank_trace.event_class, _ON_THREADS)
    return np.flatnonzero(on_host & (rank_trace.dur > 0) & ~rank_trace.is_device)


def thread_of(rank_trace: RankTrace) -> Int64:
    """int64 number of each row's (pid, tid); one space for all rows of the rank."""
    return rank_trace.pid.astype(np.int64) * len(rank_trace.tids) + rank_trace.tid


def caller_first(rank_trace: RankTrace, rows: Int64) -> Int64:
    """Position of each row among rows of equal times: callers before the called, then file order."""
    rank = np.full(len(EventClass), len(_CALLER_FIRST), np.int64)
    rank[list(_CALLER_FIRST)] = list(_CALLER_FIRST.values())
    return rank[rank_trace.event_class[rows]]


def host_side(rank_trace: RankTrace, device: Device, threads: Int64) -> Host:
    """The host side of one rank.

    Args:
        device: the rank's device side, which calls wait for.
        threads: thread number (as `thread_of`) of each thread index, ascending.
    """
    rows = host_rows(rank_trace)
    lane = np.searchsorted(threads, thread_of(rank_trace)[rows])
    order = np.lexsort((caller_first(rank_trace, rows), -rank_trace.end[rows], rank_trace.start[rows], lane))
    rows, lane = rows[order], lane[order]
    row, start, end, thread = _innermost(rows, rank_trace.start, rank_trace.end, lane)
    works = np.isin(rank_trace.event_class[row], _WORKS)
    waits_in, waits_for, inferred = _waiting(rank_trace, device)
    launching = np.bincount(device.thread[device.thread >= 0], minlength=len(threads))
    ends = np.flatnonzero(works & (launching[thread] > 0))
    ends = ends[np.argsort(end[ends], kind="stable")]
    return Host(
        start=start,
        end=end,
        row=row,
        works=works,
        waits_in=waits_in[row],
        waits_for=waits_for[row],
        waits_since=rank_trace.start[row],
        inferred=inferred[row],
        offset=np.searchsorted(thread, np.arange(len(threads) + 1)).astype(np.int64),
        end_time=end[ends],
        end_thread=thread[ends],
        main=int(launching.argmax()) if len(launching) else 0,
    )


def _waiting(rank_trace: RankTrace, device: Device) -> tuple[Int64, Int64, Bool]:
    """For each row the group it waits for, the device event it waits for, and whether that is inferred."""
    waits_in = np.full(rank_trace.n, NO_GROUP, np.int64)
    waits_for = np.full(rank_trace.n, -1, np.int64)
    inferred = np.zeros(rank_trace.n, np.bool_)
    calls = np.flatnonzero(rank_trace.event_class == EventClass.RUNTIME)
    if not len(calls) or not len(device.row):
        return waits_in, waits_for, inferred

    def named(pattern: re.Pattern[str]) -> Int64:
        matches = np.array([bool(pattern.search(name)) for name in rank_trace.names], np.bool_)
        return calls[matches[rank_trace.name[calls]]]

    waiting = named(_WAITS)
    waits_in[waiting], inferred[waiting] = ALL, True
    copies = named(_COPIES)
    last = np.full(rank_trace.n, -1, np.int64)
    launched = np.flatnonzero(rank_trace.launch[device.row] >= 0)
    last[rank_trace.launch[device.row[launched]]] = launched  # positions ascend by end: the last one stays
    waits_for[copies], inferred[copies] = last[copies], True

    recorded = sync_calls(rank_trace)
    position = np.full(rank_trace.n, -1, np.int64)
    position[device.row] = np.arange(len(device.row))
    for call, gpu, stream, source in recorded:
        inferred[call] = False
        if source >= 0:
            waits_in[call], waits_for[call] = NO_GROUP, position[source]
        else:
            waits_in[call] = group_of(device, gpu, stream)
    return waits_in, waits_for, inferred


@kernel
def _innermost(rows: Int64, start: Int64, end: Int64, lane: Int64) -> tuple[Int64, Int64, Int64, Int64]:
    """Cut each lane into pieces by the innermost row; `rows` by lane, start, longest first."""
    n = len(rows)
    piece_row, piece_start = np.empty(2 * n, np.int64), np.empty(2 * n, np.int64)
    piece_end, piece_lane = np.empty(2 * n, np.int64), np.empty(2 * n, np.int64)
    stack = np.empty(n, np.int64)
    found, top, cursor = 0, 0, np.int64(0)
    for i in range(n + 1):
        # A new lane, or the end: close everything that is open.
        ends = i == n or (i > 0 and lane[i] != lane[i - 1])
        until = np.int64(1 << 62) if ends else start[rows[i]]
        for _ in range(2):
            while top and cursor < until:
                open_row = stack[top - 1]
                if end[open_row] <= cursor:
                    top -= 1
                    continue
                stop = min(end[open_row], until)
                piece_row[found], piece_start[found] = open_row, cursor
                piece_end[found], piece_lane[found] = stop, lane[i - 1]
                found += 1
                cursor = stop
            if not ends or i == n:
                break
            top, ends, until = 0, False, start[rows[i]]
        if i < n:
            while top and end[stack[top - 1]] <= until:
                top -= 1
            cursor = until
            stack[top] = rows[i]
            top += 1
    return piece_row[:found], piece_start[:found], piece_end[:found], piece_lane[:found]
