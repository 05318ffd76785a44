"""Events on their lines: the common input of all comparisons."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hta_widgets.arrays import Int64

Integers = npt.NDArray[np.integer]


class Line(NamedTuple):
    """One line of a comparison: the same in two runs if kind and name are."""

    # what it is
    kind: str
    name: str
    leaf: str = ""  # of a path, the event that it ends with, as it was recorded; "" for lines without a place


@dataclass(frozen=True, eq=False)
class Named:
    """Events of one or more ranks by name, on the lines that they belong to."""

    # as in `Entries`
    line: Int64
    iteration: Integers
    name: Integers  # their names, by place in ``names``
    ns: Int64  # how long they took
    names: list[str]


@dataclass(frozen=True, eq=False)
class Entries:
    """Events of one or more ranks, each with what it adds to a line."""

    lines: list[Line]  # the lines that occur
    line: Int64  # line of each event, by its place in ``lines``
    iteration: Integers  # the step of each event, -1 for none
    # int64 what it adds to each of the three
    count: Int64
    total: Int64
    exclusive: Int64
    work: Named | None = None  # the device work that the lines own; None where they are kernels themselves
    calls: Named | None = None  # the calls that make up the lines, where their names do not say so
    begin: Int64 | None = None  # ns at which each of the lines first runs, where lines have a place
