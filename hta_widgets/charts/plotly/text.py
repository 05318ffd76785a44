"""Texts in figures. Names come from the trace and plotly reads some HTML, so they are escaped."""

from __future__ import annotations

from html import escape
from itertools import islice
from textwrap import wrap

import pandas as pd

from hta_widgets.charts.plotly.axis_unit import AxisUnit, axis_unit, in_words
from hta_widgets.visible import visible

_LINE, _MOST_LINES = 90, 12
_LONGEST = 2000  # characters: what is longer would be cut anyway


def plain(text: str) -> str:
    """A name from the trace as text that plotly shows as it is."""
    return escape(visible(text), quote=False)


def wrapped(text: str) -> str:
    """A long text in lines that a tooltip can hold."""
    lines = wrap(text[:_LONGEST], _LINE)
    shown = [plain(line) for line in islice(lines, _MOST_LINES)]
    return "<br>".join([*shown, "…"] if len(lines) > len(shown) or len(text) > _LONGEST else shown)


def axis(column: str, unit: AxisUnit, measure: str = "") -> str:
    """The title of an axis of a column's values."""
    return f"{in_words(column, measure)} ({unit.name})" if unit.name else in_words(column, measure)


def row_details(frame: pd.DataFrame) -> list[str]:
    """Everything that each row tells, a line per column: exact numbers with their units, and texts.

    Numbers of events, and columns without a value, are left out.
    """
    details: list[list[str]] = [[] for _ in range(len(frame))]
    for name in frame:
        column = frame[name]
        if str(name).endswith("_id"):
            continue
        known = column.notna().to_numpy()
        numbers = pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)
        for row, value in enumerate(column.tolist()):
            if known[row] and str(value):
                text = axis_unit(str(name), value).text(value) if numbers else wrapped(str(value))
                details[row].append(f"{plain(str(name))}: {text}")
    return ["<br>".join(lines) for lines in details]
