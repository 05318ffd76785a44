"""Finding steps and events in HTA's frames."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from hta_widgets.hta.common.trace_symbol_table import TraceSymbolTable


def get_iterations(df: pd.DataFrame) -> list[int]:
    """The steps that have events, ascending; -1 (no step) is none.

    Raises:
        TypeError: there is no column `iteration` of integers.
    """
    if "iteration" not in df.columns or df["iteration"].dtype.kind != "i":
        raise TypeError("the frame has no column `iteration` of integers")
    return sorted(int(number) for number in df["iteration"].unique() if number != -1)


def get_symbol_column_names(df: pd.DataFrame) -> tuple[str, str]:
    """The columns that hold names and categories as text, ``""`` where there is none."""
    name, category = (
        next(
            (
                name
                for name in (column, f"s_{column}")
                if name in df and pd.api.types.is_string_dtype(df[name])
            ),
            "",
        )
        for column in ("name", "cat")
    )
    return name, category


def find_op_occurrence(
    df: pd.DataFrame, op_name: str, position: int, name_column: str = "s_name"
) -> tuple[bool, pd.Series]:
    """The n-th event of a name by start time (equal times: by row).

    Args:
        position: 0 is the first, -1 the last.

    Returns:
        Whether there is one, and its row (empty if not).
    """
    if "ts" in df and name_column in df:
        events = df[df[name_column].eq(op_name)].sort_values("ts", kind="stable")
        if -len(events) <= position < len(events):
            return True, events.iloc[position]
    return False, pd.Series(dtype="object")


def find_events_by_name_patterns_using_symbol_table(
    df: pd.DataFrame, list_name_patterns: Iterable[str], symbol_table: TraceSymbolTable
) -> pd.Series:
    """`index` of the events whose name (an id) matches one of the regular expressions from its start."""
    symbols = symbol_table.get_sym_index_series()
    found = _matches(symbols.index.to_series(), list_name_patterns).to_numpy()
    return df["index"][df["name"].isin(symbols[found])]


def find_events_by_name_patterns_using_decoded_names(
    df: pd.DataFrame, list_name_patterns: Iterable[str], name_column: str = "s_name"
) -> pd.Series:
    """`index` of the events whose name (text) matches one of the regular expressions from its start."""
    return df["index"][_matches(df[name_column], list_name_patterns)]


def _matches(names: pd.Series, patterns: Iterable[str]) -> pd.Series:
    found = pd.Series(False, index=names.index)
    for pattern in patterns:
        found |= names.str.match(pattern).astype(bool)
    return found
