"""The host's side of a dependency graph: when calls that matter begin and end, and where iterations meet.

Operators and Python frames are no points: they explain host time, but nothing depends on them. Neither are
calls that neither launch, wait nor allocate.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd

from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.replay.kinds import CALL_BEGINS, CALL_ENDS, MARK
from hta_widgets.arrays import Bool, Int32, Int64, UInt8
from hta_widgets.jit import kernel
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.ordering import order_in_groups, unique
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.reader.schema import NULL
from hta_widgets.trace.waits import sync_calls

SYNCHRONISES = re.compile(
    r"(Stream|Device|Event|Ctx|Context)Synchronize|^(cuda|hip)Free(Host)?$|^hipHostFree|^cudaMemcpy$"
    r"|MemcpyWithStream|^cudaHostAlloc|^hipHostMalloc|^hipMemcpy$|aclrtSynchronize|aclrtMemcpy$"
    r"|^ur(QueueFinish|EventWait)$|^ze\w+Synchronize$|^cnrt(QueueSync|SyncDevice|WaitNotifier|Memcpy)$"
)
DEVICE_WIDE = re.compile(
    r"DeviceSynchronize|(Ctx|Context)Synchronize|^(cuda|hip)Free$|aclrtSynchronizeDevice|^cnrtSyncDevice$"
)
ALLOCATES = re.compile(r"(Malloc|Free|HostAlloc|MemUnmap|MemMap|MemCreate|MemRelease)", re.I)

NO_WAIT, WAITS, WAITS_FOR_DEVICE = range(3)
NOT_RECORDED, WHOLE_DEVICE = -2, -1


class HostPoints(NamedTuple):
    """Points of the host in time order; at equal times calls begin and end in the order of their begin."""

    kind: UInt8  # uint8, what the point is (`kinds`)
    time: Int64  # ns
    row: Int32  # row of the call, -1 for a mark
    thread: Int32  # index into ``threads``, the thread numbers (`RankTrace.thread`) that have points
    threads: Int64
    begin: Int32  # of an end: the point where the call begins; else -1
    waits: UInt8  # uint8, of an end: NO_WAIT, WAITS or WAITS_FOR_DEVICE
    # int32, of an end: the stream (index) that the call is recorded to wait for, WHOLE_DEVICE, or
    # NOT_RECORDED
    awaited: Int32
    awaited_row: Int32  # of an end: the device row that the call is recorded to wait for, -1 for none
    mark: Int32  # of a mark: its position in the ``times`` that were asked for; else -1
    begin_of_row: Int32  # for each row of the rank: the point where this call begins, -1 for none
    launched_by: Int32  # for each row of the rank: the (outermost) call that launched it, -1 for none
    launches: Int32  # for each row of the rank: how much device work the call launched


def named(rank_trace: RankTrace, pattern: re.Pattern[str]) -> Bool:
    """For each name whether it is that of calls and the pattern is found in it.

    Names of kernels are long, and there are many.
    """
    found = np.zeros(max(len(rank_trace.names), 1), np.bool_)
    for code in _names_of_calls(rank_trace):
        found[code] = pattern.search(rank_trace.names[code]) is not None
    return found


@memoize_per_rank()
def _names_of_calls(rank_trace: RankTrace) -> list[int]:
    return unique(rank_trace.name[rank_trace.event_class == EventClass.RUNTIME]).tolist()


def host_points(
    rank_trace: RankTrace, device: Int64, streams: dict[tuple[int, int], int], marks: tuple[Int64, Int64]
) -> HostPoints:
    """The host points of a rank.

    Args:
        streams: index of each (device, stream).
        marks: times, and thread numbers, of further points.
    """
    n, start, end = rank_trace.n, rank_trace.start, rank_trace.end
    calls = np.flatnonzero(rank_trace.event_class == EventClass.RUNTIME)
    calls = calls[order_in_groups(rank_trace.thread[calls], start[calls], -end[calls])]
    outer = np.full(n, -1, np.int32)
    _outermost(calls, start, end, rank_trace.thread, outer)

    launched_by, launches = np.full(n, -1, np.int32), np.zeros(n, np.int32)
    _count_launches(device, rank_trace.launch, outer, launched_by, launches)
    synchronises = named(rank_trace, SYNCHRONISES)
    calls = calls[_matters(rank_trace, calls, outer, launches, synchronises)]

    # First what is known of each call, then of each mark: their points take it from there.
    k, m = len(calls), len(marks[0])
    begun, ended = np.append(start[calls], marks[0]), np.append(end[calls], marks[0])
    thread, threads = pd.factorize(np.append(rank_trace.thread[calls], marks[1]), sort=True)
    what, is_end, time = _in_order(begun, ended, k)
    begin = np.empty(k + m, np.int32)
    _note_begins(what, is_end, begin)
    begin_of_row = np.full(n, -1, np.int32)
    begin_of_row[calls] = begin[:k]
    stream = np.full(k + m, NOT_RECORDED, np.int32)
    awaited_row = np.full(k + m, -1, np.int32)
    for row, awaited, source in _recorded_waits(rank_trace, streams):
        point = begin_of_row[outer[row]] if outer[row] >= 0 else -1
        if point >= 0:
            stream[what[point]], awaited_row[what[point]] = awaited, source
    name = rank_trace.name[calls]
    waits = np.full(k + m, NO_WAIT, np.uint8)
    waits[:k] = np.where(synchronises[name] | (stream[:k] != NOT_RECORDED), WAITS, NO_WAIT)
    waits[:k][named(rank_trace, DEVICE_WIDE)[name]] = WAITS_FOR_DEVICE

    points = HostPoints(
        kind=np.empty(len(what), np.uint8),
        time=time,
        row=np.empty(len(what), np.int32),
        thread=np.empty(len(what), np.int32),
        threads=threads.astype(np.int64),
        begin=np.empty(len(what), np.int32),
        waits=np.empty(len(what), np.uint8),
        awaited=np.empty(len(what), np.int32),
        awaited_row=np.empty(len(what), np.int32),
        mark=np.empty(len(what), np.int32),
        begin_of_row=begin_of_row,
        launched_by=launched_by,
        launches=launches,
    )
    _fill(points, what, is_end, calls, thread.astype(np.int64), begin, waits, stream, awaited_row)
    return points


def _in_order(begun: Int64, ended: Int64, calls: int) -> tuple[Int32, Bool, Int64]:
    """The points in order: of which call or mark each is, whether of its end, and its time.

    The first of the columns are calls, which have two points, the others marks. At equal times what began
    first is first, and a call ends after it began.
    """
    size = len(begun) + calls
    what, is_end, time = np.empty(size, np.int32), np.empty(size, np.bool_), np.empty(size, np.int64)
    _as_they_begin(np.argsort(begun, kind="stable"), begun, ended, calls, what, is_end, time)
    order = np.argsort(time, kind="stable")  # almost in order, and then quick
    return what[order], is_end[order], time[order]


@kernel
def _as_they_begin(
    by_begin: Int64, begun: Int64, ended: Int64, calls: int | np.int64,
    what: Int32, is_end: Bool, time: Int64,
) -> None:  # fmt: skip
    """The points of calls and marks one by one, the end of a call behind its begin."""
    at = 0
    for i in range(len(by_begin)):
        each = by_begin[i]
        what[at], is_end[at], time[at] = each, False, begun[each]
        at += 1
        if each < calls:
            what[at], is_end[at], time[at] = each, True, ended[each]
            at += 1


@kernel
def _note_begins(what: Int32, is_end: Bool, begin: Int32) -> None:
    for at in range(len(what)):
        if not is_end[at]:
            begin[what[at]] = at


@kernel
def _fill(
    points: HostPoints, what: Int32, is_end: Bool, calls: Int64, thread: Int64,
    begin: Int32, waits: UInt8, stream: Int32, awaited_row: Int32,
) -> None:  # fmt: skip
    """Fill in what each point takes from its call or mark."""
    for at in range(len(what)):
        each = what[at]
        is_call = each < len(calls)
        points.kind[at] = (CALL_ENDS if is_end[at] else CALL_BEGINS) if is_call else MARK
        points.row[at] = calls[each] if is_call else -1
        points.thread[at] = thread[each]
        points.mark[at] = -1 if is_call else each - len(calls)
        points.begin[at] = begin[each] if is_end[at] else -1
        points.waits[at] = waits[each] if is_end[at] else NO_WAIT
        points.awaited[at] = stream[each] if is_end[at] else NOT_RECORDED
        points.awaited_row[at] = awaited_row[each] if is_end[at] else -1


def _matters(rank_trace: RankTrace, calls: Int64, outer: Int32, launches: Int32, synchronises: Bool) -> Bool:
    """The calls that are points: outermost ones that launch, wait or (beside such calls) allocate."""
    name, thread = rank_trace.name[calls], rank_trace.thread[calls]
    drives = (launches[calls] > 0) | synchronises[name]
    allocates = named(rank_trace, ALLOCATES)[name]
    matters: Bool = (outer[calls] == calls) & (drives | allocates)
    return matters & np.isin(thread, unique(thread[drives]))


def _recorded_waits(
    rank_trace: RankTrace, streams: dict[tuple[int, int], int]
) -> Iterator[tuple[int, int, int]]:
    """The rows of calls that are recorded to wait, with the stream and the device row that each waits for."""
    for row, gpu, number, source in sync_calls(rank_trace):
        yield row, WHOLE_DEVICE if number == NULL else streams.get((gpu, number), WHOLE_DEVICE), source


@kernel
def _outermost(calls: Int64, start: Int64, end: Int64, thread: Int64, outer: Int32) -> None:
    """For each call the outermost one around it on its thread; what only overlaps it counts as inside."""
    current, until, lane = np.int64(-1), np.int64(0), np.int64(-1)
    for row in calls:
        if thread[row] != lane or start[row] >= until:
            current, until, lane = row, end[row], thread[row]
        outer[row] = current


@kernel
def _count_launches(device: Int64, launch: Int32, outer: Int32, launched_by: Int32, launches: Int32) -> None:
    for row in device:
        by = outer[launch[row]] if launch[row] >= 0 else -1
        if by >= 0:
            launched_by[row] = by
            launches[by] += 1
