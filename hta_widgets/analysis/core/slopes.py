"""The slopes between all pairs of a series: Theil and Sen take their median, Mann and Kendall their signs."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def pair_slopes(values: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """(later - earlier) / places between them, float64 for each pair, in the order of that distance."""
    count = len(values)
    slopes = np.empty(count * (count - 1) // 2)
    filled = 0
    for apart in range(1, count):
        part = slopes[filled : filled + count - apart]
        np.divide(values[apart:] - values[:-apart], apart, out=part)
        filled += len(part)
    return slopes
