"""A measured figure beside its goal and what a peer needs for the same, and tables of them."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Figure:
    """One row: samples of ours and of the peer in the unit that `what` names; less is better in all."""

    what: str
    ours: Sequence[float]
    theirs: Sequence[float] = ()
    goal: float | None = None  # at most
    floor: float | None = None  # as many times as much, at least, the peer needs
    failed: str = ""  # why there are no samples of the peer

    @property
    def ratio(self) -> float | None:
        """How many times as much the peer needs."""
        if not self.theirs:
            return None
        return statistics.median(self.theirs) / max(statistics.median(self.ours), 1e-6)

    def at_pace(self, pace: float) -> Figure:
        """The same with its goal, if it is a time, as on a machine that needs so many times as much."""
        is_time = self.what.rpartition(", ")[2].split()[-1] in ("s", "ms")
        return replace(self, goal=self.goal * pace) if is_time and self.goal is not None else self

    @property
    def is_unasked(self) -> bool:
        """Whether there was nothing to measure."""
        return any(math.isnan(value) for value in self.ours)

    @property
    def met(self) -> bool:
        return self.goal is None or statistics.median(self.ours) <= self.goal

    @property
    def fell(self) -> bool:
        """Whether the ratio is below its floor."""
        return self.floor is not None and self.ratio is not None and self.ratio < self.floor


def exponent(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """Of the size, in the cost: 1 is proportional. The slope of the straight line through the logarithms."""
    x, y = ([math.log(max(value, 1e-6)) for value in values] for values in (sizes, costs))
    return statistics.linear_regression(x, y).slope


def table(figures: Sequence[Figure], peer: str) -> str:
    """Markdown: medians with their extent; columns that would be empty are left out."""
    columns = [("", [figure.what for figure in figures]), ("hta_widgets", [_spread(f.ours) for f in figures])]
    if any(figure.theirs or figure.failed for figure in figures):
        ratios = ["" if f.ratio is None else f"{_number(f.ratio)} x" for f in figures]
        columns += [(peer, [f.failed or _spread(f.theirs) for f in figures]), (f"{peer} needs", ratios)]
    if any(figure.goal is not None for figure in figures):
        columns += [("goal", ["" if f.goal is None or f.is_unasked else _goal(f) for f in figures])]
    lines = [
        _line([name for name, _ in columns]),
        "|---" + "|--:" * (len(columns) - 1) + "|",
        *map(_line, zip(*(values for _, values in columns), strict=True)),
    ]
    return "\n".join(lines)


def _line(cells: Iterable[str]) -> str:
    return "|" + "|".join(f" {cell} " if cell else " " for cell in cells) + "|"


def _goal(figure: Figure) -> str:
    assert figure.goal is not None
    return _number(figure.goal) + ("" if figure.met else ": **not met**")


def _spread(values: Sequence[float]) -> str:
    if not values:
        return ""
    if any(math.isnan(value) for value in values):
        return "none needed"
    middle, least, most = (_number(f(values)) for f in (statistics.median, min, max))
    return middle if least == most else f"{middle} ({least}-{most})"


def _number(value: float) -> str:
    """Two digits that tell."""
    digits = 0 if value >= 10 or value == 0 else 1 if value >= 1 else 2
    return f"{value:,.{digits}f}"
