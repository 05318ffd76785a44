"""Whether a series of levels rises: its slope by Theil and Sen, and how likely chance rises as steadily.

The slope is the median of the slopes between all pairs (Theil 1950; Sen, "Estimates of the Regression
Coefficient Based on Kendall's Tau", JASA 63, 1968): a single jump, as when the first step allocates the
optimizer's state, does not move it. The test is that of Mann (1945) and Kendall: of all orders of the values,
the share in which as many pairs rise. Equal values count as neither, which makes it careful.
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from hta_widgets.arrays import Int64
from hta_widgets.jit import kernel

LEAST_STEPS: Final = 5
"""In fewer steps, levels that all rise are no rare chance: four do in 1 of 24 orders."""

_EXACT_UP_TO = 30


def slope_of(levels: Int64) -> float:
    """How much two or more levels rise per position."""
    rising, falling = _pairs(levels)
    middle = (len(levels) * (len(levels) - 1) // 2 - 1) // 2  # the lower one of two
    if max(rising, falling) <= middle:
        return 0.0  # as of levels that are mostly equal, which is quicker to see
    slopes = _pair_slopes(levels)
    return float(np.median(slopes, overwrite_input=True))


def chance_of(levels: Int64) -> float:
    """How likely chance rises as much or more as two or more levels do: quicker to say than their slope."""
    rising, falling = _pairs(levels)
    return _chance(len(levels), rising - falling)


def _pairs(levels: Int64) -> tuple[int, int]:
    """Of how many pairs the later level is higher, and of how many it is lower."""
    values, place = np.unique(levels, return_inverse=True)
    rising, falling = (
        int(_rising(each, np.zeros(len(values) + 1, np.int64))) for each in (place, len(values) - 1 - place)
    )
    return rising, falling


@kernel
def _rising(place: Int64, seen: Int64) -> int:
    """How many pairs rise; `seen`: zeros, one more than there are places (the tree of Fenwick 1994)."""
    found = 0
    for i in range(len(place)):
        at = place[i]
        while at > 0:
            found += seen[at]
            at -= at & -at
        at = place[i] + 1
        while at < len(seen):
            seen[at] += 1
            at += at & -at
    return found


def _pair_slopes(values: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """(later - earlier) / places between them, float64 for each pair, in the order of that distance."""
    count = len(values)
    slopes = np.empty(count * (count - 1) // 2)
    filled = 0
    for apart in range(1, count):
        part = slopes[filled : filled + count - apart]
        np.divide(values[apart:] - values[:-apart], apart, out=part)
        filled += len(part)
    return slopes


def _chance(count: int, score: int) -> float:
    """P(S >= score) for Kendall's S of so many values in random order."""
    pairs = count * (count - 1) // 2
    if count > _EXACT_UP_TO:
        deviation = math.sqrt(count * (count - 1) * (2 * count + 5) / 18)
        return 1 - NormalDist().cdf((score - 1) / deviation)
    # S = pairs - 2 inversions
    most = (pairs - score) // 2
    return sum(_orders(count)[: most + 1]) / math.factorial(count)


@lru_cache(maxsize=_EXACT_UP_TO)
def _orders(count: int) -> tuple[int, ...]:
    """How many orders of so many values have 0, 1, 2 ... inversions (Mahonian numbers)."""
    if count == 1:
        return (1,)
    shorter = _orders(count - 1)
    return tuple(sum(shorter[max(0, at - count + 1) : at + 1]) for at in range(count * (count - 1) // 2 + 1))
