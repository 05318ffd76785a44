"""Events on their lines: the common input of all comparisons."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hta_widgets.arrays import Int64

Integers = npt.NDArray[np.integer]


class Line(NamedTuple):
    """One line of a comparison: the same in two runs if kind and name are.

    Attributes:
        kind, name: what it is.
        leaf: of a path, the event that it ends with, as it was recorded; "" for lines without a place.
    """

    kind: str
    name: str
    leaf: str = ""


@dataclass(frozen=True, eq=False)
class Named:
    """Events of one or more ranks by name, on the lines that they belong to.

    Attributes:
        line, iteration: as in `Entries`.
        name: their names, by place in ``names``.
        ns: int64 how long they took.
    """

    line: Int64
    iteration: Integers
    name: Integers
    ns: Int64
    names: list[str]


@dataclass(frozen=True, eq=False)
class Entries:
    """Events of one or more ranks, each with what it adds to a line.

    Attributes:
        lines: the lines that occur.
        line: int64 line of each event, by its place in ``lines``.
        iteration: the step of each event, -1 for none.
        count, total, exclusive: int64 what it adds to each of the three.
        work: the device work that the lines own; None where they are kernels themselves.
        calls: the calls that make up the lines, where their names do not say so.
        begin: int64 ns at which each of the lines first runs, where lines have a place.
    """

    lines: list[Line]
    line: Int64
    iteration: Integers
    count: Int64
    total: Int64
    exclusive: Int64
    work: Named | None = None
    calls: Named | None = None
    begin: Int64 | None = None
