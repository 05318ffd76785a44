"""Pairs the begins and ends of slices, which a Perfetto trace has as events of their own."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hta_widgets.arrays import Int64
from hta_widgets.jit import kernel
from hta_widgets.trace.reader.perfetto.layout import BEGIN, END


def ends_of(kind: Int64, time: Int64, track: Int64, tracks: int) -> Int64:
    """For each row that begins a slice the row of its end, -1 where it has none, and for all others.

    Perfetto's rule is that an end closes the slice of its track that began last, in order of time. PyTorch
    writes many begins and then their ends, in the same order and not in that of time: those are paired by
    their place, since the rule would take the end of one slice for that of the next where they touch.
    """
    ends = np.full(len(kind), -1, np.int64)
    rows = np.flatnonzero((kind == BEGIN) | (kind == END))
    if not len(rows):
        return ends
    in_order = bool((np.diff(time[rows]) >= 0).all())
    taken = np.zeros(len(kind), np.bool_)
    if not in_order:
        _pair_runs(kind[rows], time[rows], track[rows], rows, ends, taken)
        rows = rows[~taken[rows]]
        rows = rows[np.argsort(time[rows], kind="stable")]
    _pair_stacks(kind[rows], track[rows], rows, np.full(max(1, tracks), -1, np.int64), ends)
    return ends


@kernel
def _pair_runs(
    kind: Int64, time: Int64, track: Int64, rows: Int64, ends: Int64, taken: npt.NDArray[np.bool_]
) -> None:
    """Pair runs of begins with the runs of as many ends that follow, where every pair fits."""
    i, n = 0, len(kind)
    while i < n:
        middle = i
        while middle < n and kind[middle] == BEGIN:
            middle += 1
        stop = middle
        while stop < n and kind[stop] == END:
            stop += 1
        fits = stop - middle == middle - i
        for k in range(middle - i):
            if not fits:
                break
            fits = track[i + k] == track[middle + k] and time[i + k] <= time[middle + k]
        if fits:
            for k in range(middle - i):
                ends[rows[i + k]] = rows[middle + k]
                taken[rows[i + k]] = taken[rows[middle + k]] = True
        i = max(stop, i + 1)


@kernel
def _pair_stacks(kind: Int64, track: Int64, rows: Int64, top: Int64, ends: Int64) -> None:
    """Pair each end with the last open begin of its track; `top` has -1 for each track."""
    below = np.full(len(rows), -1, np.int64)
    for k in range(len(rows)):
        at = track[k]
        if kind[k] == BEGIN:
            below[k] = top[at]
            top[at] = k
        elif top[at] >= 0:
            ends[rows[top[at]]] = rows[k]
            top[at] = below[top[at]]
