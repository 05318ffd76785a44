"""Exact statistics of durations by group: count, sum, smallest, largest, mean, standard deviation.

Sums and sums of squares are integers of unlimited size. So groups can be merged without loss (which "others"
needs), the standard deviation is correctly rounded even if durations differ by a nanosecond in an hour, and
nothing depends on the order of the events.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from hta_widgets.arrays import Int64
from hta_widgets.jit import kernel

UInt64 = npt.NDArray[np.uint64]

MOMENTS = ["count", "sum_ns", "min_ns", "max_ns", "squares"]
STATISTICS = ["count", "sum_ns", "min_ns", "max_ns", "mean_ns", "std_ns"]


def moments(group: npt.NDArray[np.integer], dur: Int64, groups: int) -> pd.DataFrame:
    """The columns `MOMENTS` of the groups that occur, labelled with their number.

    Args:
        group: number of each event's group, below `groups`; negative: the event takes no part.
        dur: ns, not negative.
        groups: how many groups there may be.
    """
    count, total = np.zeros(groups, np.int64), np.zeros(groups, np.int64)
    least, most = np.full(groups, np.iinfo(np.int64).max), np.full(groups, -1, np.int64)
    low, high = np.zeros(groups, np.uint64), np.zeros(groups, np.uint64)
    _add_up(np.asarray(group, np.int64), np.asarray(dur, np.int64), count, total, least, most, low, high)
    found = np.flatnonzero(count)
    squares = np.empty(len(found), object)
    squares[:] = [
        (above << 64) + below for above, below in zip(high[found].tolist(), low[found].tolist(), strict=True)
    ]
    columns = {"count": count, "sum_ns": total, "min_ns": least, "max_ns": most}
    return pd.DataFrame(
        {**{name: values[found] for name, values in columns.items()}, "squares": squares}, index=found
    )


def merged(frame: pd.DataFrame, keys: Sequence[str], *, others: Sequence[str] = ()) -> pd.DataFrame:
    """One row per value of `keys`, ascending: the moments of all its rows; columns `others` add up."""
    how = {"count": "sum", "sum_ns": "sum", "min_ns": "min", "max_ns": "max", "squares": "sum"}
    how |= dict.fromkeys(others, "sum")
    # As Python's integers, which do not overflow; pandas may have made int64 of small ones.
    frame = frame.assign(squares=frame["squares"].astype(object))
    return frame.groupby(list(keys), sort=True, observed=True, as_index=False).agg(how)


def described(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with the `STATISTICS` of its `MOMENTS`: mean_ns, std_ns float64 (n - 1; NaN for one)."""
    count, total = frame["count"], frame["sum_ns"]
    rows = zip(count.tolist(), total.tolist(), frame["squares"].tolist(), strict=True)
    spread = [
        math.sqrt((n * squares - added * added) / (n * (n - 1))) if n > 1 else math.nan
        for n, added, squares in rows
    ]
    columns: dict[Any, Any] = {}  # a frame made at once: to put columns into one takes longer than all else
    for name, column in frame.items():
        if name == "squares":
            columns["mean_ns"] = (total / count).astype(np.float64)
            columns["std_ns"] = np.array(spread, np.float64)
        else:
            columns[name] = column
    return pd.DataFrame(columns, index=frame.index)


@kernel
def _add_up(
    group: Int64, dur: Int64, count: Int64, total: Int64, least: Int64, most: Int64, low: UInt64, high: UInt64
) -> None:
    word = np.uint64(32)
    mask = np.uint64(0xFFFFFFFF)
    unit = np.uint64(1)
    for i in range(len(group)):
        g = group[i]
        if g < 0:
            continue
        d = dur[i]
        count[g] += 1
        total[g] += d
        least[g] = min(least[g], d)
        most[g] = max(most[g], d)
        # (a 2^32 + b)^2 = a^2 2^64 + (2 a b) 2^32 + b^2, in two words with carry.
        a, b = np.uint64(d) >> word, np.uint64(d) & mask
        square = low[g] + b * b
        if square < low[g]:
            high[g] += unit
        low[g] = square
        if a:
            cross = a * b
            shifted = low[g] + (cross << np.uint64(33))
            if shifted < low[g]:
                high[g] += unit
            low[g] = shifted
            high[g] += (cross >> np.uint64(31)) + a * a
