"""Sorting and numbering of long columns with few distinct values, as those of tracks, lanes and names are.

The functions give what numpy's `argsort`, `lexsort` and `unique` give, in a fraction of the time.
"""

from collections.abc import Collection
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

Int64 = npt.NDArray[np.int64]
Integers = npt.NDArray[np.integer[Any]]


def grouped(group: Integers) -> Int64:
    """Positions by group, then as they stand: ``np.argsort(group, kind="stable")``."""
    if not len(group) or (group.min() >= 0 and group.max() < 1 << 16):
        group = group.astype(np.uint16)  # numpy sorts 16 bits by counting
    return np.argsort(group, kind="stable")


def order_in_groups(group: Integers, start: Int64, *ties: Integers) -> Int64:
    """Positions by group, then start, then the ties one after the other, then as they stand.

    The same as ``np.lexsort((*reversed(ties), start, group))``. Few rows of a recording begin at once, and
    the ties are sorted for these alone.
    """
    order = np.argsort(start, kind="stable")  # quick: files are almost in order
    sorted_start = start[order]
    equal = np.zeros(len(order) + 1, np.bool_)
    equal[1:-1] = sorted_start[1:] == sorted_start[:-1]
    places = np.flatnonzero(equal[1:] | equal[:-1])
    rows = order[places]
    keys = [key[rows] for key in (*reversed(ties), start)]
    order[places] = rows[np.lexsort(keys)]
    return order[grouped(group[order])]


def order_of_nesting(
    lane: Int64, start: Int64, end: Int64, tie: Integers, by_start: Int64 | None = None
) -> Int64:
    """Positions of the rows on lanes by lane, then start, the last end, and the tie, then as they stand.

    Of the rows whose lane is not negative the same as ``np.lexsort((tie, -end, start, lane))``. `by_start`:
    all positions by start, where they are known.
    """
    by_start = np.argsort(start, kind="stable") if by_start is None else by_start
    rows = by_start[lane[by_start] >= 0]
    rows = rows[grouped(lane[rows])]
    equal = np.zeros(len(rows) + 1, np.bool_)
    equal[1:-1] = np.diff(start[rows]) == 0
    equal[1:-1] &= np.diff(lane[rows]) == 0
    places = np.flatnonzero(equal[1:] | equal[:-1])
    tied = rows[places]
    rows[places] = tied[np.lexsort((tie[tied], -end[tied], start[tied], lane[tied]))]
    return rows


def unique(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The distinct values, sorted: ``np.unique(values)``."""
    found: npt.NDArray[Any] = np.sort(pd.unique(values.ravel()))
    return found


def among(codes: Integers, wanted: Collection[int]) -> npt.NDArray[np.bool_]:
    """Which codes are one of a few: ``np.isin(codes, wanted)``."""
    found = np.zeros(len(codes), np.bool_)
    for code in wanted:
        found |= codes == code
    return found


def first_of_each(number: Int64) -> Int64:
    """Where each number occurs first; all from 0 to the greatest do."""
    first = np.zeros(int(number.max(initial=-1)) + 1, np.int64)
    first[number[::-1]] = np.arange(len(number) - 1, -1, -1)
    return first


def distinct(values: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], Int64]:
    """The distinct values, sorted, and which of them each one is: ``np.unique(..., return_inverse=True)``."""
    codes, found = pd.factorize(values, sort=True)
    return found, codes
