"""The host's side of a dependency graph: when calls that matter begin and end, and where iterations meet.

Operators and Python frames are no points: they explain host time, but nothing depends on them. Neither are
calls that neither launch, wait nor allocate.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.replay.kinds import CALL_BEGINS, CALL_ENDS, MARK
from hta_widgets.jit import kernel
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.ordering import unique
from hta_widgets.trace.reader.schema import NULL
from hta_widgets.trace.waits import sync_calls

if TYPE_CHECKING:
    from hta_widgets.trace.rank_trace import RankTrace

Int64 = npt.NDArray[np.int64]
Int32 = npt.NDArray[np.int32]
UInt8 = npt.NDArray[np.uint8]
Bool = npt.NDArray[np.bool_]

__all__ = ["ALLOCATES", "DEVICE_WIDE", "HostPoints", "host_points", "named"]

SYNCHRONISES = re.compile(
    r"(Stream|Device|Event|Ctx|Context)Synchronize|^(cuda|hip)Free(Host)?$|^hipHostFree|^cudaMemcpy$"
    r"|MemcpyWithStream|^cudaHostAlloc|^hipHostMalloc|^hipMemcpy$"
)
DEVICE_WIDE = re.compile(r"DeviceSynchronize|(Ctx|Context)Synchronize|^(cuda|hip)Free$")
ALLOCATES = re.compile(r"(Malloc|Free|HostAlloc|MemUnmap|MemMap|MemCreate|MemRelease)", re.I)

NO_WAIT, WAITS, WAITS_FOR_DEVICE = range(3)
NOT_RECORDED, WHOLE_DEVICE = -2, -1


class HostPoints(NamedTuple):
    """Points of the host in time order; at equal times calls begin and end in the order of their begin.

    Attributes:
        kind: uint8, what the point is (`kinds`).
        time: int64 ns.
        row: int64 row of the call, -1 for a mark.
        thread: int64 index into ``threads``, the thread numbers (`RankTrace.thread`) that have points.
        begin: int64, of an end: the point where the call begins; else -1.
        waits: uint8, of an end: NO_WAIT, WAITS or WAITS_FOR_DEVICE.
        awaited: int64, of an end: the stream (index) that the call is recorded to wait for, WHOLE_DEVICE, or
            NOT_RECORDED.
        awaited_row: int64, of an end: the device row that the call is recorded to wait for, -1 for none.
        mark: int64, of a mark: its position in the ``times`` that were asked for; else -1.
        begin_of_row: int64 for each row of the rank: the point where this call begins, -1 for none.
        launched_by: int64 for each row of the rank: the (outermost) call that launched it, -1 for none.
        launches: int64 for each row of the rank: how much device work the call launched.
    """

    kind: UInt8
    time: Int64
    row: Int64
    thread: Int64
    threads: Int64
    begin: Int64
    waits: UInt8
    awaited: Int64
    awaited_row: Int64
    mark: Int64
    begin_of_row: Int64
    launched_by: Int64
    launches: Int64


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
    codes: list[int] = unique(rank_trace.name[rank_trace.event_class == EventClass.RUNTIME]).tolist()
    return codes


def host_points(
    rank_trace: RankTrace, device: Int64, streams: dict[tuple[int, int], int], marks: tuple[Int64, Int64]
) -> HostPoints:
    """The host points of a rank.

    Args:
        device: the rows of device work.
        streams: index of each (device, stream).
        marks: times, and thread numbers, of further points.
    """
    n, start, end = rank_trace.n, rank_trace.start, rank_trace.end
    calls = np.flatnonzero(rank_trace.event_class == EventClass.RUNTIME)
    calls = calls[np.lexsort((-end[calls], start[calls], rank_trace.thread[calls]))]
    outer = np.full(n, -1, np.int64)
    _outermost(calls, start, end, rank_trace.thread, outer)

    launched_by = np.full(n, -1, np.int64)
    launch = rank_trace.launch[device]
    by = np.where(launch >= 0, outer[launch], -1)
    launched_by[device] = by
    launches = np.bincount(by[by >= 0], minlength=n)
    synchronises = named(rank_trace, SYNCHRONISES)
    calls = calls[_matters(rank_trace, calls, outer, launches, synchronises)]

    times, threads_of_marks = marks
    k, m = len(calls), len(times)
    kind = np.repeat(np.array([CALL_BEGINS, CALL_ENDS, MARK], np.uint8), (k, k, m))
    time = np.concatenate([start[calls], end[calls], times])
    row = np.concatenate([calls, calls, np.full(m, -1)])
    thread = np.concatenate([rank_trace.thread[calls], rank_trace.thread[calls], threads_of_marks])
    mark = np.concatenate([np.full(2 * k, -1), np.arange(m)])
    # At equal times: what began first is first, and a call ends after it began.
    begun = np.concatenate([start[calls], times])
    place = np.empty(k + m, np.int64)
    place[np.argsort(begun, kind="stable")] = np.arange(k + m)
    order = np.lexsort((np.concatenate([2 * place[:k], 2 * place[:k] + 1, 2 * place[k:]]), time))
    kind, time, row, thread, mark = kind[order], time[order], row[order], thread[order], mark[order]

    begin_of_row = np.full(n, -1, np.int64)
    begins = np.flatnonzero(kind == CALL_BEGINS)
    begin_of_row[row[begins]] = begins
    thread, threads = pd.factorize(thread, sort=True)
    stream, awaited_row = _recorded_waits(rank_trace, outer, streams)
    is_end = kind == CALL_ENDS
    waits = np.where(synchronises[rank_trace.name[row]] | (stream[row] != NOT_RECORDED), WAITS, NO_WAIT)
    waits[is_end & named(rank_trace, DEVICE_WIDE)[rank_trace.name[row]]] = WAITS_FOR_DEVICE
    return HostPoints(
        kind=kind,
        time=time,
        row=row,
        thread=thread.astype(np.int64),
        threads=threads.astype(np.int64),
        begin=np.where(is_end, begin_of_row[row], -1),
        waits=np.where(is_end, waits, NO_WAIT).astype(np.uint8),
        awaited=np.where(is_end, stream[row], NOT_RECORDED),
        awaited_row=np.where(is_end, awaited_row[row], -1),
        mark=mark,
        begin_of_row=begin_of_row,
        launched_by=launched_by,
        launches=launches,
    )


def _matters(rank_trace: RankTrace, calls: Int64, outer: Int64, launches: Int64, synchronises: Bool) -> Bool:
    """The calls that are points: outermost ones that launch, wait or (beside such calls) allocate."""
    name, thread = rank_trace.name[calls], rank_trace.thread[calls]
    drives = (launches[calls] > 0) | synchronises[name]
    allocates = named(rank_trace, ALLOCATES)[name]
    matters: Bool = (outer[calls] == calls) & (drives | allocates)
    return matters & np.isin(thread, np.unique(thread[drives]))


def _recorded_waits(
    rank_trace: RankTrace, outer: Int64, streams: dict[tuple[int, int], int]
) -> tuple[Int64, Int64]:
    """For each row the stream and the device row that its call is recorded to wait for."""
    stream, awaited = np.full(rank_trace.n, NOT_RECORDED), np.full(rank_trace.n, -1)
    if (rank_trace.event_class == EventClass.SYNC).any():
        for row, gpu, number, source in sync_calls(rank_trace):
            call = outer[row]
            if call >= 0:
                stream[call] = WHOLE_DEVICE if number == NULL else streams.get((gpu, number), WHOLE_DEVICE)
                awaited[call] = source
    return stream, awaited


@kernel
def _outermost(calls: Int64, start: Int64, end: Int64, thread: Int64, outer: Int64) -> None:
    """For each call the outermost one around it on its thread; what only overlaps it counts as inside."""
    current, until, lane = np.int64(-1), np.int64(0), np.int64(-1)
    for row in calls:
        if thread[row] != lane or start[row] >= until:
            current, until, lane = row, end[row], thread[row]
        outer[row] = current
