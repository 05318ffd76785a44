"""How long work like this one takes: the sound records of the same name and size."""

from __future__ import annotations

import numpy as np

from hta_widgets.arrays import Bool, Int64
from hta_widgets.trace.records.work import Work

# From -13 % to 3.5 %, over the records of real files, each taken as if it were broken.
_ESTIMATE_ERROR = 0.15
ENOUGH = 3
"""Fewer peers say nothing of a record: 2 % of the records of real files have fewer."""


class Peers:
    """The lengths of the records that a mask calls sound, by group."""

    def __init__(self, work: Work, sound: Bool) -> None:
        rows = np.flatnonzero(sound)
        self._group = work.group
        order = rows[np.lexsort((work.dur[rows], self._group[rows]))]
        self._of, self._dur = self._group[order], work.dur[order]

    def count(self, positions: Int64) -> Int64:
        """How many peers each has."""
        first, last = self._between(positions)
        return last - first

    def quantile(self, positions: Int64, share: float) -> Int64:
        """The length that this share of the peers of each does not exceed, ns; 0 without peers."""
        first, last = self._between(positions)
        if not len(self._dur):
            return np.zeros(len(positions), np.int64)
        at = first + np.floor(share * np.maximum(last - first - 1, 0)).astype(np.int64)
        return np.where(last > first, self._dur[np.minimum(at, len(self._dur) - 1)], 0)

    def error(self, positions: Int64) -> Int64:
        """How far the length of each may be from the estimate, ns: what estimates of real records are off by,
        more where its peers spread more, and nothing where all of them take the same time.
        """
        most = self.quantile(positions, 0.9) - self.quantile(positions, 0.1)
        every = self.quantile(positions, 1.0) - self.quantile(positions, 0.0)
        off = (_ESTIMATE_ERROR * self.quantile(positions, 0.5)).astype(np.int64)
        return np.minimum(np.maximum(most, off), every)

    def _between(self, positions: Int64) -> tuple[Int64, Int64]:
        group = self._group[positions]
        return np.searchsorted(self._of, group, "left"), np.searchsorted(self._of, group, "right")
