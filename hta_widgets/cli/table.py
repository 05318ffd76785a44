"""Frames as text tables: the unit once in the heading, as in the panels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
from pandas.api import types

from hta_widgets.cli.terminal import aligned, printable, shortened, width
from hta_widgets.formatting import Unit, column_format, counted, unit_of
from hta_widgets.kernel_names import NAME_COLUMNS, short_kernel_names

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


def frame_lines(frame: pd.DataFrame, limit: int, cells: int | None, alike: bool = False) -> list[str]:
    """A heading and the first `limit` rows, in at most `cells` if given; then a line on what was left out.

    Each column of times has a suitable unit; `alike`: all have the same.
    """
    shown = frame.head(limit)
    times = [value for name in shown.columns if _is_time(name) for value in shown[name].dropna().tolist()]
    unit = unit_of("ns", times) if alike else None
    columns = [_column(str(name), shown[name], unit) for name in shown.columns]
    fitting = columns if cells is None else _fitting(columns, cells)
    rows = [[column.heading for column in fitting]]
    rows += [list(row) for row in zip(*(column.cells for column in fitting), strict=True)]
    lines = aligned(rows, [column.right for column in fitting])
    left_out = [
        counted(number, f"more {noun}")
        for number, noun in (
            (len(frame) - len(shown), "row"),
            (len(columns) - len(fitting), "column"),
        )
        if number
    ]
    return [*lines, f"… {' and '.join(left_out)}"] if left_out else lines


def _is_time(name: object) -> bool:
    return str(name).endswith("_ns")


def _column(name: str, series: pd.Series, time: Unit | None = None) -> _Column:
    if types.is_bool_dtype(series):
        said = series.astype(object).map({True: "yes", False: "no"}, na_action="ignore").fillna("")
        return _Column(name.replace("_", " "), said.tolist(), False)
    if not types.is_numeric_dtype(series):
        texts = ["" if missing else str(value) for value, missing in zip(series, series.isna(), strict=True)]
        if name in NAME_COLUMNS:
            short = short_kernel_names(texts)
            texts = [short[text] for text in texts]
        return _Column(name.replace("_", " "), [shortened(printable(text), _TEXT) for text in texts], False)
    values = [math.nan if pd.isna(value) else value for value in series.tolist()]
    shown = column_format(name, values, time if _is_time(name) else None)
    heading = f"{shown.heading} {shown.unit.name}".strip()
    return _Column(heading, [shown.cell(value) for value in values], True)


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
