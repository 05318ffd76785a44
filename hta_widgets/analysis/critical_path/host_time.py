"""What host threads did: at each instant the innermost open call of a thread, or that none was open."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.arrays import Bool, Int64
from hta_widgets.jit import kernel
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.ordering import among, order_of_nesting, unique
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.reader.schema import NULL

NOTHING = -1
"""The row of a piece in which no call is open."""

# Of calls with equal times, the first of these classes is the caller.
_CALLER_FIRST = {EventClass.ANNOTATION: 0, EventClass.PYTHON: 1, EventClass.HOST_OP: 2, EventClass.RUNTIME: 3}
_CALLERS_FIRST = np.array([_CALLER_FIRST.get(each, len(_CALLER_FIRST)) for each in EventClass], np.int8)
_ON_THREADS = (*_CALLER_FIRST, EventClass.OVERHEAD)
_WORKS = (EventClass.HOST_OP, EventClass.RUNTIME, EventClass.OVERHEAD)


class HostTime(NamedTuple):
    """The time of each host thread, cut where its innermost open call changes."""

    # int64 ns: a piece lasts until the next one of its thread starts; the first of a thread starts before,
    # and its last ends after, all time
    start: Int64
    row: Int64  # row of the call, NOTHING where none is open
    # bool, the call is an operator or runtime call; else a Python frame, an annotation or nothing
    works: Bool
    offset: Int64  # the first piece of each thread, and the number of pieces
    threads: Int64  # their numbers (`RankTrace.thread`), ascending
    rows: Int64  # int64, all host rows, by thread and start

    def of_thread(self, thread: int) -> slice:
        """The pieces of a thread; none of one that has no calls."""
        at = int(np.searchsorted(self.threads, thread))
        if at == len(self.threads) or self.threads[at] != thread:
            return slice(0, 0)
        return slice(int(self.offset[at]), int(self.offset[at + 1]))


def into_calls(rank_trace: RankTrace, rows: Int64, thread: Int64) -> Int64:
    """The order in which threads go into calls: by thread and start, callers before the called.

    Args:
        rows: the calls, in file order, which decides where all else is equal. ``thread``: that of each.
    """
    by_class = _CALLERS_FIRST[rank_trace.event_class[rows]]
    return np.lexsort((by_class, -rank_trace.end[rows], rank_trace.start[rows], thread))


@memoize_per_rank()
def host_time(rank_trace: RankTrace) -> HostTime:
    """The time of each host thread of a rank that has calls."""
    on_host = (rank_trace.stream == NULL) & among(rank_trace.event_class, _ON_THREADS)
    on_host &= (rank_trace.dur > 0) & ~rank_trace.is_device
    rows = order_of_nesting(
        np.where(on_host, rank_trace.thread, -1), rank_trace.start, rank_trace.end,
        _CALLERS_FIRST[rank_trace.event_class], rank_trace.by_start,
    )  # fmt: skip
    thread = rank_trace.thread[rows]
    first = np.flatnonzero(np.append(True, thread[1:] != thread[:-1])[: len(rows)])
    threads, first = thread[first], np.append(first, len(rows))
    start, row, offset = _innermost(rows, first, rank_trace.start, rank_trace.end)
    works = among(rank_trace.event_class[row], _WORKS) & (row != NOTHING)
    return HostTime(start, row, works, offset, threads, rows)


def pieces_of(host: HostTime, thread: Int64, start: Int64, end: Int64) -> tuple[Int64, Int64, Int64, Bool]:
    """Cut spans of time, each of a thread, where that thread's innermost call changes.

    Returns:
        For each piece: the position of its span, start, row (NOTHING for none), and whether that works. A
        piece lasts until the next of its span starts. The spans of threads without calls stay whole.
    """
    first, count = np.full(len(start), NOTHING), np.ones(len(start), np.int64)
    for number in unique(thread).tolist():
        mine = host.of_thread(number)
        if mine.start < mine.stop:
            spans = np.flatnonzero(thread == number)
            at = np.searchsorted(host.start[mine], start[spans], side="right") - 1
            first[spans] = mine.start + at
            count[spans] = np.searchsorted(host.start[mine], end[spans], side="left") - at
    span = np.repeat(np.arange(len(start)), count)
    after = np.arange(len(span)) - np.repeat(np.cumsum(count) - count, count)
    piece, began, later = first[span] + after, start[span], np.flatnonzero(after)
    began[later] = host.start[piece[later]]
    row, works = np.full(len(span), NOTHING), np.zeros(len(span), np.bool_)
    called = np.flatnonzero(piece != NOTHING)
    row[called], works[called] = host.row[piece[called]], host.works[piece[called]]
    return span, began, row, works


def handed_over(host: HostTime, giver: int, taker: int, start: Int64, end: Int64) -> Int64:
    """When one thread let another go on, within each of these spans.

    The last time that recorded work of the giver ended while the taker recorded none; without any, the start.
    """
    of_giver = host.of_thread(giver)
    works = host.works[of_giver]
    ends = host.start[of_giver][1:][works[:-1] & ~works[1:]]
    of_taker = host.of_thread(taker)
    before = np.searchsorted(host.start[of_taker], ends, side="left") - 1
    if of_taker.start < of_taker.stop:
        ends = ends[~host.works[of_taker][before]]
    last = np.searchsorted(ends, end, side="right") - 1
    # Position -1, none, finds the appended one.
    return np.maximum(np.append(ends, _EVER)[last], start)


def busy_until(host: HostTime, thread: int, time: int) -> int | None:
    """When a thread last had a call open up to a time; None if never."""
    mine = host.of_thread(thread)
    at = mine.start + int(np.searchsorted(host.start[mine], time, side="left")) - 1
    if at < mine.start:
        return None
    if host.row[at] != NOTHING:
        return time
    return int(host.start[at]) if at > mine.start else None


_EVER, _NEVER = -(1 << 62), 1 << 62


@kernel
def _innermost(rows: Int64, first: Int64, start: Int64, end: Int64) -> tuple[Int64, Int64, Int64]:
    """Starts, rows and offsets of the pieces of each thread; `rows` by thread, start, longest first."""
    most = 2 * len(rows) + len(first)
    piece_start, piece_row = np.empty(most, np.int64), np.empty(most, np.int64)
    offset, stack = np.zeros(len(first), np.int64), np.empty(len(rows), np.int64)
    n = np.int64(0)
    for thread in range(len(first) - 1):
        piece_start[n], piece_row[n] = _EVER, NOTHING
        n += 1
        top = 0
        for i in range(first[thread], first[thread + 1] + 1):
            now = start[rows[i]] if i < first[thread + 1] else np.int64(_NEVER)
            while top and end[stack[top - 1]] <= now:
                over = end[stack[top - 1]]
                while top and end[stack[top - 1]] <= over:
                    top -= 1
                if piece_start[n - 1] < over:
                    piece_start[n] = over
                    n += 1
                piece_row[n - 1] = stack[top - 1] if top else NOTHING
            if now < _NEVER:
                stack[top] = rows[i]
                top += 1
                if piece_start[n - 1] < now:
                    piece_start[n] = now
                    n += 1
                piece_row[n - 1] = rows[i]
        offset[thread + 1] = n
    return piece_start[:n], piece_row[:n], offset
