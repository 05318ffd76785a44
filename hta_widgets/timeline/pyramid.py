"""Level of detail: what to draw when many slices fall on one pixel, without losing any of them.

Level `w` merges *consecutive* slices of a lane that are each shorter than `w` ns and start in the same bucket
of `w` ns. A merged item holds the number of its slices, their busy time, the longest of them (to name it) and
the event class with the most busy time (to colour it). Widths double from level to level, so each level is
made from the last one kept: its runs, counts, busy times and longest slices are exactly those of merging the
slices themselves. (Its class is the dominant one of the finer items' dominant classes.) Only levels that are
much smaller than the slices are stored: below that, a binary search in the slices is as fast.
Invariant (tested): at every level and in every window, counts and busy time are conserved.

`js/src/timeline/pyramid.ts` implements the same definition in the browser.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hta_widgets.jit import inline, kernel
from hta_widgets.timeline.lanes import Lanes

FINEST_BITS = 10  # the finest level is 1024 ns wide
KEPT_FRACTION = 0.25  # a level is stored only if it has at most this share of the slices
COARSEST_BUCKETS = 256  # levels stop when the whole extent has fewer buckets than this


@dataclass(frozen=True)
class Items:
    """Slices or merged slices, lane-major: lane i owns positions offsets[i]:offsets[i + 1]."""

    start: NDArray[np.int64]  # ns
    end: NDArray[np.int64]  # ns
    busy: NDArray[np.int64]  # ns covered by slices
    count: NDArray[np.uint32]  # slices merged
    longest: NDArray[np.uint32]  # position of the longest merged slice
    event_class: NDArray[np.uint8]  # class with the most busy time
    offsets: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.start)


@dataclass(frozen=True)
class Level:
    width_ns: int  # 0: the slices themselves
    items: Items


class Pyramid:
    """Answers "what is in this window at this resolution" in milliseconds for tens of millions of slices.

    Attributes:
        lanes: the slices.
        merged: the coarser levels, the finest first.
    """

    def __init__(
        self,
        lanes: Lanes,
        checkpoint: Callable[[], None] = lambda: None,
        merged: Sequence[Level] | None = None,
    ) -> None:
        """`merged`: levels that were made of these slices before."""
        self.lanes = lanes
        self.merged = tuple(_levels(lanes, checkpoint) if merged is None else merged)

    @cached_property
    def slices(self) -> Items:
        """The slices themselves, which only narrow windows show."""
        return _unmerged(self.lanes)

    @property
    def levels(self) -> tuple[Level, ...]:
        """All levels, the finest first."""
        return Level(0, self.slices), *self.merged

    def window(self, start_ns: float, end_ns: float, pixels: int, lanes: Sequence[int]) -> Items:
        """Items of `lanes` that touch [start_ns, end_ns), merged so that none hides inside another's pixel.

        `offsets` of the result count over `lanes` in the order given. Raises ValueError for an empty window,
        no pixels or an unknown lane.
        """
        if not end_ns > start_ns or pixels < 1:
            raise ValueError("a timeline window needs end > start and at least one pixel")
        wanted = np.asarray(lanes, np.int64)
        if len(wanted) and (wanted.min() < 0 or wanted.max() >= len(self.lanes.offsets) - 1):
            raise ValueError("unknown lane")
        ns_per_pixel = (end_ns - start_ns) / pixels
        level = next((level for level in reversed(self.merged) if level.width_ns <= ns_per_pixel), None)
        items = self.slices if level is None else level.items
        return Items(*_window(_fields(items), self.lanes.dur, wanted, start_ns, end_ns, ns_per_pixel))


def _unmerged(lanes: Lanes) -> Items:
    return Items(
        start=lanes.start,
        end=lanes.start + lanes.dur,
        busy=lanes.dur,
        count=np.ones(lanes.n, np.uint32),
        longest=np.arange(lanes.n, dtype=np.uint32),
        event_class=lanes.classes,
        offsets=lanes.offsets,
    )


def _levels(lanes: Lanes, checkpoint: Callable[[], None]) -> Iterator[Level]:
    items = _unmerged(lanes)
    first, last = lanes.extent
    left = lanes.n - np.cumsum(_first_merges(lanes.start, lanes.dur, lanes.offsets))
    coarsest = (last - first) // COARSEST_BUCKETS
    for bits in range(FINEST_BITS, coarsest.bit_length()):
        if left[bits] <= KEPT_FRACTION * lanes.n:
            checkpoint()
            items = merge(items, 1 << bits, lanes.dur)
            yield Level(1 << bits, items)


def merge(items: Items, width_ns: int, durations: NDArray[np.int64]) -> Items:
    """The next coarser level, whose width is a power of two. `durations` are those of the slices, to find the
    longest one.
    """
    return Items(*_merge(_fields(items), durations, width_ns))


# Kernels take and return the columns of Items as a tuple, in the order of its fields.
Times = NDArray[np.int64]
Numbers = NDArray[np.uint32]
Columns = tuple[Times, Times, Times, Numbers, Numbers, NDArray[np.uint8], Times]


def _fields(items: Items) -> Columns:
    return (
        items.start, items.end, items.busy, items.count, items.longest, items.event_class, items.offsets,
    )  # fmt: skip


@inline
def _empty(n: int, n_offsets: int) -> Columns:
    return (
        np.empty(n, np.int64),
        np.empty(n, np.int64),
        np.empty(n, np.int64),
        np.empty(n, np.uint32),
        np.empty(n, np.uint32),
        np.empty(n, np.uint8),
        np.zeros(n_offsets, np.int64),
    )


@inline
def _first(columns: Columns, n: int) -> Columns:
    """A copy of the first n items, so that the rest can be freed."""
    start, end, busy, count, longest, event_class, offsets = columns
    return (
        start[:n].copy(), end[:n].copy(), busy[:n].copy(), count[:n].copy(), longest[:n].copy(),
        event_class[:n].copy(), offsets,
    )  # fmt: skip


@inline
def _combine(
    columns: Columns, first: int, last: int, durations: Times, out: Columns, at: int, class_busy: Times
) -> None:
    """Write items first..last-1 as one merged item at `at` of `out`; `class_busy` is and stays zero."""
    start, end, busy, count, longest, event_class, _ = columns
    total_busy = 0
    total_count = 0
    best = longest[first]
    for i in range(first, last):
        total_busy += busy[i]
        total_count += count[i]
        class_busy[event_class[i]] += busy[i]
        if durations[longest[i]] > durations[best]:
            best = longest[i]
    dominant = event_class[first]
    for i in range(first, last):
        if class_busy[event_class[i]] > class_busy[dominant]:
            dominant = event_class[i]
    for i in range(first, last):
        class_busy[event_class[i]] = 0
    out[0][at] = start[first]
    out[1][at] = end[last - 1]
    out[2][at] = total_busy
    out[3][at] = total_count
    out[4][at] = best
    out[5][at] = dominant


@kernel
def _first_merges(start: Times, dur: Times, offsets: Times) -> Times:
    """How many pairs of neighbours are first merged at each width 2^k.

    Both must be shorter than the width and begin in one of its buckets. Buckets of twice the width hold whole
    ones, so what was merged once stays merged, and this tells the size of every level.
    """
    pairs = np.zeros(65, np.int64)
    for lane in range(len(offsets) - 1):
        for i in range(offsets[lane] + 1, offsets[lane + 1]):
            # The highest bit of any of the three; starts on either side of 0 never share a bucket.
            left = np.uint64((start[i] ^ start[i - 1]) | dur[i] | dur[i - 1])
            bits = 0
            while left:
                left >>= np.uint64(1)
                bits += 1
            pairs[bits] += 1
    return pairs


@kernel
def _merge(columns: Columns, durations: Times, width: int) -> Columns:
    start, end, offsets = columns[0], columns[1], columns[6]
    out = _empty(len(start), len(offsets))
    class_busy = np.zeros(256, np.int64)
    n = 0
    for lane in range(len(offsets) - 1):
        i = offsets[lane]
        while i < offsets[lane + 1]:
            j = i + 1
            if end[i] - start[i] < width:
                bucket = start[i] & -width
                while j < offsets[lane + 1] and end[j] - start[j] < width and start[j] & -width == bucket:
                    j += 1
            _combine(columns, i, j, durations, out, n, class_busy)
            n += 1
            i = j
        out[6][lane + 1] = n
    return _first(out, n)


@kernel
def _window(columns: Columns, durations: Times, lanes: Times, t0: float, t1: float, pixel: float) -> Columns:
    start, end, offsets = columns[0], columns[1], columns[6]
    first = np.empty(len(lanes), np.int64)
    last = np.empty(len(lanes), np.int64)
    total = 0
    for k in range(len(lanes)):
        a, b = offsets[lanes[k]], offsets[lanes[k] + 1]
        # Items of a lane are disjoint, so ends are sorted like starts. One that ends at t0 may have no
        # length.
        first[k] = a + np.searchsorted(end[a:b], t0, side="left")
        last[k] = max(first[k], a + np.searchsorted(start[a:b], t1, side="left"))
        total += last[k] - first[k]
    out = _empty(total, len(lanes) + 1)
    class_busy = np.zeros(256, np.int64)
    n = 0
    for k in range(len(lanes)):
        i = first[k]
        while i < last[k]:
            j = i + 1
            if end[i] - start[i] < pixel:
                column = np.floor((start[i] - t0) / pixel)
                while (
                    j < last[k] and end[j] - start[j] < pixel and np.floor((start[j] - t0) / pixel) == column
                ):
                    j += 1
            _combine(columns, i, j, durations, out, n, class_busy)
            n += 1
            i = j
        out[6][k + 1] = n
    return _first(out, n)
