"""Exact sums of groups: `np.bincount` adds as float."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def exact_sums(
    group: npt.NDArray[np.integer], values: npt.NDArray[np.int64], groups: int
) -> npt.NDArray[np.int64]:
    """The sum of the values of each group, int64[groups]."""
    found = np.zeros(groups, np.int64)
    np.add.at(found, group, values)
    return found
