"""Events on their lines: what every way of comparing hands over."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["Entries", "Line"]

Int64 = npt.NDArray[np.int64]


class Line(NamedTuple):
    """One line of a comparison: the same in two runs if kind and name are."""

    kind: str
    name: str


@dataclass(frozen=True, eq=False)
class Entries:
    """Events of one or more ranks, each with what it adds to a line.

    Attributes:
        lines: the lines that occur.
        line: int64 line of each event, by its place in ``lines``.
        iteration: the step of each event, -1 for none.
        count, total, exclusive: int64 what it adds to each of the three.
    """

    lines: list[Line]
    line: Int64
    iteration: npt.NDArray[np.integer]
    count: Int64
    total: Int64
    exclusive: Int64
