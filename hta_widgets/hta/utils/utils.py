"""Helpers that HTA's notebooks import: kernel types, short names, intervals, columns."""

from __future__ import annotations

import os
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from hta_widgets.hta.common.trace_df import get_symbol_column_names
from hta_widgets.hta.common.types import (
    CommunicateKernelGroupingPattern,
    ComputeKernelGroupingPattern,
    MemoryKernelGroupingPattern,
)
from hta_widgets.hta.methods.names import shorten_name

__all__ = [
    "IdleTimeType",
    "KernelType",
    "flatten_column_names",
    "get_kernel_type",
    "get_memory_kernel_type",
    "get_mp_pool_size",
    "get_symbol_column_names",
    "get_value_from_dict",
    "is_comm_kernel",
    "is_compute_kernel",
    "is_computer_kernel",
    "is_memory_kernel",
    "merge_kernel_intervals",
    "normalize_gpu_stream_numbers",
    "normalize_path",
    "shorten_name",
]


class KernelType(Enum):
    COMMUNICATION = 0
    MEMORY = 1
    COMPUTATION = 2
    OTHER = 3


class IdleTimeType(Enum):
    HOST_WAIT = 0
    KERNEL_WAIT = 1
    OTHER = 2


def normalize_path(path: str) -> str:
    """The path with ``./`` as the current folder and ``~`` as the home folder."""
    return str(Path.cwd() / path) if path.startswith("./") else str(Path(path).expanduser())


def is_comm_kernel(name: str) -> bool:
    return CommunicateKernelGroupingPattern.match(name)


def is_memory_kernel(name: str) -> bool:
    return MemoryKernelGroupingPattern.match(name)


def is_compute_kernel(name: str) -> bool:
    return ComputeKernelGroupingPattern.match(name)


is_computer_kernel = is_compute_kernel  # HTA's older name


def get_kernel_type(name: str) -> str:
    """HTA's type of a kernel by its name alone (the analyses look at the category first)."""
    for kind, matches in (
        (KernelType.COMMUNICATION, is_comm_kernel),
        (KernelType.MEMORY, is_memory_kernel),
        (KernelType.COMPUTATION, is_compute_kernel),
    ):
        if matches(name):
            return kind.name
    return KernelType.OTHER.name


def get_memory_kernel_type(name: str) -> str:
    """ "Memset", or "Memcpy" with its direction, as in ``"Memcpy DtoH"``."""
    if name.startswith("Memset"):
        return "Memset"
    return name[: len("Memcpy DtoH")] if name.startswith("Memcpy") else "Memcpy Unknown"


def merge_kernel_intervals(kernel_df: pd.DataFrame) -> pd.DataFrame:
    """The times that events cover: ts and end of disjoint intervals, ascending. Intervals that touch are one.

    Args:
        kernel_df: columns ts and dur; it stays as it is.
    """
    ordered = kernel_df.sort_values("ts", kind="stable")
    start, end = ordered["ts"].to_numpy(), (ordered["ts"] + ordered["dur"]).to_numpy()
    if not len(start):
        return pd.DataFrame({"ts": start, "end": end})
    reached = np.maximum.accumulate(end)
    first = np.flatnonzero(np.append(True, start[1:] > reached[:-1]))
    return pd.DataFrame({"ts": start[first], "end": reached[np.append(first[1:] - 1, len(start) - 1)]})


def flatten_column_names(df: pd.DataFrame) -> None:
    """Join the levels of the column names with ``_``, in place."""
    if isinstance(df.columns, pd.MultiIndex):
        df.columns = pd.Index(["_".join(str(level) for level in column).rstrip("_") for column in df.columns])


def get_mp_pool_size(obj_size: int, num_objs: int) -> int:
    """How many processes should work on `num_objs` objects of `obj_size` bytes each?

    At least one, at most one per object and per core, and together in four fifths of the memory that is free,
    where the system tells how much that is.
    """
    limits = [num_objs, os.cpu_count() or 1]
    if obj_size > 0 and (free := _free_memory()) is not None:
        limits.append(free * 4 // 5 // obj_size)
    return max(1, min(limits))


def _free_memory() -> int | None:
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # macOS and Windows do not know these
        return None


def normalize_gpu_stream_numbers(df: pd.DataFrame) -> None:
    """Make the column `stream` one of integers, in place; what is no number becomes -1."""
    if "stream" in df:
        df["stream"] = pd.to_numeric(df["stream"], errors="coerce").fillna(-1).astype("int64")


def get_value_from_dict(d: Any, key: str, default: Any = None) -> Any:
    """The value at ``"a.b.c"`` in nested dicts."""
    for part in key.split("."):
        if not isinstance(d, dict) or part not in d:
            return default
        d = d[part]
    return d
