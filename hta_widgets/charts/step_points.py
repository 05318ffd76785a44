"""Step functions with as many points as a line of pixels can show."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

MOST_POINTS = 2000
_PER_COLUMN = 4  # first, lowest, highest and last: all that a column of pixels shows of a line

Numbers = npt.NDArray[Any]


def shown_points(time: Numbers, value: Numbers, most: int = MOST_POINTS) -> Numbers:
    """Places of at most `most` points: the first, lowest, highest and last of every stretch of time.

    The points must be in order of time. The line through what is left covers the same pixels as the whole,
    on a chart of up to `most / 4` pixels width, and its extremes are exact.
    """
    if len(time) <= most:
        return np.arange(len(time))
    columns = most // _PER_COLUMN
    edges = np.linspace(float(time[0]), float(time[-1]), columns + 1)[1:-1]
    column = np.searchsorted(edges, time, side="right")
    first = np.flatnonzero(np.diff(column, prepend=-1))
    last = np.append(first[1:], len(time)) - 1
    by_value = np.lexsort((value, column))  # within a column: its lowest point first, its highest last
    return np.unique(np.concatenate([first, last, by_value[first], by_value[last]]))
