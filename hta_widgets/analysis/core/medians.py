"""Medians: of groups, and of a few numbers in kernels, as numba's own cannot be translated by the build."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from hta_widgets.arrays import Float64
from hta_widgets.jit import outline


def medians(group: npt.NDArray[np.integer[Any]], values: npt.NDArray[np.number[Any]], groups: int) -> Float64:
    """The median of the values of each group, float64[groups]; NaN of those without any."""
    ordered = values[np.lexsort((values, group))].astype(np.float64)
    size = np.bincount(group, minlength=groups)
    some = np.flatnonzero(size)
    begin, size = (np.cumsum(size) - size)[some], size[some]
    found = np.full(groups, np.nan)
    found[some] = (ordered[begin + (size - 1) // 2] + ordered[begin + size // 2]) / 2
    return found


@outline
def median(values: npt.NDArray[np.number[Any]]) -> float:
    """The median of at least one number, by a shell sort: these are few, and almost in order."""
    ordered, step = values.copy(), len(values) // 2
    while step:
        for at in range(step, len(ordered)):
            moved, place = ordered[at], at
            while place >= step and ordered[place - step] > moved:
                ordered[place] = ordered[place - step]
                place -= step
            ordered[place] = moved
        step //= 2
    low, high = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    return 0.5 * float(low) + 0.5 * float(high)  # their sum may be too large for an integer
