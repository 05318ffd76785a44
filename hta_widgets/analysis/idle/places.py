"""Where the host was while the device waited for it: the calls that were open then, by name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from hta_widgets.analysis.core.autograd import NODE
from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.idle.causes import IdleCauses, open_calls
from hta_widgets.analysis.idle.pauses import telling
from hta_widgets.arrays import Int32, Int64
from hta_widgets.jit import kernel
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.ordering import among
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.reader.schema import NULL

_CALLS = (EventClass.HOST_OP, EventClass.RUNTIME, EventClass.PYTHON)
_NAMED = (*_CALLS, EventClass.ANNOTATION)
# What is open nearly all of the time (the loop, the program), also when the device works, is no place.
_EVERYWHERE = 0.9
_ALSO_THEN = 0.5
_FAR_MORE = 1.5
# A single place tells where the time goes if this share of it lies there; else the largest few are named.
_MOSTLY = 0.5
_MENTIONED = 0.1
_MOST_PLACES = 3
_CANDIDATES = 256
_THREADS = 16  # that launch: few do
INDUCTOR_FILE: Final = re.compile(r"(?:^|/)c[a-z2-7]{40,60}\.py\(\d+\): ")
"""Code that torch.compile wrote, in a file named by its hash."""
_MODULE = re.compile(r"^nn\.Module: (.+?)(?:_\d+)?$")
_FRAME = re.compile(r"^(?:.*/)?([^/]+\.py\(\d+\): .+)$")


@dataclass(frozen=True)
class Place:
    """Calls of one name, how much of an idle time they were open in (ns), and the wider calls around that.

    `everywhere`: they are open nearly all of the time, the device's work included.
    """

    name: str
    idle_ns: int
    within: tuple[str, ...] = ()
    everywhere: bool = False


@dataclass(frozen=True)
class _Open:
    """The calls of a name: the idle time in which they were open, and all of their time, ns."""

    name: str
    idle: Intervals
    total_ns: int

    def is_everywhere(self, whole: int, asked: int) -> bool:
        """Whether they are open nearly all of the time, and not only in the idle time that is asked about."""
        return self.total_ns >= _EVERYWHERE * whole and self.beside_ns >= _ALSO_THEN * (whole - asked)

    def explains_more_than(self, narrower: _Open) -> bool:
        """Whether they hold far more of the idle time, and are open for less time besides."""
        more = self.idle.length >= _FAR_MORE * narrower.idle.length
        return more and self.beside_ns < narrower.beside_ns

    @property
    def beside_ns(self) -> int:
        return self.total_ns - self.idle.length

    def place(self, others: Sequence[_Open]) -> Place:
        """With those of the others that are open in nearly all of the same time, narrowest first."""
        around = [
            calls
            for calls in sorted(others, key=lambda calls: (calls.total_ns, calls.name))
            if calls.total_ns >= self.total_ns
            and calls.name != self.name
            and (calls.idle & self.idle).length >= _EVERYWHERE * self.idle.length
        ]
        return Place(self.name, self.idle.length, tuple(calls.name for calls in around))


def host_places(
    rank_trace: RankTrace,
    idle: IdleCauses,
    part: Intervals,
    windows: Int64,
    known: Callable[[str], bool] = lambda name: False,
) -> list[Place]:
    """In which host calls was the thread that the device waited for, during a part of its idle time?

    While that thread has no call open, it waits for the others that launch: then their calls count.

    Args:
        idle: its idle time; the launch that ends a gap tells which thread the device waited for.
        part: the part of `idle` to explain, e.g. that of one cause.
        windows: what to look at, int64[k, 2], ns.
        known: calls of these names are no answer, those inside them are.

    Returns:
        The narrowest calls that hold at least half of the time, alone, or wider ones that hold far more of it
        and hardly anything else; else up to three that do not lie in each other, with a tenth of it or more
        each, longest first. Iterations are no places, and what is open nearly all of the time, also while
        the device works, only if there is no other.
    """
    whole = int((windows[:, 1] - windows[:, 0]).sum())
    waits = _by_thread(rank_trace, idle, part, windows)
    asked = _union([pieces for _, pieces in waits]).length if waits else 0
    loops = set(rank_trace.iterations["label"])
    found: list[_Open] = []
    for name, spans_of in _calls_by_name(rank_trace, waits, asked):
        if name in loops or known(name):
            continue
        open_then = _union([pieces & spans_of[thread] for thread, pieces in waits])
        if open_then.length >= _MENTIONED * asked:
            total = sum(spans.within(windows) for spans in spans_of.values())
            found.append(_Open(name, open_then, total))
    here = [calls for calls in found if not calls.is_everywhere(whole, asked)]
    mostly = [calls for calls in here if calls.idle.length >= _MOSTLY * asked]
    if mostly or not here:
        best: _Open | None = None
        for calls in sorted(mostly or found, key=lambda calls: (calls.total_ns, calls.name)):
            if best is None or calls.explains_more_than(best):
                best = calls
        return [replace(best.place(here), everywhere=not mostly)] if best else []
    apart: list[_Open] = []
    for calls in sorted(here, key=lambda calls: (-calls.idle.length, calls.total_ns, calls.name)):
        if all(2 * (calls.idle & other.idle).length < calls.idle.length for other in apart):
            apart.append(calls)
    return [calls.place(here) for calls in apart[:_MOST_PLACES]]


def recorded_by_host(rank_trace: RankTrace, idle: IdleCauses, part: Intervals, windows: Int64) -> int:
    """How much of a part of the idle time (ns) has any call open on a thread that the device waited for.

    An annotation that holds no call counts as one: it is there to tell what its time is for.
    """
    waits = _by_thread(rank_trace, idle, part, windows)
    recorded = [pieces & _recorded_on(rank_trace, thread) for thread, pieces in waits]
    return _union(recorded).length if recorded else 0


@memoize_per_rank(last=_THREADS)
def _recorded_on(rank_trace: RankTrace, thread: int) -> Intervals:
    """When a thread has any call open, or an annotation that holds none."""
    call = among(rank_trace.event_class, _CALLS)
    call[telling(rank_trace)] = True
    rows = rank_trace.by_start[(call & (rank_trace.thread == thread))[rank_trace.by_start]]
    return Intervals.union(rank_trace.start[rows], rank_trace.end[rows])


def short_place(name: str, within: Iterable[str] = ()) -> str:
    """A name as short as it stays telling: a Python frame without its folders, an object without address, a
    node of autograd without who calls it.

    Code that torch.compile wrote is named by the module that it is of, the narrowest of the calls around it.
    """
    if INDUCTOR_FILE.search(name):
        module = next((found[1] for each in within if (found := _MODULE.match(each))), "")
        return f"compiled graph of {module}" if module else "compiled graph"
    frame = _FRAME.match(name)
    return re.sub(r" at 0x[0-9a-f]+", "", frame[1] if frame else name.removeprefix(NODE))


def _by_thread(
    rank_trace: RankTrace, idle: IdleCauses, part: Intervals, windows: Int64
) -> list[tuple[int, Intervals]]:
    """The pieces of a part of the idle time, with the thread whose launch ends the gap.

    Those in which it has no call open follow again with each of the other threads that launch.
    """
    inside = part & Intervals.union(windows[:, 0], windows[:, 1])
    row = idle.next_row[np.searchsorted(idle.gaps.end, inside.end)]
    launch = np.where(row >= 0, rank_trace.launch[row], -1)
    thread = np.where(launch >= 0, rank_trace.thread[launch], -1)
    open_ = open_calls(rank_trace)
    found = []
    for number in np.unique(thread[thread >= 0]).tolist():
        pieces = Intervals(inside.start[thread == number], inside.end[thread == number])
        found.append((number, pieces))
        silent = pieces - open_[number] if open_ else pieces
        found += [(other, silent) for other in open_ if other != number and silent]
    return found


@memoize_per_rank(last=_THREADS)
def _calls_of(rank_trace: RankTrace, thread: int) -> tuple[Int32, Int64, Int64]:
    """Name, start and end of the named host calls of a thread."""
    mine = among(rank_trace.event_class, _NAMED) & (rank_trace.thread == thread)
    rows = np.flatnonzero(mine & (rank_trace.stream == NULL))
    return rank_trace.name[rows], rank_trace.start[rows], rank_trace.end[rows]


def _calls_by_name(
    rank_trace: RankTrace, waits: list[tuple[int, Intervals]], asked: int
) -> list[tuple[str, dict[int, Intervals]]]:
    """The names with most idle time open in their calls: of each, when they are open, by thread."""
    calls = {thread: _calls_of(rank_trace, thread) for thread, _ in waits}
    sums = np.zeros(len(rank_trace.names), np.int64)
    for thread, pieces in waits:
        _add_up(*calls[thread], pieces.start, pieces.end, sums)
    enough = np.flatnonzero(sums >= max(1, _MENTIONED * asked))
    codes = enough[np.argsort(-sums[enough], kind="stable")][:_CANDIDATES]
    found = []
    for code in codes.tolist():
        spans = {}
        for thread, (name, start, end) in calls.items():
            of_name = np.flatnonzero(name == code)
            spans[thread] = Intervals.union(start[of_name], end[of_name])
        found.append((rank_trace.names[code], spans))
    return found


def _union(parts: list[Intervals]) -> Intervals:
    return Intervals.union(
        np.concatenate([part.start for part in parts]), np.concatenate([part.end for part in parts])
    )


@kernel
def _add_up(name: Int32, start: Int64, end: Int64, begin: Int64, until: Int64, sums: Int64) -> None:
    """Add to the sum of each call's name how much of these disjoint pieces it is open.

    The first piece that a call may hold is mostly that of the call before, or the next; else it is searched
    for.
    """
    at = np.int64(0)
    for call in range(len(name)):
        if at < len(until) and until[at] <= start[call]:
            at += 1
        if (at and until[at - 1] > start[call]) or (at < len(until) and until[at] <= start[call]):
            at, stop = np.int64(0), np.int64(len(until))
            while at < stop:
                middle = (at + stop) // 2
                if until[middle] <= start[call]:
                    at = middle + 1
                else:
                    stop = middle
        piece = at
        while piece < len(until) and begin[piece] < end[call]:
            sums[name[call]] += min(until[piece], end[call]) - max(begin[piece], start[call])
            piece += 1
