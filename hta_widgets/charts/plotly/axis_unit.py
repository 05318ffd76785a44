"""In which unit a figure shows a column. Sentences and panels round; figures have all digits that matter."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite, log10

from hta_widgets.formatting import Unit, capitalised, column_format


@dataclass(frozen=True)
class AxisUnit:
    """How a figure shows the values of an axis."""

    name: str  # of the unit; "" for a count or a ratio
    scale: float  # how many of the stored unit make one of this
    digits: str  # a format of numbers that Python and d3 read alike

    def text(self, value: float) -> str:
        """The number with its unit; "–" for none."""
        if not isfinite(value):
            return "–"
        return f"{format(value / self.scale, self.digits)} {self.name}".rstrip()


def axis_unit(column: str, largest: float = 0.0) -> AxisUnit:
    """The unit for a column of numbers up to `largest`. Times are always in ms, exact to the nanosecond."""
    of_column = column_format(column, [largest])
    match of_column.quantity:
        case "ns":
            unit, digits = Unit("ms", 1e6), 6
        case "bytes":
            unit, digits = of_column.unit, 0 if of_column.unit.scale == 1 else 3
        case "flops":
            unit, digits = of_column.unit, round(log10(of_column.unit.scale))
        case "gbps":
            unit, digits = Unit("GB/s", 1), 4
        case "pct":
            unit, digits = of_column.unit, 2
        case _:
            return AxisUnit("", 1, ",.12g")
    return AxisUnit(unit.name, unit.scale, f",.{digits}f")


def in_words(column: str, measure: str = "") -> str:
    """What a column holds: its chart's `measure`, or its name without the unit."""
    words = column_format(column, []).heading or column
    return measure or capitalised(words)
