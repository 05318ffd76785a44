"""Numbering the values that occur among many codes, without sorting them all."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Int64 = npt.NDArray[np.int64]

__all__ = ["compact"]

# Up to this many entries a table of all possible values is made; beyond, values are sorted.
_TABLE = 1 << 24


def compact(codes: npt.NDArray[np.integer]) -> tuple[Int64, Int64]:
    """The distinct values, ascending, and the index of each code among them.

    What ``np.unique(codes, return_inverse=True)`` answers, in linear time where values lie close together, as
    numbers of names, threads and streams do.
    """
    if not len(codes):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    low, high = int(codes.min()), int(codes.max())
    if high - low >= _TABLE:
        values, index = np.unique(codes, return_inverse=True)
        return values.astype(np.int64), index.reshape(-1).astype(np.int64)
    place = codes.astype(np.int64) - low
    present = np.zeros(high - low + 1, np.bool_)
    present[place] = True
    index = np.cumsum(present) - 1
    return np.flatnonzero(present) + low, index[place]
