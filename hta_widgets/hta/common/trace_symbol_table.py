"""Names and categories as numbers: the dictionary that HTA's frames are encoded with."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from hta_widgets.hta.common.types import (
    CPU_EVENTS_CATEGORY_PATTERN,
    KERNEL_CATEGORY_PATTERN,
    KERNEL_LAUNCH_CATEGORY_PATTERN,
    GroupingPattern,
    MemoryKernelGroupingPattern,
    ProfilerStepGroupingPattern,
)
from hta_widgets.hta.methods.names import shorten_names

SYMBOL_COLUMNS = ("name", "cat")
LAUNCH_CALLS = (
    "cudaLaunchKernel", "cudaLaunchKernelExC", "cuLaunchKernel", "cuLaunchKernelEx",
    "cudaMemcpyAsync", "cudaMemsetAsync",
    "hipLaunchKernel", "hipExtModuleLaunchKernel", "hipMemcpyAsync", "hipMemcpyWithStream", "hipMemsetAsync",
    "runFunction - job_prep_and_submit_for_execution",
)  # fmt: skip


class TraceSymbolTable:
    """Symbols (event names and categories) and their ids, shared by all ranks of a trace.

    Attributes:
        sym_table: symbols in the order of their ids.
        sym_index: symbol -> id.
    """

    NULL: int = -128
    """An id that no symbol has."""

    def __init__(self, symbols: Iterable[str] = ()) -> None:
        self.sym_table: list[str] = []
        self.sym_index: dict[str, int] = {}
        self.add_symbols(symbols)

    def __repr__(self) -> str:
        return f"TraceSymbolTable({len(self.sym_table)} symbols)"

    # -- making --------------------------------------------------------------------------------------

    def add_symbols(self, symbols: Iterable[str]) -> None:
        """Give each new symbol the next id. A set is sorted first, so that ids do not depend on its order."""
        for symbol in sorted(symbols) if isinstance(symbols, set | frozenset) else symbols:
            if symbol not in self.sym_index:
                self.sym_index[symbol] = len(self.sym_table)
                self.sym_table.append(symbol)

    def add_symbols_mp(self, symbols_list: Sequence[Iterable[str]]) -> None:
        """`add_symbols` for several collections, in their order."""
        for symbols in symbols_list:
            self.add_symbols(symbols)

    @staticmethod
    def combine_symbol_tables(tables: Iterable[TraceSymbolTable]) -> TraceSymbolTable:
        """One table with the symbols of all."""
        combined = TraceSymbolTable()
        for table in tables:
            combined.add_symbols(table.sym_table)
        return combined

    @staticmethod
    def clone(symbol_table: TraceSymbolTable) -> TraceSymbolTable:
        return TraceSymbolTable(symbol_table.sym_table)

    @staticmethod
    def create_from_df(df: pd.DataFrame) -> TraceSymbolTable:
        """The names and categories of a frame, sorted.

        Raises:
            ValueError: `name` or `cat` is absent or not text.
        """
        if not all(column in df and pd.api.types.is_string_dtype(df[column]) for column in SYMBOL_COLUMNS):
            raise ValueError("the frame needs columns name and cat that hold text")
        return TraceSymbolTable({*df["name"].unique(), *df["cat"].unique()})

    @staticmethod
    def create_from_symbol_id_map(symbol_id_map: Mapping[str, int]) -> TraceSymbolTable:
        """A table with the given ids; ids between them become ``Undefined-<id>``."""
        symbols = {number: symbol for symbol, number in symbol_id_map.items()}
        highest = max(symbols, default=-1)
        return TraceSymbolTable(symbols.get(number, f"Undefined-{number}") for number in range(highest + 1))

    @staticmethod
    def from_csv_file(file_path: str | Path) -> TraceSymbolTable:
        """A table from a file with a column `symbol`.

        Raises:
            FileNotFoundError: there is no such file.
            ValueError: it has no column `symbol`.
        """
        frame = pd.read_csv(file_path, keep_default_na=False, dtype=str)
        if "symbol" not in frame:
            raise ValueError(f"{file_path}: no column 'symbol'")
        return TraceSymbolTable(frame["symbol"])

    def _to_csv_file(self, file_path: str | Path) -> None:
        pd.DataFrame({"symbol": self.sym_table}).to_csv(file_path, index=True)

    # -- looking up ----------------------------------------------------------------------------------

    def is_empty(self) -> bool:
        return not self.sym_table

    def get_sym_table(self) -> list[str]:
        return self.sym_table

    def get_sym_index(self) -> dict[str, int]:
        return self.sym_index

    def get_sym_id_map(self) -> dict[str, int]:
        return self.sym_index

    def get_sym_table_series(self) -> pd.Series:
        """Symbols by id."""
        return pd.Series(self.sym_table, dtype="str")

    def get_sym_index_series(self) -> pd.Series:
        """Ids by symbol."""
        symbols = pd.Index(self.sym_table, dtype="str")
        return pd.Series(np.arange(len(symbols)), index=symbols, dtype="int64")

    def find_matches(self, patterns: Iterable[str]) -> list[int]:
        """Ids of the symbols that contain one of the texts (plain text, no regular expressions)."""
        return [self.sym_index[symbol] for symbol in self.find_matched_symbols(patterns)]

    def find_matched_symbols(self, patterns: Iterable[str]) -> list[str]:
        """The symbols that contain one of the texts (plain text, no regular expressions)."""
        wanted = re.compile("|".join(re.escape(pattern) for pattern in patterns))
        return [symbol for symbol in self.sym_table if wanted.search(symbol)]

    def get_symbol_ids(self, symbol_pattern: GroupingPattern) -> dict[str, int]:
        """symbol -> id of those that a pattern selects."""
        return {symbol: number for symbol, number in self.sym_index.items() if symbol_pattern.match(symbol)}

    def get_symbol_names(self, symbol_ids: Iterable[int]) -> dict[int, str]:
        """id -> symbol of the given ids, ascending; unknown ones are left out."""
        known = sorted({int(number) for number in symbol_ids if 0 <= number < len(self.sym_table)})
        return {number: self.sym_table[number] for number in known}

    def get_cpu_event_cat_ids(self) -> list[int]:
        return list(self.get_symbol_ids(CPU_EVENTS_CATEGORY_PATTERN).values())

    def get_gpu_kernel_cat_ids(self) -> list[int]:
        return list(self.get_symbol_ids(KERNEL_CATEGORY_PATTERN).values())

    def get_profiler_step_ids(self) -> list[int]:
        return list(self.get_symbol_ids(ProfilerStepGroupingPattern).values())

    def get_memory_name_ids(self) -> list[int]:
        return list(self.get_symbol_ids(MemoryKernelGroupingPattern).values())

    def get_kernel_launch_ids(self) -> list[int]:
        return list(self.get_symbol_ids(KERNEL_LAUNCH_CATEGORY_PATTERN).values())

    # -- masks over a frame --------------------------------------------------------------------------

    def _has(self, df: pd.DataFrame, column: str, symbols: Iterable[str]) -> pd.Series:
        return df[column].isin([self.sym_index[symbol] for symbol in symbols if symbol in self.sym_index])

    def get_operator_or_cuda_runtime_mask(self, df: pd.DataFrame) -> pd.Series:
        """Rows that are operators or calls of the CUDA runtime or driver."""
        return self._has(df, "cat", ("cpu_op", "cuda_runtime", "cuda_driver"))

    def get_runtime_launch_events_mask(self, df: pd.DataFrame) -> pd.Series:
        """Rows that launch a kernel, copy or fill which is in the trace."""
        return self._has(df, "name", LAUNCH_CALLS) & df["index_correlation"].ge(0)

    def get_events_mask(self, df: pd.DataFrame, events: Iterable[str] | None) -> pd.Series:
        """Rows whose name contains one of the texts; none without texts."""
        if events is None:
            return pd.Series(np.zeros(len(df), np.bool_), index=df.index)
        return df["name"].isin(self.find_matches(events))

    # -- coding frames -------------------------------------------------------------------------------

    def encode_df(self, df: pd.DataFrame) -> None:
        """Replace the texts in `name` and `cat` by ids, in place.

        Raises:
            KeyError: a text is no symbol of this table.
        """
        for column in SYMBOL_COLUMNS:
            if column in df and pd.api.types.is_string_dtype(df[column]):
                ids = df[column].map(self.sym_index)
                if ids.isna().any():
                    raise KeyError(str(df.loc[ids.isna(), column].iloc[0]))
                df[column] = ids.astype("int64")

    def decode_df(self, df: pd.DataFrame, create_new_columns: bool = True) -> None:
        """Write the texts of `name` and `cat` into `s_name` and `s_cat` (or over the ids), in place."""
        for column in SYMBOL_COLUMNS:
            if column in df and df[column].dtype.kind == "i":
                df[f"s_{column}" if create_new_columns else column] = decoded(self.sym_table, df[column])

    def update_encoded_df(self, df: pd.DataFrame, old_symbol_table: TraceSymbolTable) -> None:
        """Turn ids of another table into ids of this one, in place.

        Raises:
            KeyError: this table lacks a symbol of the other that the frame uses.
        """
        for column in SYMBOL_COLUMNS:
            used, at = np.unique(df[column].to_numpy(), return_inverse=True)
            new = [self.sym_index[old_symbol_table.sym_table[int(number)]] for number in used]
            df[column] = np.array(new, np.int64)[at]

    def add_symbols_to_trace_df(self, trace_df: pd.DataFrame, col: str) -> None:
        """Replace the ids in a column by their symbols, in place; unknown ids become ``""``."""
        trace_df[col] = decoded(self.sym_table, trace_df[col])


def decoded(
    symbols: Sequence[str], ids: pd.Series | npt.NDArray[np.integer]
) -> pd.api.extensions.ExtensionArray:
    """The symbol of each id, ``""`` for ids that are not in the table."""
    numbers = np.asarray(ids, np.int64)
    known = (numbers >= 0) & (numbers < len(symbols))
    return texts([*symbols, ""], np.where(known, numbers, len(symbols)))


def texts(dictionary: Sequence[str], codes: npt.NDArray[np.integer]) -> pd.api.extensions.ExtensionArray:
    """dictionary[code] for each code, as a column of text."""
    return pd.array(dictionary, dtype="str").take(codes)


def decode_symbol_id_to_symbol_name(
    df: pd.DataFrame, symbol_table: TraceSymbolTable, use_shorten_name: bool
) -> None:
    """Add `s_name`, `s_cat` and, where there is a column `user_annotation`, `s_user_annotation`, in place.

    Args:
        use_shorten_name: without template arguments, parameters and return types.
    """
    symbols = shorten_names(symbol_table.sym_table) if use_shorten_name else symbol_table.sym_table
    for column in ("name", "cat", "user_annotation"):
        if column in df and df[column].dtype.kind == "i":
            df[f"s_{column}"] = decoded(symbols, df[column])
