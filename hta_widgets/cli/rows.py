"""Which rows and columns of a frame are printed, and in which order: `--where`, `--sort`, `--columns`."""

from __future__ import annotations

import operator
import re
from argparse import Namespace
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pandas as pd
from pandas.api import types

from hta_widgets.analysis.core.entry import Analysis
from hta_widgets.charts.spec import Bars, Flame, Histogram, Segments
from hta_widgets.cli.exits import UsageError
from hta_widgets.cli.values import TIME_UNITS
from hta_widgets.formatting import did_you_mean

OWN_ORDER: Final = "none"
_CONDITION: Final = re.compile(
    r"\s*(?P<column>\w+)\s*(?P<test><=|>=|!=|==|=|<|>|~)\s*(?P<value>.*?)\s*", re.DOTALL
)
_NUMBER: Final = re.compile(r"(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(?P<unit>[a-zµμ]*)")
_TESTS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "=": operator.eq,
    "==": operator.eq, "!=": operator.ne,
}  # fmt: skip


@dataclass(frozen=True)
class _Order:
    column: str
    ascending: bool


def chosen_rows(frame: pd.DataFrame, arguments: Namespace, analysis: Analysis, sorts: bool) -> pd.DataFrame:
    """The rows and columns of an answer that the arguments ask for, all of them counted before `--top`.

    Args:
        arguments: `where`, `sort` and `columns`; `--top` is left to what prints.
        analysis: whose chart says what matters.
        sorts: whether the rows that matter most come first unless the arguments say otherwise.

    Raises:
        UsageError: there is no such column, or it cannot be compared with that value.
    """
    for text in arguments.where:
        frame = frame[_matches(frame, text)]
    order = _order(frame, arguments.sort, analysis if sorts else None)
    if order is not None and len(frame):
        frame = frame.sort_values(
            order.column, ascending=order.ascending, kind="stable", na_position="last", ignore_index=True
        )
    return frame if arguments.columns is None else frame[_columns(frame, arguments.columns)]


def _order(frame: pd.DataFrame, requested: str | None, analysis: Analysis | None) -> _Order | None:
    if requested == OWN_ORDER:
        return None
    if requested is None:
        return _what_matters(frame, analysis) if analysis else None
    name, colon, way = requested.rpartition(":")
    if not colon:
        name, way = requested, "desc"
    if way not in ("asc", "desc"):
        raise UsageError(f"--sort takes COLUMN, COLUMN:asc or {OWN_ORDER}, not {requested!r}")
    return _Order(_column(frame, name), way == "asc")


def _what_matters(frame: pd.DataFrame, analysis: Analysis) -> _Order | None:
    """The column that the chart draws, where a row is one of many things: a kernel, a gap, a call.

    What is drawn over time or for each rank keeps its order.
    """
    chart = analysis.chart
    if isinstance(chart, Bars) and chart.value in frame:
        return _Order(chart.value, chart.ascending)
    if isinstance(chart, Histogram) and chart.value in frame:
        return _Order(chart.value, False)
    pictured = analysis.pictured
    if isinstance(pictured, Segments) and pictured.duration in frame:
        return _Order(pictured.duration, False)
    if isinstance(chart, Flame):
        _, own, *_ = chart.weights[0]
        return _Order(own, False) if own in frame else None
    return None


def _columns(frame: pd.DataFrame, names: str) -> list[str]:
    requested = [name.strip() for name in names.split(",") if name.strip()]
    return list(dict.fromkeys(_column(frame, name) for name in requested)) or list(frame.columns)


def _column(frame: pd.DataFrame, name: str) -> str:
    known: Sequence[str] = [str(column) for column in frame.columns]
    if name not in known:
        raise UsageError(f"no column {name!r}{did_you_mean(name, known)}; the columns are {', '.join(known)}")
    return name


def _matches(frame: pd.DataFrame, text: str) -> pd.Series:
    """The rows for which a condition holds; an absent value meets none."""
    found = _CONDITION.fullmatch(text)
    if not found:
        raise UsageError(f"{text!r} is not a condition such as dur_ns>1ms, rank=2 or name~gemm")
    column = frame[_column(frame, found["column"])]
    test, value = found["test"], found["value"]
    if test == "~":
        shown = column.astype("string").fillna("")
        return _truth(shown.str.contains(value, case=False, regex=False))
    if types.is_bool_dtype(column.dtype):
        if value.lower() not in ("true", "false") or test not in ("=", "==", "!="):
            raise UsageError(f"{found['column']} is true or false: compare it with = or !=")
        return _truth(_TESTS[test](column, value.lower() == "true"))
    if types.is_numeric_dtype(column.dtype):
        return _truth(_TESTS[test](column, _number(found["column"], value)))
    if test not in ("=", "==", "!="):
        raise UsageError(f"{found['column']} holds text: compare it with =, != or ~ (contains)")
    return _truth(_TESTS[test](column.astype("string"), value.strip("'\"")))


def _truth(met: Any) -> pd.Series:
    return met.fillna(False).astype(bool)


def _number(column: str, text: str) -> int | float:
    found = _NUMBER.fullmatch(text)
    if not found or (found["unit"] and (not column.endswith("_ns") or found["unit"] not in TIME_UNITS)):
        units = f", with {', '.join(TIME_UNITS)} if need be" if column.endswith("_ns") else ""
        raise UsageError(f"{column} holds numbers{units}: {text!r} is none")
    if not found["unit"] and re.fullmatch(r"[+-]?\d+", found["number"]):
        return int(found["number"])
    return float(found["number"]) * TIME_UNITS.get(found["unit"], 1)
