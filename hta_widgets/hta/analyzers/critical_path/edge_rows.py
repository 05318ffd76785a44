"""Edges while they are found: rows of begin, end, type, weight in ns, event that has the time."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hta_widgets.jit import inline


@inline
def put(
    edges: npt.NDArray[np.int64], at: int, begin: int, end: int, kind: int, weight: int, event: int
) -> None:
    """Write an edge into a row."""
    edges[at, 0], edges[at, 1], edges[at, 2] = begin, end, kind
    edges[at, 3], edges[at, 4] = weight, event
