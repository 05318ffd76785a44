"""Starts before the launch: records that cannot be true, told from a device whose clock runs ahead.

A queue is first in, first out: no real recording holds an inversion of starts against calls. A record that
breaks the order is wrong by itself. Those that keep it are early together where clocks disagree, and alone
where one record is wrong.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hta_widgets.trace.reader.schema import NULL
from hta_widgets.trace.records.marks import Mark
from hta_widgets.trace.records.work import Work

__all__ = ["mark_early_starts"]

Int64 = npt.NDArray[np.int64]
Bool = npt.NDArray[np.bool_]

# Two roundings to whole microseconds, of a start and a duration.
_TICK_NS = 2_000
# Of real records none starts before its launch; the least delay is 2 us.
_EARLY_NS = 20_000
# A record that keeps the order of its queue is wrong by itself only beyond this; less may be the clocks.
_JUMP_NS = 1_000_000
# A record that begins so long after the end of its predecessor found its queue empty.
_EMPTY_NS = 20_000
_NEIGHBOURS = 5  # on each side


def mark_early_starts(work: Work) -> None:
    """Mark the records that start before their launch though the clocks agree."""
    lag = work.start - work.called
    known = work.is_sound & (work.call >= 0)
    early = known & (lag < -_TICK_NS)
    if not early.any():
        return
    order = work.by_call[known[work.by_call]]
    broken, empty = _against_predecessors(work, order)
    single = (
        early
        & (lag < -_EARLY_NS)
        & (broken | ((lag < -_JUMP_NS) & ~_shared(work, early & ~broken, known & empty & ~(early & broken))))
    )
    work.mark[single] = Mark.EARLY_START


def _against_predecessors(work: Work, order: Int64) -> tuple[Bool, Bool]:
    """Which records start before work that was launched before them, and which found their queue empty."""
    broken, empty = np.zeros((2, len(work.rows)), np.bool_)
    queue, start = work.queue[order], work.start[order]
    end = start + np.maximum(work.dur[order], 0)
    edges = np.flatnonzero(np.append(True, queue[1:] != queue[:-1])) if len(order) else order
    for first, last in zip(edges.tolist(), [*edges[1:].tolist(), len(order)], strict=True):
        own = slice(first, last)
        started = np.append(NULL // 2, np.maximum.accumulate(start[own])[:-1])
        ended = np.append(NULL // 2, np.maximum.accumulate(end[own])[:-1])
        broken[order[own]] = start[own] < started - _TICK_NS
        empty[order[own]] = start[own] > ended + _EMPTY_NS
    return broken, empty


def _shared(work: Work, early: Bool, fresh: Bool) -> Bool:
    """Whether most of the records around each that found their queue empty are early, too: another clock."""
    rows = np.flatnonzero(fresh)
    rows = rows[np.argsort(work.called[rows], kind="stable")]
    so_far = np.append(0, np.cumsum(early[rows]))
    at = np.searchsorted(work.called[rows], work.called)
    first, last = np.clip(at - _NEIGHBOURS, 0, len(rows)), np.clip(at + _NEIGHBOURS, 0, len(rows))
    shared: Bool = (so_far[last] - so_far[first]) >= 0.5 * np.maximum(1, last - first)
    return shared
