"""The median, for kernels: numba's own cannot be translated by the build."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from hta_widgets.jit import outline


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
