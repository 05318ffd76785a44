"""Sorting and numbering of long columns with few distinct values, as those of tracks, lanes and names are.

The functions give what numpy's `argsort`, `lexsort` and `unique` give, in a fraction of the time.
"""

from collections.abc import Collection
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from hta_widgets.arrays import Bool, Int32, Int64
from hta_widgets.jit import kernel

Integers = npt.NDArray[np.integer[Any]]

_LANES = 1 << 16  # of more lanes a table would be larger than the caches
_CODES = 1 << 20  # the same of codes that are numbered
_FEW = 1 << 9  # values that are sorted before pandas has begun
_FEW_CODES = 4  # of more, one look at all of them is quicker


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
    rows = np.empty(int(np.count_nonzero(lane >= 0)), np.int64)
    lanes = int(lane.max(initial=-1)) + 1
    if lanes <= _LANES:
        _by_lane(by_start, lane, np.zeros(lanes + 1, np.int64), rows)
    else:
        rows = by_start[lane[by_start] >= 0]
        rows = rows[grouped(lane[rows])]
    tied_rows = np.zeros(len(rows), np.bool_)
    _find_ties(rows, lane, start, tied_rows)
    places = np.flatnonzero(tied_rows)
    tied = rows[places]
    rows[places] = tied[np.lexsort((tie[tied], -end[tied], start[tied], lane[tied]))]
    return rows


def longest_at(start: Int64, dur: Int64) -> int:
    """The position of what lasts longest, of equals of what begins first (not of the first in a file)."""
    equal = np.flatnonzero(dur == dur.max())
    return int(equal[start[equal].argmin()])


def unique(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The distinct values, sorted: ``np.unique(values)``."""
    if values.size < _FEW:
        return np.unique(values)
    tabled = _tabled(values)
    return np.sort(pd.unique(values.ravel())) if tabled is None else tabled[0]


def among(codes: Integers, wanted: Collection[int]) -> npt.NDArray[np.bool_]:
    """Which codes are one of some, quickly of a few: ``np.isin(codes, wanted)``."""
    if len(wanted) > _FEW_CODES:
        return np.isin(codes, [*wanted])
    found = np.zeros(len(codes), np.bool_)
    for code in wanted:
        found |= codes == code
    return found


def rows_with(codes: Int32, wanted: Bool) -> Int64:
    """The positions of wanted codes, such as those of some names: ``np.flatnonzero(wanted[codes])``."""
    rows = np.empty(len(codes) if wanted.any() else 0, np.int64)
    return rows[: _rows_with(codes, wanted, rows)].copy() if len(rows) else rows


def rows_of_each(number: Int64) -> list[Int64]:
    """Where each number occurs, in order; all from 0 to the greatest do."""
    size = np.bincount(number)
    return np.split(grouped(number), np.cumsum(size)[:-1])[: len(size)]


def first_of_each(number: Int64) -> Int64:
    """Where each number occurs first; all from 0 to the greatest do."""
    first = np.zeros(int(number.max(initial=-1)) + 1, np.int64)
    first[number[::-1]] = np.arange(len(number) - 1, -1, -1)
    return first


def differing(group: Int64, values: Integers) -> Int64:
    """How many different values (codes from -1 on) each group has; there is a row of each, from 0 on."""
    return np.bincount(group[first_of_each(numbered(group, values))])


def nth_of_each(number: Int64) -> Int64:
    """How many rows before each have the same number; all from 0 to the greatest occur."""
    order, size = grouped(number), np.bincount(number)
    nth = np.empty(len(number), np.int64)
    nth[order] = np.arange(len(number)) - np.repeat(np.cumsum(size) - size, size)
    return nth


def distinct(values: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], Int64]:
    """The distinct values, sorted, and which of them each one is: ``np.unique(..., return_inverse=True)``."""
    if len(values) < _FEW:
        return np.unique(values, return_inverse=True)
    tabled = _tabled(values)
    if tabled is None:
        codes, found = pd.factorize(values, sort=True)
        return found, codes
    found, place, seen = tabled
    return found, (np.cumsum(seen) - 1)[place]


def _tabled(values: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], Integers, Bool] | None:
    """The distinct values, sorted, and a table of those between the least and the greatest: where in it each
    value stands, and which there are. None of other values than whole numbers, or where most would be none.
    """
    if values.dtype.kind not in "iu" or values.dtype.itemsize < 4:
        return None
    least, most = int(values.min()), int(values.max())
    if most - least >= max(_CODES, values.size):
        return None
    place = values.ravel() - values.dtype.type(least)
    seen = np.zeros(most - least + 1, np.bool_)
    seen[place] = True
    return (np.flatnonzero(seen) + least).astype(values.dtype), place, seen


def paired(first: npt.NDArray[Any], second: npt.NDArray[Any]) -> Int64:
    """A number for each distinct pair, in the order of the values, which may be of any size."""
    values, inner = distinct(second)
    return distinct(first)[1] * len(values) + inner


def numbered(first: Integers, *others: Integers) -> Int64:
    """Which of the distinct rows of some columns each row is, in the order in which they occur first.

    Args:
        first, others: codes, which are not less than -1.
    """
    code, most = first.astype(np.int64) + 1, int(first.max(initial=-1)) + 2
    for column in others:
        width = int(column.max(initial=-1)) + 2
        if most * width > _CODES:
            code = _by_occurrence(code, most)
            most = int(code.max(initial=-1)) + 1
        code = code * width + column + 1
        most *= width
    return _by_occurrence(code, most)


def _by_occurrence(code: Int64, most: int) -> Int64:
    """Codes from 0 up to less than `most`, numbered in the order in which they occur first."""
    if most > _CODES:
        return pd.factorize(code)[0].astype(np.int64, copy=False)
    number = np.empty(len(code), np.int64)
    _number(code, np.full(most, -1, np.int64), number)
    return number


@kernel
def _rows_with(codes: Int32, wanted: Bool, rows: Int64) -> int:
    found = 0
    for row in range(len(codes)):
        if wanted[codes[row]]:
            rows[found] = row
            found += 1
    return found


@kernel
def _number(code: Int64, number_of: Int64, number: Int64) -> None:
    """`number_of`: -1 for each code."""
    known = 0
    for i in range(len(code)):
        if number_of[code[i]] < 0:
            number_of[code[i]] = known
            known += 1
        number[i] = number_of[code[i]]


@kernel
def _by_lane(by_start: Int64, lane: Int64, begins: Int64, rows: Int64) -> None:
    """Sort the rows that have a lane by counting; `begins`: zeros, one more than there are lanes."""
    for row in range(len(lane)):
        if lane[row] >= 0:
            begins[lane[row] + 1] += 1
    for each in range(1, len(begins)):
        begins[each] += begins[each - 1]
    for i in range(len(by_start)):
        row = by_start[i]
        if lane[row] >= 0:
            rows[begins[lane[row]]] = row
            begins[lane[row]] += 1


@kernel
def _find_ties(rows: Int64, lane: Int64, start: Int64, tied: Bool) -> None:
    """Which rows begin together with the one before or after them on their lane."""
    for i in range(1, len(rows)):
        if start[rows[i]] == start[rows[i - 1]] and lane[rows[i]] == lane[rows[i - 1]]:
            tied[i] = tied[i - 1] = True
