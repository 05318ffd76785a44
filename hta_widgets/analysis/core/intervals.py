"""Sets of time, as sorted disjoint half-open intervals [start, end) in integer nanoseconds.

Every breakdown is set algebra: exposed communication is *communication minus compute*, idle is *window minus
busy*. Because the arithmetic is on int64 and each operation is exact, the parts of a breakdown add up to
their whole to the nanosecond, whatever the order of the events in the file.

Two properties make a change of the selected window cheap. An `Intervals` is immutable, so it is built once
per rank and cached. And it holds running sums of its lengths, so the time within a window takes two binary
searches, not a pass over the events.

Plain numpy: each operation is a few vectorised passes (about 0.1 s per million intervals, once per rank); a
compiled kernel would gain nothing.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property

import numpy as np
import numpy.typing as npt

Int64Array = npt.NDArray[np.int64]
_EMPTY: Int64Array = np.empty(0, np.int64)
# So few times are looked up by Python: numpy lets other threads run at each look, for 5 ms at a time, and one
# is asked of each of thousands of ranks while several parts follow a selection.
_FEW = 8


class Intervals:
    """A set of time: `start[i] < end[i] < start[i + 1]`, all int64 ns.

    Build one with `Intervals.union`; the constructor trusts its arguments. `a | b`, `a & b` and `a - b` are
    union, intersection and difference.
    """

    def __init__(self, start: Int64Array, end: Int64Array) -> None:
        self.start, self.end = start, end

    @classmethod
    def union(cls, start: npt.ArrayLike, end: npt.ArrayLike) -> Intervals:
        """Merge intervals given in any order; touching ones are joined, empty ones dropped.

        This is the U(S) of the interval definitions of Holistic Trace Analysis, on exact times.
        """
        starts, ends = np.asarray(start, np.int64), np.asarray(end, np.int64)
        solid = starts < ends
        if not solid.all():
            starts, ends = starts[solid], ends[solid]
        if len(starts) < 2:
            return cls(starts, ends)
        if (starts[1:] < starts[:-1]).any():
            order = np.argsort(starts, kind="stable")
            starts, ends = starts[order], ends[order]
        reach = np.maximum.accumulate(ends)
        closes = np.flatnonzero(starts[1:] > reach[:-1])
        return cls(
            np.concatenate((starts[:1], starts[closes + 1])), np.concatenate((reach[closes], reach[-1:]))
        )

    def __len__(self) -> int:
        return len(self.start)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Intervals):
            return NotImplemented
        return np.array_equal(self.start, other.start) and np.array_equal(self.end, other.end)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Intervals({len(self)} intervals, {self.length} ns)"

    def __or__(self, other: Intervals) -> Intervals:
        return Intervals.union(
            np.concatenate((self.start, other.start)), np.concatenate((self.end, other.end))
        )

    def __and__(self, other: Intervals) -> Intervals:
        few, many = (self, other) if len(self) < len(other) else (other, self)
        if len(few) < 2:
            return many.clip(int(few.start[0]), int(few.end[0])) if len(few) else few
        mine, theirs = self._overlapping_pairs(other)
        return Intervals(
            np.maximum(self.start[mine], other.start[theirs]), np.minimum(self.end[mine], other.end[theirs])
        )

    def __sub__(self, other: Intervals) -> Intervals:
        if not len(self) or not len(other):
            return self
        low = min(self.start[0], other.start[0])
        high = max(self.end[-1], other.end[-1])
        return self & other.gaps(int(low), int(high))

    def gaps(self, low: int, high: int) -> Intervals:
        """The complement of this set within [low, high)."""
        inside = self.clip(low, high)
        starts, ends = np.concatenate(([low], inside.end)), np.concatenate((inside.start, [high]))
        solid = starts < ends
        return Intervals(starts[solid], ends[solid])

    def clip(self, low: int, high: int) -> Intervals:
        """The part of this set within [low, high)."""
        if not len(self) or (low <= self.start[0] and self.end[-1] <= high):
            return self
        if low >= high:
            return Intervals(_EMPTY, _EMPTY)
        first = np.searchsorted(self.end, low, side="right")
        stop = max(first, np.searchsorted(self.start, high, side="left"))
        start, end = self.start[first:stop], self.end[first:stop]
        return Intervals(np.maximum(start, low), np.minimum(end, high))

    @property
    def length(self) -> int:
        """Total length in ns."""
        return int(self._before[-1])

    @property
    def longest(self) -> tuple[int, int]:
        """Start and end of the longest interval, the first of several; there must be one."""
        at = int((self.end - self.start).argmax())
        return int(self.start[at]), int(self.end[at])

    def within(self, windows: Int64Array) -> int:
        """Total length in ns inside `windows`, an int64[k, 2] array of disjoint [start, end) windows."""
        edges = np.asarray(windows, np.int64).reshape(-1, 2)
        if not len(self) or len(edges) > _FEW:
            return int(self.within_each(edges).sum())
        return sum(self._length_before(end) - self._length_before(begin) for begin, end in edges.tolist())

    def within_each(self, windows: Int64Array) -> Int64Array:
        """Length in ns inside each of `windows`, an int64[k, 2] array of [start, end) windows."""
        edges = np.asarray(windows, np.int64).reshape(-1, 2)
        return self.length_before(edges[:, 1]) - self.length_before(edges[:, 0])

    def holds(self, time: Int64Array) -> npt.NDArray[np.bool_]:
        """Whether each time lies in the set."""
        if not len(self):
            return np.zeros(len(time), np.bool_)
        begun = np.searchsorted(self.start, time, side="right")
        held: npt.NDArray[np.bool_] = (begun > 0) & (time < self.end[np.maximum(begun - 1, 0)])
        return held

    @cached_property
    def _before(self) -> Int64Array:
        """Length of the set before interval i; one entry more than there are intervals."""
        before = np.zeros(len(self) + 1, np.int64)
        np.cumsum(self.end - self.start, out=before[1:])
        return before

    def length_before(self, time: Int64Array) -> Int64Array:
        """Length in ns of the part of the set before each time."""
        if not len(self):
            return np.zeros(len(time), np.int64)
        if len(time) <= _FEW:
            return np.array([self._length_before(at) for at in time.tolist()], np.int64)
        begun = np.searchsorted(self.start, time, side="right")
        last = np.maximum(begun - 1, 0)
        beyond = np.where(begun > 0, np.maximum(self.end[last] - time, 0), 0)
        return self._before[begun] - beyond

    def _length_before(self, time: int) -> int:
        begun = bisect_right(self.start, time)
        beyond = max(int(self.end[begun - 1]) - time, 0) if begun else 0
        return int(self._before[begun]) - beyond

    def _overlapping_pairs(self, other: Intervals) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """Positions (mine, theirs) of every pair of intervals that share time, in order of time."""
        first = np.searchsorted(other.end, self.start, side="right")
        count = np.searchsorted(other.start, self.end, side="left") - first
        mine = np.repeat(np.arange(len(self)), count)
        within_run = np.arange(len(mine)) - np.repeat(np.cumsum(count) - count, count)
        return mine, first[mine] + within_run
