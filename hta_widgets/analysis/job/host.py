"""Operations that the device was ready for before the host called them: the host as operations of its own."""

from __future__ import annotations

import numpy as np
import pandas as pd

from hta_widgets.analysis.core.sums import exact_sums
from hta_widgets.analysis.job.operations import NOT_CALLED
from hta_widgets.arrays import Int64
from hta_widgets.trace.ordering import differing, distinct, numbered


def host_delays(ops: pd.DataFrame, before: Int64, after: Int64) -> Int64:
    """How long the device waits for the host ahead of each operation, int64[n] ns.

    An operation waits for the host if all that it depends on had ended when its launch was called; then it
    starts so much later than it could. What it depends on are its predecessors, at the begin of a step the
    earlier steps of its rank. Where the launch was not recorded, or the first step begins, nothing is known:
    0.
    """
    ready = ops["ended_before_ns"].to_numpy(np.int64).copy()
    np.maximum.at(ready, after, ops["end_ns"].to_numpy(np.int64)[before])
    called, start = (ops[column].to_numpy(np.int64) for column in ("called_ns", "start_ns"))
    waits = (ready != NOT_CALLED) & (called != NOT_CALLED) & (called > ready)
    return np.where(waits, start - np.where(waits, ready, start), 0)


class UsualDelays:
    """What is usual at each place in the steps: the lower median of the delay over ranks and steps.

    Of an even number it is the lower of the two in the middle: where one of two ranks is late in every step,
    the other shows how early a host can be. Places that are there in fewer than half of the steps of the
    ranks that have them, as in a checkpoint, count as one: what a step waits at them is scaled to the lower
    median of these ranks and steps.
    """

    def __init__(self, ops: pd.DataFrame) -> None:
        rank, step, lane = (distinct(ops[name].to_numpy(np.int64))[1] for name in ("rank", "step", "lane"))
        self._place = numbered(lane, ops["nth"].to_numpy(np.int64), pd.factorize(ops["name"])[0])
        self._size = np.bincount(self._place)
        often = differing(self._place, rank) * (int(step.max(initial=-1)) + 1)
        self._rare = (2 * self._size < often)[self._place]
        having_rare = np.isin(rank, rank[self._rare])
        self._rows = np.flatnonzero(having_rare)
        self._step = numbered(rank[self._rows], step[self._rows])

    def of(self, delay: Int64) -> Int64:
        """Of each operation, int64[n] ns."""
        ordered = delay[np.lexsort((delay, self._place))]
        middle = np.cumsum(self._size) - self._size + (self._size - 1) // 2
        usual: Int64 = ordered[middle][self._place]
        if not len(self._rows):
            return usual
        waits = np.where(self._rare, delay, 0)[self._rows]
        by_step = exact_sums(self._step, waits, int(self._step.max()) + 1)
        most = np.sort(by_step)[(len(by_step) - 1) // 2]
        own = by_step[self._step]
        scaled = delay[self._rows] * np.minimum(1.0, most / np.where(own > 0, own, 1))
        rare = self._rare[self._rows]
        usual[self._rows[rare]] = np.rint(scaled[rare]).astype(np.int64)
        return usual
