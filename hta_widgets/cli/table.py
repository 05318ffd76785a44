"""Frames as text tables: three significant digits, the unit once in the heading, as in the panels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
from pandas.api import types

from hta_widgets.cli.terminal import aligned, printable, shortened, width

__all__ = ["frame_lines", "significant"]

_TIME = (("s", 10**9), ("ms", 10**6), ("µs", 10**3), ("ns", 1))
_UNITS = {"pct": "%", "bytes": "B", "gbps": "GB/s"}
_TEXT = 100
_LEAST_TEXT = 24


@dataclass(frozen=True)
class _Column:
    heading: str
    cells: list[str]
    right: bool

    @property
    def width(self) -> int:
        return max(map(width, (self.heading, *self.cells)))

    def within(self, cells: int) -> _Column:
        return _Column(self.heading, [shortened(text, cells) for text in self.cells], self.right)


def significant(value: float) -> str:
    """Three significant digits, but all of them before the decimal point; – for no value."""
    if not math.isfinite(value):
        return "–"
    whole = 1 if value == 0 else math.floor(math.log10(abs(value))) + 1
    return f"{value:,.{0 if value == 0 else min(max(3 - whole, 0), 6)}f}"


def frame_lines(frame: pd.DataFrame, limit: int, cells: int | None, alike: bool = False) -> list[str]:
    """A heading and the first `limit` rows, in at most `cells` if given; then a line on what was left out.

    Each column of times has a suitable unit; `alike`: all have the same.
    """
    shown = frame.head(limit)
    times = [_largest(shown[name]) for name in shown.columns if str(name).endswith("_ns")]
    unit = _unit(max(times, default=0)) if alike else None
    columns = [_column(str(name), shown[name], unit) for name in shown.columns]
    fitting = columns if cells is None else _fitting(columns, cells)
    rows = [[column.heading for column in fitting]]
    rows += [list(row) for row in zip(*(column.cells for column in fitting), strict=True)]
    lines = aligned(rows, [column.right for column in fitting])
    left_out = [
        f"{number:,} more {noun}{'s' * (number != 1)}"
        for number, noun in (
            (len(frame) - len(shown), "row"),
            (len(columns) - len(fitting), "column"),
        )
        if number
    ]
    return [*lines, f"… {' and '.join(left_out)}"] if left_out else lines


def _largest(series: pd.Series) -> float:
    return max((abs(value) for value in series.dropna().tolist() if math.isfinite(value)), default=0)


def _unit(largest: float) -> tuple[str, int]:
    return next((entry for entry in _TIME if largest >= entry[1]), _TIME[-1])


def _column(name: str, series: pd.Series, time: tuple[str, int] | None = None) -> _Column:
    stem, _, suffix = name.rpartition("_")
    if suffix not in ("ns", *_UNITS) or name == "bytes":
        stem, suffix = name, ""
    heading = stem.replace("_", " ")
    if types.is_bool_dtype(series):
        return _Column(heading, ["yes" if value else "no" for value in series], False)
    if not types.is_numeric_dtype(series):
        texts = ["" if missing else str(value) for value, missing in zip(series, series.isna(), strict=True)]
        return _Column(heading, [shortened(printable(text), _TEXT) for text in texts], False)
    values = [math.nan if pd.isna(value) else value for value in series.tolist()]
    if suffix == "ns":
        unit, scale = time or _unit(_largest(series))
        return _Column(f"{heading} {unit}", [significant(value / scale) for value in values], True)
    whole = suffix in ("", "bytes")
    cells = [f"{value:,}" if whole and isinstance(value, int) else significant(value) for value in values]
    return _Column(f"{heading} {_UNITS.get(suffix, '')}".strip(), cells, True)


def _fitting(columns: Sequence[_Column], cells: int) -> list[_Column]:
    """Texts as short as need be; then the first columns that fit."""
    excess = sum(column.width + 2 for column in columns) - 2 - cells
    fitting: list[_Column] = []
    for column in columns:
        if excess > 0 and not column.right and column.width > _LEAST_TEXT:
            kept = max(_LEAST_TEXT, column.width - excess)
            excess -= column.width - kept
            column = column.within(kept)
        fitting.append(column)
    while len(fitting) > 1 and sum(column.width + 2 for column in fitting) - 2 > cells:
        fitting.pop()
    return fitting
