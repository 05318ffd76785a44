"""Filters by where events lie from one operator: under it, before it, after it, around it."""

from __future__ import annotations

import warnings
from enum import Enum

import pandas as pd

from hta_widgets.hta.common.trace_df import find_op_occurrence, get_symbol_column_names
from hta_widgets.hta.common.trace_filter import Filter, FirstIterationFilter
from hta_widgets.hta.common.trace_symbol_table import TraceSymbolTable

_CALLS = ("cuda_runtime", "cuda_driver", "mtia_runtime", "xpu_runtime", "Runtime")


class OperatorFilterMethod(Enum):
    """Where events lie from an operator.

    Under: they start and end within it. After: they start at or after its end. Before: they end at or before
    its start. Ancestors: it starts and ends within them. Stack: under it or around it.
    """

    Under = 0
    After = 1
    Before = 2
    Ancestors = 3
    Stack = 4


def get_matching_kernels(df_ops: pd.DataFrame, df_both: pd.DataFrame, cat_column: str) -> pd.DataFrame:
    """The device events of `df_both` that runtime calls among `df_ops` launched.

    Args:
        cat_column: the column with categories as text.
    """
    calls = df_ops.loc[df_ops[cat_column].isin(_CALLS), "index"]
    return df_both[df_both["index_correlation"].isin(calls) & df_both["stream"].ge(0)]


class OperatorFilter(Filter):
    """Events by where they lie from one occurrence of an operator, on its stream (-1: the host).

    Args:
        op_name: the operator's name.
        position: which occurrence by start time: 0 the first, -1 the last.
        method: where events lie.
        include_gpu_kernels: add the device events that the kept events launched.
        name_column: the column with names as text, by default `name` or `s_name`.

    An operator that does not occur keeps nothing.
    """

    def __init__(
        self,
        op_name: str,
        position: int,
        method: OperatorFilterMethod,
        include_gpu_kernels: bool = False,
        name_column: str | None = None,
    ) -> None:
        self.op_name = op_name
        self.position = position
        self.method = method
        self.include_gpu_kernels = include_gpu_kernels
        self.name_column = name_column or ""

    def __call__(self, df: pd.DataFrame, symbol_table: TraceSymbolTable | None = None) -> pd.DataFrame:
        name, category = get_symbol_column_names(df)
        if self.name_column:
            name, category = self.name_column, self.name_column.replace("name", "cat")
        if not all(column in df and pd.api.types.is_string_dtype(df[column]) for column in (name, category)):
            warnings.warn("the frame has no names and categories as text: nothing is filtered", stacklevel=2)
            return df
        found, operator = find_op_occurrence(df, self.op_name, self.position, name)
        if not found:
            warnings.warn(f"no occurrence {self.position} of {self.op_name!r}", stacklevel=2)
            return df.iloc[:0]
        kept = df[self._lies(df, operator) & df["stream"].eq(operator["stream"])]
        if not self.include_gpu_kernels:
            return kept
        return pd.concat([kept, get_matching_kernels(kept, df, category)])

    def _lies(self, df: pd.DataFrame, operator: pd.Series) -> pd.Series:
        # Not the column `end`: HTA's own frames hold it on another axis than `ts`.
        start, end = df["ts"], df["ts"] + df["dur"]
        first, last = operator["ts"], operator["ts"] + operator["dur"]
        under = start.ge(first) & end.le(last)
        around = start.le(first) & end.ge(last)
        match self.method:
            case OperatorFilterMethod.Under:
                return under
            case OperatorFilterMethod.After:
                return start.ge(last)
            case OperatorFilterMethod.Before:
                return end.le(first)
        # Only the same thread's events call each other.
        same = pd.Series(True, index=df.index)
        for column in ("pid", "tid"):
            if column in df:
                same &= df[column].eq(operator[column])
        return same & (around if self.method is OperatorFilterMethod.Ancestors else around | under)


class _NearOperator(OperatorFilter):
    """An `OperatorFilter` that is one by its class."""

    where: OperatorFilterMethod

    def __init__(
        self, op_name: str, position: int, include_gpu_kernels: bool = False, name_column: str | None = None
    ) -> None:
        super().__init__(op_name, position, self.where, include_gpu_kernels, name_column)


class UnderOperatorFilter(_NearOperator):
    """Events that start and end within an operator."""

    where = OperatorFilterMethod.Under


class AfterOperatorFilter(_NearOperator):
    """Events that start at or after an operator's end."""

    where = OperatorFilterMethod.After


class BeforeOperatorFilter(_NearOperator):
    """Events that end at or before an operator's start."""

    where = OperatorFilterMethod.Before


class CombinedOperatorFilter(Filter):
    """In the first step: events under the first `root_op_name`, after the last `preceding_op_name` there,
    before the first `following_op_name` after that. Operators that do not occur restrict nothing.

    Args:
        root_op_name, preceding_op_name, following_op_name: names of operators or annotations.
        include_gpu_kernels: add the device events that the kept events launched.
        stack_depths: keep host events of these depths (column `depth` of a call graph) only.
    """

    def __init__(
        self,
        root_op_name: str,
        preceding_op_name: str,
        following_op_name: str,
        include_gpu_kernels: bool = False,
        stack_depths: list[int] | None = None,
    ) -> None:
        self.root_op_name = root_op_name
        self.preceding_op_name = preceding_op_name
        self.following_op_name = following_op_name
        self.include_gpu_kernels = include_gpu_kernels
        self.stack_depths = stack_depths or []

    def __call__(self, df: pd.DataFrame, symbol_table: TraceSymbolTable | None = None) -> pd.DataFrame:
        name, category = get_symbol_column_names(df)
        if not name or not category:
            warnings.warn("the frame has no names and categories as text: nothing is filtered", stacklevel=2)
            return df
        kept = FirstIterationFilter()(df)
        for event_filter in (
            UnderOperatorFilter(self.root_op_name, 0, name_column=name),
            AfterOperatorFilter(self.preceding_op_name, -1, name_column=name),
            BeforeOperatorFilter(self.following_op_name, 0, name_column=name),
        ):
            if find_op_occurrence(kept, event_filter.op_name, event_filter.position, name)[0]:
                kept = event_filter(kept)
        if self.include_gpu_kernels:
            kept = pd.concat([get_matching_kernels(kept, df, category), kept])
        if self.stack_depths and "depth" in kept:
            kept = kept[kept["stream"].ge(0) | kept["depth"].isin(self.stack_depths)]
        return kept
