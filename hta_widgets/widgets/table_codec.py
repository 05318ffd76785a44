"""A DataFrame as a trait: typed columns in one buffer (the browser's half is ``js/src/columns.ts``).

Numbers are sent as float64, which is exact for times of up to 104 days since the job's start; missing ones as
NaN. Whole numbers of many rows, none of them missing, are sent as their distance from the least. The
tables of panels have a row per rank or per iteration: tens of kilobytes. Slices and events are sent
differently (`timeline/pack.py`, `events_table.py`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import traitlets as t
from pandas.api import types

from hta_widgets.kernel_names import NAME_COLUMNS, short_kernel_names

Wire = dict[str, Any]

_FEW_ROWS = 64
_NAMES = (*NAME_COLUMNS, "line")  # a line of a comparison is a kernel's or an operator's name


class Table(t.TraitType[Wire | None, Any]):
    """An encoded frame, or None."""

    info_text = "what encode() returns, or None"
    default_value = None

    def validate(self, obj: t.HasTraits, value: Any) -> Wire | None:
        if value is not None and not (
            isinstance(value, dict) and value.keys() == {"rows", "columns", "data"}
        ):
            self.error(obj, value)
        return value


def encode(frame: pd.DataFrame) -> Wire:
    """`{"rows": n, "columns": [{"name", "kind", "offset" | "values", "short"?}], "data": bytes}`.

    A column of numbers with `bytes` and `least` has unsigned integers of that size, to be added to the least.
    `short` holds the names of events that are too long for a cell, cut, by their full name.
    """
    columns: list[dict[str, Any]] = []
    chunks: list[bytes] = []
    offset = 0
    for name in frame.columns:
        series = frame[name]
        if types.is_numeric_dtype(series):  # booleans too
            chunk, how = _packed(series.to_numpy(dtype=np.float64, na_value=np.nan))
            kind = "float" if types.is_float_dtype(series) else "int"
            columns.append({"name": str(name), "kind": kind, "offset": offset, **how})
            chunks.append(chunk)
            offset += len(chunk)
        else:
            values = [
                "" if missing else str(value) for value, missing in zip(series, series.isna(), strict=True)
            ]
            columns.append({"name": str(name), "kind": "text", "values": values})
            if name in _NAMES and (short := _cut(values)):
                columns[-1]["short"] = short
    return {"rows": len(frame), "columns": columns, "data": b"".join(chunks)}


def _packed(numbers: npt.NDArray[np.float64]) -> tuple[bytes, dict[str, Any]]:
    """The bytes of numbers, and what tells how to read them where these are not float64."""
    if len(numbers) > _FEW_ROWS and np.isfinite(numbers).all() and (numbers == np.floor(numbers)).all():
        least = numbers.min()
        above = numbers - least
        for size in (1, 2, 4):
            if above.max() < 256.0**size:
                return above.astype(f"<u{size}").tobytes(), {"bytes": size, "least": float(least)}
    return numbers.astype("<f8").tobytes(), {}


def _cut(names: list[str]) -> dict[str, str]:
    return {name: short for name, short in short_kernel_names(names).items() if short != name}
