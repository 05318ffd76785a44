"""Starts before the launch: records that cannot be true, told from a device whose clock runs ahead.

A queue is first in, first out: no real recording holds an inversion of starts against calls. A record that
breaks the order is wrong by itself. Those that keep it are early together where clocks disagree, and alone
where one record is wrong.
"""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from hta_widgets.arrays import Bool, Int64
from hta_widgets.trace.reader.schema import NULL
from hta_widgets.trace.records.marks import Mark
from hta_widgets.trace.records.work import Work, each_queue

# Two roundings to whole microseconds, of a start and a duration.
_TICK_NS = 2_000
# Of real records none starts before its launch; the least delay is 2 us.
_EARLY_NS = 20_000
# A record that keeps the order of its queue is wrong by itself only beyond this; less may be the clocks.
_JUMP_NS = 1_000_000
# A record that begins so long after the end of its predecessor found its queue empty.
_EMPTY_NS = 20_000
_NEIGHBOURS = 5  # on each side
_ENOUGH = 3


def mark_early_starts(work: Work) -> None:
    """Mark the records that start before their launch though the clocks agree."""
    lag = work.start - work.called
    known = work.is_sound & (work.call >= 0)
    early = known & (lag < -_TICK_NS)
    if not early.any():
        return
    order = work.by_call[known[work.by_call]]
    broken, empty = _against_predecessors(work, order)
    is_common = 2 * int(early.sum()) >= int(known.sum())
    alone = ~_shared(work, lag, known & empty & ~(early & broken), is_common)
    single = early & (lag < -_EARLY_NS) & (broken | ((lag < -_JUMP_NS) & alone))
    work.mark[single] = Mark.EARLY_START


def _against_predecessors(work: Work, order: Int64) -> tuple[Bool, Bool]:
    """Which records start before work that was launched before them, and which found their queue empty."""
    broken, empty = np.zeros((2, len(work.rows)), np.bool_)
    queue, start = work.queue[order], work.start[order]
    end = start + np.maximum(work.dur[order], 0)
    for own in each_queue(queue):
        started = np.append(NULL // 2, np.maximum.accumulate(start[own])[:-1])
        ended = np.append(NULL // 2, np.maximum.accumulate(end[own])[:-1])
        broken[order[own]] = start[own] < started - _TICK_NS
        empty[order[own]] = start[own] > ended + _EMPTY_NS
    return broken, empty


def _shared(work: Work, lag: Int64, fresh: Bool, otherwise: bool) -> Bool:
    """Whether a clock explains each early record: most of the records around it that found their queue empty
    are early, too, and most of those by the same time, for a clock is off by the same for all. `otherwise` is
    said where hardly any found its queue empty.
    """
    rows = np.flatnonzero(fresh)
    rows = rows[np.argsort(work.called[rows], kind="stable")]
    at = np.searchsorted(work.called[rows], work.called)
    beyond = np.full(_NEIGHBOURS, np.iinfo(np.int64).max)
    around = sliding_window_view(np.concatenate([beyond, lag[rows], beyond]), 2 * _NEIGHBOURS)
    early = (around < -_TICK_NS).sum(1)
    least = around.min(1)
    close = (around <= (least + np.maximum(_JUMP_NS, np.abs(least) // 100))[:, None]).sum(1)
    neighbours = np.minimum(len(rows), np.arange(len(around)) + _NEIGHBOURS)
    neighbours -= np.maximum(0, np.arange(len(around)) - _NEIGHBOURS)
    shared: Bool = (2 * early >= np.maximum(1, neighbours)) & (2 * close >= early)
    return np.where(neighbours >= _ENOUGH, shared, otherwise)[at]
