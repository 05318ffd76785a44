"""Any answer as columns of plain texts: frames, nested values, arrays, texts."""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np
import pandas as pd

# Sums are added up in another order by other versions of numpy, and on other machines
_DIGITS = 9
_LENGTH = 4
_DEPTH = 2  # names of nested places
_SENTENCE_ENDS = (".", ".)", "?")


@dataclass(frozen=True)
class Column:
    """The values of one column as texts, and of what type they are."""

    dtype: str
    values: tuple[str, ...]

    @property
    def digest(self) -> str:
        """A few digits: a change is seen in more than one column, or by the next change."""
        return hashlib.sha256("\n".join((self.dtype, *self.values)).encode("utf-8", "replace")).hexdigest()[
            :_LENGTH
        ]

    @property
    def is_prose(self) -> bool:
        """Whether it holds sentences."""
        return self.dtype == "text" and any(
            " " in one and one.endswith(_SENTENCE_ENDS) for one in self.values
        )


def columns_of(answer: Any) -> dict[str, Column]:
    """Its columns: those of a frame, or a column for each place in nested values ("parts[].name")."""
    if isinstance(answer, pd.DataFrame):
        columns = {
            ".".join(map(str, name)) if isinstance(name, tuple) else str(name): answer.iloc[:, place]
            for place, name in enumerate(answer.columns)
        }
        if not isinstance(answer.index, pd.RangeIndex):
            columns = {"index": answer.index.to_series(), **columns}
        return {name: Column(_dtype(str(one.dtype)), tuple(map(_text, one))) for name, one in columns.items()}
    found: dict[str, list[Any]] = {}
    for place, value in _leaves(answer, ""):
        found.setdefault(".".join(place.split(".")[:_DEPTH]), []).append(value)
    return {place: Column(_common(values), tuple(map(_text, values))) for place, values in found.items()}


def _leaves(value: Any, place: str) -> Iterator[tuple[str, Any]]:
    """Each plain value in nested ones, with where it stands; items of a list stand at the same place."""
    if is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, pd.DataFrame):
        value = {name: [*one] for name, one in value.items()}
    if isinstance(value, Mapping) and value.keys() >= {"bdata", "dtype"}:  # plotly's arrays
        value = np.frombuffer(base64.b64decode(value["bdata"]), value["dtype"])
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Mapping):
        yield place, len(value)
        for name, inner in value.items():
            yield from _leaves(inner, f"{place}.{name}" if place else str(name))
    elif isinstance(value, list | tuple | np.ndarray | pd.Series | pd.Index):
        yield place, len(value)
        for inner in value:
            yield from _leaves(inner, f"{place}[]")
    else:
        yield place, value


def _dtype(name: str) -> str:
    """The same for all versions of pandas."""
    return "text" if name in ("object", "str", "string") else name


def _common(values: list[Any]) -> str:
    names = {type(one).__name__.rstrip("_") for one in values if one is not None}
    return "text" if names == {"str"} else "number" if names <= {"int", "float"} else "|".join(sorted(names))


def _text(value: Any) -> str:
    if value is None or value is pd.NA or value is pd.NaT:
        return "-"
    if isinstance(value, bool | np.bool_):
        return str(bool(value))
    if isinstance(value, int | np.integer):
        return str(int(value))
    if isinstance(value, float | np.floating):
        return "-" if value != value else f"{value:.{_DIGITS}g}"
    if isinstance(value, bytes | bytearray | memoryview):
        return hashlib.sha256(_inflated(bytes(value))).hexdigest()
    if isinstance(value, list | tuple | set | frozenset | np.ndarray):
        inner = sorted(map(_text, value)) if isinstance(value, set | frozenset) else map(_text, value)
        return f"[{', '.join(inner)}]"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{name}: {_text(one)}' for name, one in value.items())}}}"
    return str(value)


def _inflated(data: bytes) -> bytes:
    """What is deflated is another block with another version of zlib."""
    try:
        return zlib.decompress(data)
    except zlib.error:
        return data
