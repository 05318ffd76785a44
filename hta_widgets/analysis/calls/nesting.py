"""Callers on a thread, derived from times alone."""

from __future__ import annotations

import numpy as np

from hta_widgets.arrays import Bool, Int8, Int32, Int64
from hta_widgets.jit import kernel
from hta_widgets.trace.ordering import Integers, grouped, order_of_nesting


def nest(
    start: Int64, end: Int64, lane: Int64, rank_in_tie: Integers, by_start: Int64 | None = None
) -> Int32:
    """The caller of each row: the innermost row of its lane that contains it, -1 at the top.

    Args:
        start, end: ns; the rows are in file order.
        lane: rows nest only within one lane; negative: the row takes no part.
        rank_in_tie: of rows with equal times the lower one is the caller; then file order. Rows of one kind
            have one rank, up to 127.
        by_start: all rows by start, then as they stand, where that is known.

    A row of zero length is a call shorter than the clock's tick. It belongs to the row in which it starts,
    else to the one that ends there: it was made before its caller returned. Between a row that ends there and
    one that begins there, the file decides, if it lists the rows of a lane and kind by start, and so in the
    order of calls: a row is not the caller of those listed before it. A row that only partly overlaps another
    is not its child.
    """
    start, end = np.ascontiguousarray(start), np.ascontiguousarray(end)  # which the build's kernels take
    parent = np.full(len(start), -1, np.int32)
    kind = rank_in_tie.astype(np.int8, copy=False)
    rows = order_of_nesting(lane, start, end, kind, by_start)
    if len(rows):
        listed = _listed_by_start(rows, start, end, lane, kind)
        _nest(rows, start, end, lane, kind, int(kind.max()) + 1, listed, parent)
    return parent


def _listed_by_start(rows: Int64, start: Int64, end: Int64, lane: Int64, kind: Int8) -> Bool:
    """For each row of the whole whether the file has the rows of its lane and kind in the order of starts;
    False where no row without length starts together with one that has some.
    """
    listed = np.zeros(len(start), np.bool_)
    if not _begin_together(rows, start, end, lane):
        return listed
    takes_part = np.zeros(len(start), np.bool_)
    takes_part[rows] = True
    by_kind = np.flatnonzero(takes_part)
    by_kind = by_kind[grouped(kind[by_kind])]
    by_kind = by_kind[grouped(lane[by_kind])]
    group = np.zeros(len(by_kind), np.int64)
    group[1:] = np.cumsum((np.diff(lane[by_kind]) != 0) | (np.diff(kind[by_kind]) != 0))
    back = (np.diff(start[by_kind]) < 0) & (np.diff(group) == 0)
    listed[by_kind] = ~np.isin(group, group[1:][back])
    return listed


@kernel
def _begin_together(rows: Int64, start: Int64, end: Int64, lane: Int64) -> int:
    """How many rows without length come after one that has some and begins with them on their lane."""
    found = 0
    for i in range(1, len(rows)):
        row, before = rows[i], rows[i - 1]
        if end[row] == start[row] == start[before] < end[before] and lane[row] == lane[before]:
            found += 1
    return found


@kernel
def _nest(
    rows: Int64, start: Int64, end: Int64, lane: Int64, kind: Int8, kinds: int, listed: Bool, parent: Int32
) -> None:
    stack = np.empty(len(rows), np.int64)
    first = np.empty(kinds, np.int64)  # by kind: of the rows that begin now, that in the file
    ended = np.empty(len(first), np.int64)  # by kind: the innermost row that ends now, -1 without one
    top = 0
    for i in range(len(rows)):
        row = rows[i]
        begins = start[row]
        if not i or lane[row] != lane[rows[i - 1]] or begins != start[rows[i - 1]]:
            if i and lane[row] != lane[rows[i - 1]]:
                top = 0
            while top and end[stack[top - 1]] < begins:
                top -= 1
            first[:], ended[:] = len(parent), -1
            at = top - 1
            while at >= 0 and end[stack[at]] == begins:
                if ended[kind[stack[at]]] < 0:
                    ended[kind[stack[at]]] = stack[at]
                at -= 1
        own = kind[row]
        lasts = end[row] > begins
        if lasts:
            first[own] = min(first[own], row)
        elif listed[row] and ended[own] >= 0 and row < first[own] < len(parent):
            parent[row] = ended[own]
            ended[own] = row
            continue
        while top and (end[stack[top - 1]] < begins or (lasts and end[stack[top - 1]] == begins)):
            top -= 1
        # Rows that partly overlap leave ends on the stack that are not nested: look below them.
        below = top
        while below and end[stack[below - 1]] < end[row]:
            below -= 1
        if below:
            parent[row] = stack[below - 1]
        stack[top] = row
        top += 1
