"""Filters: callables that keep some events of HTA's frames.

All are called as ``filter(df, symbol_table=None)``. Where a frame lacks what a filter looks at, it warns and
keeps everything.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence

import pandas as pd

from hta_widgets.hta.common.event_links import on_device_side
from hta_widgets.hta.common.trace_df import get_symbol_column_names
from hta_widgets.hta.common.trace_symbol_table import TraceSymbolTable


class Filter(ABC):
    """Something that keeps some events of a frame."""

    @abstractmethod
    def __call__(self, df: pd.DataFrame, symbol_table: TraceSymbolTable | None = None) -> pd.DataFrame:
        """The events to keep.

        Args:
            df: the events.
            symbol_table: their names and categories, where the frame holds ids.
        """


def _lacks(df: pd.DataFrame, column: str) -> bool:
    if column in df.columns:
        return False
    warnings.warn(f"the frame has no column {column!r}: nothing is filtered", stacklevel=3)
    return True


def _numbers(values: int | list[int], what: str) -> list[int]:
    if not isinstance(values, int | list):
        raise TypeError(f"{what} is a number or a list of numbers, not {type(values).__name__}")
    return values if isinstance(values, list) else [values]


class IterationFilter(Filter):
    """Events of some steps, by number."""

    def __init__(self, iterations: int | list[int]) -> None:
        self.iterations = _numbers(iterations, "iterations")

    def __call__(self, df: pd.DataFrame, symbol_table: TraceSymbolTable | None = None) -> pd.DataFrame:
        return df if _lacks(df, "iteration") else df[df["iteration"].isin(self.iterations)]


class IterationIndexFilter(Filter):
    """Events of some steps, by position among the frame's steps: 0 is the first.

    A frame without steps is kept as it is; positions that it does not have select nothing.
    """

    def __init__(self, iteration_index: int | list[int]) -> None:
        self.iteration_index = _numbers(iteration_index, "iteration_index")

    def __call__(self, df: pd.DataFrame, symbol_table: TraceSymbolTable | None = None) -> pd.DataFrame:
        if _lacks(df, "iteration"):
            return df
        steps = sorted(number for number in df["iteration"].unique() if number != -1)
        if not steps:
            return df
        chosen = [number for position, number in enumerate(steps) if position in self.iteration_index]
        if not chosen:
            warnings.warn(f"positions {self.iteration_index} select none of {len(steps)} steps", stacklevel=2)
        return df[df["iteration"].isin(chosen)]


class FirstIterationFilter(IterationIndexFilter):
    """Events of the first step."""

    def __init__(self) -> None:
        super().__init__([0])


class RankFilter(Filter):
    """Events of some ranks (column `rank`)."""

    def __init__(self, ranks: int | list[int]) -> None:
        self.ranks = _numbers(ranks, "ranks")

    def __call__(self, df: pd.DataFrame, symbol_table: TraceSymbolTable | None = None) -> pd.DataFrame:
        return df if _lacks(df, "rank") else df[df["rank"].isin(self.ranks)]


class TimeRangeFilter(Filter):
    """Events that start and end within a range of time (us, as in the frame).

    Raises:
        ValueError: the range is no pair of numbers in ascending order.
    """

    def __init__(self, time_range: tuple[float, float]) -> None:
        if not isinstance(time_range, tuple) or len(time_range) != 2:
            raise ValueError("time_range is a pair (start, end)")
        start, end = time_range
        # The comparison also refuses what is not a number.
        if not all(isinstance(bound, int | float) for bound in time_range) or not start <= end:
            raise ValueError(f"time_range is (start, end) with start <= end, not {time_range}")
        self.time_start, self.time_end = start, end

    def __call__(self, df: pd.DataFrame, symbol_table: TraceSymbolTable | None = None) -> pd.DataFrame:
        if _lacks(df, "ts"):
            return df
        return df[df["ts"].ge(self.time_start) & (df["ts"] + df["dur"]).le(self.time_end)]


class NameStringColumnFilter(Filter):
    """Events whose name (a column of text) matches a regular expression from its start."""

    def __init__(self, name_pattern: str) -> None:
        self.name_pattern = name_pattern

    def __call__(self, df: pd.DataFrame, symbol_table: TraceSymbolTable | None = None) -> pd.DataFrame:
        column, _ = get_symbol_column_names(df)
        if not column:
            warnings.warn("the frame has no names as text: nothing is filtered", stacklevel=2)
            return df
        return df[df[column].str.match(self.name_pattern).astype(bool)]


class NameIdColumnFilter(Filter):
    """Events whose name (an id) matches a regular expression from its start."""

    def __init__(self, name_pattern: str) -> None:
        self.name_pattern = name_pattern

    def __call__(self, df: pd.DataFrame, symbol_table: TraceSymbolTable | None = None) -> pd.DataFrame:
        if symbol_table is None:
            warnings.warn("without a symbol table names cannot be read: nothing is filtered", stacklevel=2)
            return df
        symbols = symbol_table.get_sym_index_series()
        matching = symbols.index.to_series().str.match(self.name_pattern).astype(bool).to_numpy()
        return df[df["name"].isin(symbols[matching])]


class NameFilter(Filter):
    """Events whose name matches a regular expression from its start.

    Args:
        name_pattern: the expression.
        symbol_table: used where the call gives none. Without either the frame's column of text is read.
        name_column: that column, by default `name` or `s_name`.
    """

    def __init__(
        self, name_pattern: str, symbol_table: TraceSymbolTable | None = None, name_column: str | None = None
    ) -> None:
        self.name_pattern = name_pattern
        self.symbol_table = symbol_table
        self.name_column = name_column

    def __call__(self, df: pd.DataFrame, symbol_table: TraceSymbolTable | None = None) -> pd.DataFrame:
        table = symbol_table or self.symbol_table
        if df.empty:
            return df
        if self.name_column is not None and pd.api.types.is_string_dtype(df[self.name_column]):
            return df[df[self.name_column].str.match(self.name_pattern).astype(bool)]
        if table is None:
            return NameStringColumnFilter(self.name_pattern)(df)
        return NameIdColumnFilter(self.name_pattern)(df, table)


class QueryFilter(Filter):
    """Events for which an expression of `DataFrame.query` holds."""

    def __init__(self, query_str: str) -> None:
        self.filter_query = query_str

    def __call__(self, df: pd.DataFrame, symbol_table: TraceSymbolTable | None = None) -> pd.DataFrame:
        return df.query(self.filter_query)


ZeroDurationFilter = QueryFilter("dur > 0")
"""Keeps events that last; those without duration go."""


class GPUKernelFilter(Filter):
    """Events that a device recorded; with a symbol table its waits too."""

    def __call__(self, df: pd.DataFrame, symbol_table: TraceSymbolTable | None = None) -> pd.DataFrame:
        if _lacks(df, "stream"):
            return df
        return df[on_device_side(df, symbol_table or TraceSymbolTable())]


class CPUOperatorFilter(Filter):
    """Events that `GPUKernelFilter` leaves out; without a symbol table those without a stream."""

    def __call__(self, df: pd.DataFrame, symbol_table: TraceSymbolTable | None = None) -> pd.DataFrame:
        if _lacks(df, "stream"):
            return df
        if symbol_table is None:
            return df[df["stream"].eq(-1)]
        return df[~on_device_side(df, symbol_table)]


class CompositeFilter(Filter):
    """Filters one after the other.

    Raises:
        TypeError: one of them is no `Filter`.
    """

    def __init__(self, filters: Sequence[Filter]) -> None:
        for event_filter in filters:
            if not isinstance(event_filter, Filter):
                raise TypeError(f"{event_filter!r} is no Filter")
        self.filters = list(filters)

    def __call__(self, df: pd.DataFrame, symbol_table: TraceSymbolTable | None = None) -> pd.DataFrame:
        for event_filter in self.filters:
            df = event_filter(df, symbol_table)
        return df


class MemCopyEventFilter(Filter):
    """Copies of one kind, by their name: ``"Memcpy HtoD (Pinned -> Device)"``.

    Args:
        memory_copy_type: the name.
        symbol_table: used where the call gives none.
    """

    def __init__(self, memory_copy_type: str, symbol_table: TraceSymbolTable | None = None) -> None:
        self.memory_copy_type = memory_copy_type
        self.symbol_table = symbol_table

    def __call__(self, df: pd.DataFrame, symbol_table: TraceSymbolTable | None = None) -> pd.DataFrame:
        ids = (symbol_table or self.symbol_table or TraceSymbolTable()).sym_index
        if not {self.memory_copy_type, "gpu_memcpy"} <= ids.keys():
            return df.head(0)
        return df[df["name"].eq(ids[self.memory_copy_type]) & df["cat"].eq(ids["gpu_memcpy"])]
