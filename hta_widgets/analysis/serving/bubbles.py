"""What the host runs while the device waits between two steps of a server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.core.libraries import LIBRARY
from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.device_time.busy import device_work
from hta_widgets.analysis.serving.table import steps_of
from hta_widgets.arrays import Int64
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.ordering import among
from hta_widgets.trace.reader.schema import NULL

if TYPE_CHECKING:
    from hta_widgets.trace.rank_trace import RankTrace

_CALLS = (EventClass.HOST_OP, EventClass.RUNTIME)
PAUSE_NS: Final = 200_000
"""A host that launches kernels one by one leaves the device idle for less at a time, also when recorded."""

# What is open for this share of the time is where the time goes, rather than in a part of it.
_MOSTLY: Final = 0.5


@dataclass(frozen=True)
class Bubble:
    """What the thread that runs the steps does while the device waits for the next one."""

    frame: int  # row of the narrowest Python function that is open in most of it, -1 for none
    call: int  # row of the operator or call of the runtime that is open longest in it, -1 for none
    # row of the last function of the program, or else call, of that thread before the longest stretch in
    # which nothing is recorded, -1 for none
    before: int
    idle_ns: int  # how long the device waits; recorded_ns: how much of that any call is open
    recorded_ns: int

    @property
    def is_recorded(self) -> bool:
        """Whether what the host does in most of it is recorded."""
        return self.recorded_ns >= _MOSTLY * self.idle_ns


def idle_between(rank_trace: RankTrace) -> Intervals:
    """The time between steps in which the device does nothing."""
    steps = steps_of(rank_trace)
    end = (steps["start_ns"] + steps["device_ns"]).to_numpy(np.int64, na_value=0)
    following = steps["next_ns"].to_numpy(np.int64, na_value=0)
    known = steps["bubble_ns"].notna().to_numpy(np.bool_)
    between = Intervals.union(end[known], following[known])
    work = device_work(rank_trace)
    return between - Intervals.union(work.start, work.end)


def absent_between(rank_trace: RankTrace) -> Intervals:
    """The time between steps in which the server has no requests, and the device does nothing."""
    steps = steps_of(rank_trace)
    steps = steps[steps["resumes_ns"].notna()]
    end = (steps["start_ns"] + steps["device_ns"]).to_numpy(np.int64)
    work = device_work(rank_trace)
    until = steps["resumes_ns"].to_numpy(np.int64)
    return Intervals.union(end, until) - Intervals.union(work.start, work.end)


def pauses_in_steps(rank_trace: RankTrace) -> Intervals:
    """The stretches within steps in which the device does nothing for longer than launches take."""
    steps = steps_of(rank_trace)
    end = (steps["start_ns"] + steps["device_ns"]).to_numpy(np.int64, na_value=0)
    work = device_work(rank_trace)
    within = Intervals.union(steps["start_ns"].to_numpy(np.int64, na_value=0), end)
    gaps = within - Intervals.union(work.start, work.end)
    long = gaps.end - gaps.start >= PAUSE_NS
    return Intervals(gaps.start[long], gaps.end[long])


@memoize_per_rank()
def bubbles_of(rank_trace: RankTrace) -> list[Bubble | None]:
    """Of each step in `steps_of`: what the host does in the time until the next; None where that is unknown.

    The thread is the one that names the steps, or another that is busy while that one records nothing.
    """
    steps = steps_of(rank_trace)
    idle, host = idle_between(rank_trace), _threads(rank_trace)
    found: list[Bubble | None] = []
    ends = (steps["start_ns"] + steps["device_ns"]).to_numpy(np.int64, na_value=NULL).tolist()
    following = steps["next_ns"].to_numpy(np.int64, na_value=NULL).tolist()
    for end, begin in zip(ends, following, strict=True):
        part = idle.clip(end, begin) if NULL not in (end, begin) and end < begin else idle.clip(0, 0)
        seen = [thread.during(part) for thread in host] if part.length else []
        # The thread that names the steps comes first: others count only where they show more.
        found.append(max(seen, key=lambda each: each.recorded_ns, default=None))
    return found


class _Thread:
    """The recorded calls of a thread of the host, in order of start, marks of steps aside."""

    def __init__(self, rank_trace: RankTrace, rows: Int64) -> None:
        rows = rows[np.lexsort((-rank_trace.end[rows], rank_trace.start[rows]))]
        self.rows, self.start, self.end = rows, rank_trace.start[rows], rank_trace.end[rows]
        self.latest = np.maximum.accumulate(self.end) if len(rows) else self.end
        self.is_frame = rank_trace.event_class[rows] == EventClass.PYTHON
        code, name = np.unique(rank_trace.name[rows], return_inverse=True)
        own = np.array([not LIBRARY.search(rank_trace.names[each]) for each in code.tolist()], np.bool_)
        self.is_own = self.is_frame & own[name]
        self.is_call = among(rank_trace.event_class[rows], _CALLS)

    def during(self, part: Intervals) -> Bubble:
        begin, end = int(part.start[0]), int(part.end[-1])
        # Of those that begin before it, none before the first whose predecessors have all ended is open.
        first = int(np.searchsorted(self.latest, begin, "right"))
        last = int(np.searchsorted(self.start, end, "left"))
        near = slice(first, max(first, last))
        windows = np.column_stack([self.start[near], self.end[near]])
        inside = part.within_each(windows)
        silent = part - Intervals.union(self.start[near], self.end[near])
        silence = silent.longest[0] if len(silent) else begin
        lengths, rows = self.end[near] - self.start[near], self.rows[near]
        wide = np.flatnonzero(self.is_frame[near] & (inside >= _MOSTLY * part.length))
        calls = np.flatnonzero(self.is_call[near] & (inside > 0))
        frame = int(rows[wide[lengths[wide].argmin()]]) if len(wide) else -1
        call = int(rows[calls[np.lexsort((lengths[calls], -inside[calls]))[0]]]) if len(calls) else -1
        return Bubble(frame, call, self._before(silence), part.length, part.length - silent.length)

    def _before(self, time: int) -> int:
        """The outermost Python function of the program that ended last before this time; else any call."""
        ended = np.flatnonzero(self.end[: np.searchsorted(self.start, time, "right")] <= time)
        own = ended[self.is_own[ended]]
        last = own if len(own) else ended
        if not len(last):
            return -1
        return int(self.rows[last[np.lexsort((self.start[last], -self.end[last]))[0]]])


def _threads(rank_trace: RankTrace) -> list[_Thread]:
    """The thread that names the steps, then all others that record calls."""
    kinds = among(rank_trace.event_class, (*_CALLS, EventClass.PYTHON)) & ~rank_trace.is_device
    rows = np.flatnonzero(kinds & (rank_trace.stream == NULL))
    labels = set(steps_of(rank_trace)["label"])
    named = np.array([name in labels for name in rank_trace.names], np.bool_)
    marks = np.flatnonzero((rank_trace.event_class == EventClass.ANNOTATION) & named[rank_trace.name])
    main = int(rank_trace.thread[marks[0]]) if len(marks) else -1
    threads = sorted(np.unique(rank_trace.thread[rows]).tolist(), key=lambda thread: thread != main)
    return [_Thread(rank_trace, rows[rank_trace.thread[rows] == thread]) for thread in threads]
