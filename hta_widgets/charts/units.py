"""In which unit the numbers of a column are shown: its name tells what they are, their size what reads best.

The front end does the same in `js/src/charts/unit.ts`.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

__all__ = ["Unit", "in_words", "unit_of"]

_BINARY = (("TiB", 1024**4), ("GiB", 1024**3), ("MiB", 1024**2), ("KiB", 1024))


@dataclass(frozen=True)
class Unit:
    """How to show a number.

    Attributes:
        name: of the unit; "" for a count or a ratio.
        scale: how many of the stored unit make one of this.
        digits: a format that keeps them all, the same for Python and for d3.
    """

    name: str
    scale: float
    digits: str

    def text(self, value: float) -> str:
        """The number with its unit; "–" for none."""
        if not isfinite(value):
            return "–"
        return f"{format(value / self.scale, self.digits)} {self.name}".rstrip()


def unit_of(column: str, largest: float = 0.0) -> Unit:
    """The unit for a column of numbers up to `largest`, by the suffix of its name. Times are always in ms."""
    match column.rsplit("_", 1)[-1]:
        case "ns":
            return Unit("ms", 1e6, ",.6f")
        case "pct":
            return Unit("%", 1, ",.2f")
        case "gbps":
            return Unit("GB/s", 1, ",.4f")
        case "flops":
            return Unit("GFLOP", 1e9, ",.9f") if abs(largest) >= 1e9 else Unit("FLOP", 1, ",.0f")
        case "bytes":
            name, scale = next(((name, size) for name, size in _BINARY if abs(largest) >= size), ("B", 1))
            return Unit(name, scale, ",.3f" if scale > 1 else ",.0f")
    return Unit("", 1, ",.12g")


def in_words(column: str, measure: str = "") -> str:
    """What a column holds: its chart's `measure`, or its name without the unit."""
    words = column.split("_")
    if len(words) > 1 and unit_of(column).name:
        words.pop()
    return measure or " ".join(words).capitalize()
