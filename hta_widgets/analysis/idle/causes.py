"""Assigns every instant without device work to exactly one cause.

The causes are disjoint intervals that together are the complement of the busy time, from the distant past to
the distant future. So in every window they add up to its idle time to the nanosecond, and a change of the
window costs a few binary searches.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

import numpy as np

from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.device_time.busy import busy, device_work
from hta_widgets.arrays import Bool, Int64
from hta_widgets.engine import checkpoint
from hta_widgets.jit import kernel
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.ordering import among, rows_with
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.reader.schema import NULL
from hta_widgets.trace.scope import Scope

HOST_CAUSES = ("host_sync", "data_stall", "host_busy")
CAUSES = (*HOST_CAUSES, "launch_latency", "kernel_wait", "device_wait", "unknown", "edge")

_SPLITS = 8
# Earlier and later than any trace; twice this still fits an int64.
_FAR = 1 << 61
_CALLS = (EventClass.HOST_OP, EventClass.RUNTIME, EventClass.PYTHON)

# Host calls that return only when the device has caught up: the synchronize family of CUDA, HIP and their
# driver interfaces, of CANN, Level Zero and its unified runtime, and CNRT; copies that are not asynchronous
# (PyTorch on ROCm copies with hipMemcpyWithStream), frees (they synchronise implicitly), and the operators
# that read a value back.
_SYNCHRONISING = re.compile(
    r"^(cuda|hip|cu|musa|hpu)\w*Synchronize"
    r"|^(cuda|hip|cu|musa)Memcpy(?!\w*Async)"
    r"|^(cuda|hip|musa)Free$"
    r"|^(AscendCL@)?aclrt(Synchronize\w+|Memcpy)$"
    r"|^ur(QueueFinish|EventWait)$|^ze\w+Synchronize$"
    r"|^cnrt(QueueSync|SyncDevice|WaitNotifier|Memcpy)$"
    r"|^aten::(item|_local_scalar_dense)$"
)
# `enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__`, or the Python frame `dataloader.py(630):
# __next__`.
_DATA_LOADING = re.compile(r"dataloader.*next", re.IGNORECASE)


def is_synchronising(name: str) -> bool:
    """Whether a host call of this name returns only when the device has caught up."""
    return _SYNCHRONISING.search(name) is not None


def is_data_loading(name: str) -> bool:
    """Whether a host event of this name is the wait for the data loader's next batch."""
    return _DATA_LOADING.search(name) is not None


class IdleCauses:
    """The idle time of one device side.

    Attributes:
        gaps: every stretch without device work; the first begins, and the last ends, far outside the trace.
        next_row: int64 row of the device work that ends each gap, -1 for the last gap.
        causes: cause -> the part of the gaps that it explains; see `idle_breakdown` for the meanings.
    """

    def __init__(self, gaps: Intervals, next_row: Int64, causes: dict[str, Intervals]) -> None:
        self.gaps, self.next_row, self.causes = gaps, next_row, causes

    @property
    def late_host(self) -> Intervals:
        """When nothing runs as the host has not launched it yet, or the launch has not arrived."""
        return self.causes["host_busy"] | self.causes["host_sync"] | self.causes["launch_latency"]


class _Threads:
    """What the threads that launch device work, or queue it for others, were doing, by thread: blocked, or
    waiting for data.

    A thread that has no call open (an autograd worker between two backward passes) waits for the others: it
    counts as blocked, or as waiting for data, while any other such thread is.
    """

    def __init__(self, rank_trace: RankTrace) -> None:
        self.thread: Int64 = rank_trace.thread
        launching = rank_trace.launching_threads.tolist()
        call = among(rank_trace.event_class, _CALLS)
        annotation = (rank_trace.event_class == EventClass.ANNOTATION) & (rank_trace.stream == NULL)
        loading = (call | annotation) & named(rank_trace, is_data_loading)

        def when(of_kind: Bool) -> dict[int, Intervals]:
            """When rows of a kind are open, by thread."""
            checkpoint()
            thread, start, end = np.empty((3, np.count_nonzero(of_kind)), np.int64)
            lanes = len(rank_trace.pids) * len(rank_trace.tids)
            count = _merge(
                rank_trace.by_start, rank_trace.start, rank_trace.end, self.thread, of_kind,
                np.zeros(lanes, np.int64), np.zeros(lanes, np.int64), thread, start, end,
            )  # fmt: skip
            parts = {number: np.flatnonzero(thread[:count] == number) for number in launching}
            return {number: Intervals(start[part], end[part]) for number, part in parts.items()}

        blocked, waiting = when(call & named(rank_trace, is_synchronising)), when(loading)
        anywhere_blocked, anywhere_waiting = _union(blocked.values()), _union(waiting.values())
        self.blocked: dict[int, Intervals] = {}
        self.waiting: dict[int, Intervals] = {}
        self.open: dict[int, Intervals] = {}
        if len(launching) == 1:
            self.blocked, self.waiting = blocked, waiting
            return
        outermost = call & (rank_trace.parent < 0)  # what they call lies within them
        self.open = when(outermost)
        for thread, open_call in self.open.items():
            self.blocked[thread] = blocked[thread] | (anywhere_blocked - open_call)
            self.waiting[thread] = waiting[thread] | (anywhere_waiting - open_call)


_threads_of = memoize_per_rank()(_Threads)


def idle_causes(rank_trace: RankTrace, scope: Scope, consecutive_kernel_delay_ns: int) -> IdleCauses:
    """The idle time of one rank under the stream and name filters of `scope`, over all time."""
    return _split(rank_trace, scope.streams, scope.names, consecutive_kernel_delay_ns)


def blocked_threads(rank_trace: RankTrace) -> Intervals:
    """When any thread that launches device work is inside a synchronising call."""
    return _union(_threads_of(rank_trace).blocked.values())


def open_calls(rank_trace: RankTrace) -> dict[int, Intervals]:
    """When each thread that launches device work has a call open; empty where there is one such thread."""
    return _threads_of(rank_trace).open


@memoize_per_rank(last=_SPLITS)
def _split(
    rank_trace: RankTrace, streams: tuple[int, ...] | None, names: tuple[str, ...] | None, delay: int
) -> IdleCauses:
    scope, threads = Scope(streams=streams, names=names), _threads_of(rank_trace)
    work = busy(rank_trace, scope).any
    next_row = np.append(_openers(rank_trace, scope, work), -1)
    low, high = np.append(-_FAR, work.end), np.append(work.start, _FAR)
    gaps = Intervals(low, high)
    if len(gaps) == 1:
        return IdleCauses(gaps, next_row, {cause: gaps if cause == "edge" else _NONE for cause in CAUSES})

    # Before the first event of the file nothing is known, and after the last device work nothing is due.
    begun = min(rank_trace.extent[0], int(high[0]))
    start, end = low[:-1].copy(), high[:-1]
    start[0] = begun
    edge = Intervals.union([-_FAR, low[-1]], [begun, _FAR])

    launch, moment = rank_trace.launch[next_row[:-1]], rank_trace.launched_at(next_row[:-1])
    known = moment != NULL
    # Of a call that does more than to launch, the moment may be recorded: it is done with the work by then.
    done = np.where(moment > rank_trace.start[launch], moment, rank_trace.end[launch])
    # Where host and device clocks disagree a launch may seem to begin after its kernel: then the host is
    # late up to the kernel's start.
    called = np.clip(np.where(known, moment, start), start, end)
    returned = np.clip(np.where(known, done, start), called, end)
    late = returned > start  # what is not yet launched when the gap begins is not queued
    late[0] = True
    short = end - returned < delay

    causes = _host(threads, np.where(known, threads.thread[launch], -1), start, called)
    arrived = np.where(late & short, end, returned)
    causes["launch_latency"] = _pieces(known, called, arrived)
    causes["kernel_wait"] = _pieces(known & short, arrived, end)
    causes["device_wait"] = _pieces(known & ~short, arrived, end)
    causes["unknown"] = _pieces(~known, start, end)
    causes["edge"] = edge
    return IdleCauses(gaps, next_row, {cause: causes[cause] for cause in CAUSES})


_NONE = Intervals.union([], [])


def _pieces(where: Bool, start: Int64, end: Int64) -> Intervals:
    """One stretch of each marked gap; sorted and apart, as work lies between any two gaps."""
    solid = where & (start < end)
    return Intervals(start[solid], end[solid])


def _openers(rank_trace: RankTrace, scope: Scope, work: Intervals) -> Int64:
    """The row that opens each busy stretch; of several the one launched first."""
    rows = device_work(rank_trace).rows
    rows = rows[rank_trace.belong(rows, Scope(streams=scope.streams, names=scope.names))]
    rows = rows[rank_trace.dur[rows] > 0]
    if not len(rows):
        return np.empty(0, np.int64)
    at = np.searchsorted(work.start, rank_trace.start[rows], side="right") - 1
    opens = rank_trace.start[rows] == work.start[at]
    rows, at = rows[opens], at[opens]
    if len(rows) > len(work):
        called = rank_trace.launched_at(rows)
        called = np.where(called != NULL, called, _FAR)
        order = np.lexsort((rank_trace.event_id[rows], rank_trace.stream[rows], called, at))
        rows, at = rows[order], at[order]
    return rows[np.append(True, at[1:] != at[:-1])]


def _host(threads: _Threads, thread: Int64, start: Int64, end: Int64) -> dict[str, Intervals]:
    """The stretches [start, end) in which each gap waits for its thread, by what that thread was doing."""
    found: dict[str, list[Intervals]] = {cause: [] for cause in HOST_CAUSES}
    for number in threads.blocked:
        checkpoint()
        waits = _pieces(thread == number, start, end)
        blocked = waits & threads.blocked[number]
        loading = (waits & threads.waiting[number]) - blocked
        for cause, part in zip(HOST_CAUSES, (blocked, loading, waits - blocked - loading), strict=True):
            found[cause].append(part)
    return {cause: _union(parts) for cause, parts in found.items()}


def _union(parts: Iterable[Intervals]) -> Intervals:
    whole = list(parts)
    if len(whole) == 1:
        return whole[0]
    return Intervals.union(
        np.concatenate([_NONE.start, *(part.start for part in whole)]),
        np.concatenate([_NONE.end, *(part.end for part in whole)]),
    )


def rows_named(rank_trace: RankTrace, is_wanted: Callable[[str], object]) -> Int64:
    """The rows of such names, in file order."""
    wanted = np.array([bool(is_wanted(name)) for name in rank_trace.names], np.bool_)
    return rows_with(rank_trace.name, wanted)


def named(rank_trace: RankTrace, is_wanted: Callable[[str], object]) -> Bool:
    """Which rows have such names."""
    marked = np.zeros(rank_trace.n, np.bool_)  # most names are those of few rows
    marked[rows_named(rank_trace, is_wanted)] = True
    return marked


@kernel
def _merge(
    by_start: Int64, start: Int64, end: Int64, lane: Int64, chosen: Bool, begun: Int64, until: Int64,
    of: Int64, first: Int64, last: Int64,
) -> int:  # fmt: skip
    """The lane, begin and end of each stretch in which a chosen row is open on a lane; answers how many.

    `begun`, `until`: zeros for each lane, of its last stretch.
    """
    count = 0
    for row in by_start:
        if not chosen[row] or start[row] == end[row]:
            continue
        on = lane[row]
        if begun[on] < until[on] and start[row] <= until[on]:
            until[on] = max(until[on], end[row])
            continue
        if begun[on] < until[on]:
            of[count], first[count], last[count] = on, begun[on], until[on]
            count += 1
        begun[on], until[on] = start[row], end[row]
    for on in range(len(begun)):
        if begun[on] < until[on]:
            of[count], first[count], last[count] = on, begun[on], until[on]
            count += 1
    return count
