"""`EventTable`: all events of one file as columns.  Row number == event id == position in the file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from hta_widgets.arrays import Float64, Int32, Int64
from hta_widgets.trace.reader.schema import NULL

Values = npt.NDArray[Any]
Integers = npt.NDArray[np.integer[Any]]

_NOTHING: tuple[Int32, Int64] = np.empty(0, np.int32), np.empty(0, np.int64)


@dataclass(frozen=True)
class Problem:
    """Something in a file that was repaired, dropped or could not be read.

    `offset` is a byte of the uncompressed text: the first place where `check` failed.
    """

    check: str
    severity: Literal["error", "warning", "info"]
    count: int
    offset: int | None
    detail: str


def cut_short(damage: str | None, unfinished_at: int | None, inside: str, read: str) -> list[Problem]:
    """What is wrong at the end of a file: its compression (`damage`), and what it ends `inside`."""
    problems = []
    if damage is not None:
        problems.append(Problem("compression", "error", 1, None, f"{damage}; what came before it was read"))
    if unfinished_at is not None:
        text = f"the file ends inside {inside}; complete {read} were read"
        problems.append(Problem("truncated", "error", 1, unfinished_at, text))
    return problems


class EventTable:
    """Immutable columns of one trace file.

    Dense columns hold one value per event; sparse ones hold `(rows, values)`.  Text and JSON columns hold
    int32 codes into `dictionary(name)`.  A column that the file does not have reads as all null, so that
    callers need no test.
    """

    def __init__(
        self,
        path: str,
        n: int,
        dense: Mapping[str, Values],
        sparse: Mapping[str, tuple[Int32, Values]],
        dictionaries: Mapping[str, list[str]],
        metadata: dict[str, Any],
        problems: Iterable[Problem] = (),
    ) -> None:
        self.path = path
        self.n = n
        self.metadata = metadata
        self.problems = list(problems)
        self._dense = dense
        self._sparse = sparse
        self._dictionaries = dictionaries
        for array in [*dense.values(), *(a for pair in sparse.values() for a in pair)]:
            array.flags.writeable = False

    def __repr__(self) -> str:
        columns, problems = len(self.columns), len(self.problems)
        return f"EventTable({self.path!r}, n={self.n}, columns={columns}, problems={problems})"

    def __len__(self) -> int:
        return self.n

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.nbytes

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns the file has."""
        return (*self._dense, *self._sparse)

    @property
    def dense_columns(self) -> tuple[str, ...]:
        """Names of the columns with one value per event."""
        return tuple(self._dense)

    @property
    def sparse_columns(self) -> tuple[str, ...]:
        """Names of the columns stored only where present."""
        return tuple(self._sparse)

    @property
    def text_columns(self) -> tuple[str, ...]:
        """Names of the columns that hold codes into a dictionary."""
        return tuple(self._dictionaries)

    @property
    def nbytes(self) -> int:
        """Bytes of the columns, without the dictionaries."""
        dense = sum(values.nbytes for values in self._dense.values())
        return dense + sum(rows.nbytes + values.nbytes for rows, values in self._sparse.values())

    def changed(
        self,
        columns: Mapping[str, Values | tuple[Int32, Values]],
        dictionaries: Mapping[str, list[str]] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> EventTable:
        """The same events with other columns (sparse ones as `(rows, values)`); shares those that remain."""
        dense, sparse = dict(self._dense), dict(self._sparse)
        for name, values in columns.items():
            if isinstance(values, tuple):
                sparse[name] = values
            else:
                dense[name] = values
        texts = {**self._dictionaries, **(dictionaries or {})}
        stated = self.metadata if metadata is None else metadata
        return EventTable(self.path, self.n, dense, sparse, texts, stated, self.problems)

    def has(self, name: str) -> bool:
        """Whether at least one event has a value in the column."""
        if name in self._sparse:
            return True
        values = self._dense.get(name)
        if values is None:
            return False
        null = -1 if name in self._dictionaries else NULL
        return bool((values != null).any())

    def codes(self, name: str) -> Int32:
        """int32 codes of a text or JSON column, one per event; -1 is null."""
        return self._full(name, -1, np.dtype(np.int32))

    def dictionary(self, name: str) -> list[str]:
        """The texts that `codes(name)` points into.  pid and tid are text too: "7", "stream 7", "Spans"."""
        return self._dictionaries.get(name, [])

    def ints(self, name: str) -> Int64:
        """int64 values of a numeric column, one per event; `schema.NULL` is null."""
        return self._full(name, NULL, np.dtype(np.int64))

    def floats(self, name: str) -> Float64:
        """float64 values of a numeric column, one per event; nan is null."""
        return self._full(name, np.nan, np.dtype(np.float64))

    def ints_of(self, name: str, rows: Integers) -> Int64:
        """``ints(name)[rows]``, without a value for every event."""
        return self._some(name, rows, NULL).astype(np.int64, copy=False)

    def codes_of(self, name: str, rows: Integers) -> Int32:
        """``codes(name)[rows]``, without a code for every event."""
        return self._some(name, rows, -1).astype(np.int32, copy=False)

    def _some(self, name: str, rows: Integers, null: int) -> Values:
        if name in self._dense:
            return self._dense[name][rows]
        having, found = self._sparse.get(name, _NOTHING)
        if not len(having):
            return np.full(len(rows), null)
        if np.array_equal(having, rows):  # as of all memory events that PyTorch writes
            return found.copy()
        at = np.searchsorted(having, rows.astype(np.int32, copy=False))
        np.minimum(at, len(having) - 1, out=at)
        return np.where(having[at] == rows, found[at], null)

    def sparse(self, name: str) -> tuple[Int32, Values]:
        """`(rows, values)` of the events that have the column, in row order; values are codes for text
        columns.
        """
        if name in self._sparse:
            return self._sparse[name]
        values = self._dense.get(name)
        if values is None:
            return _NOTHING
        rows = np.flatnonzero(values != (-1 if name in self._dictionaries else NULL)).astype(np.int32)
        return rows, values[rows]

    def _full(self, name: str, null: float, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
        """One value per event.  Dense columns come without a copy (read-only); others are built on each
        call.
        """
        if name in self._dense:
            values = self._dense[name]
            if values.dtype == dtype or dtype.kind != "f":
                return values.astype(dtype, copy=False)
            return np.where(values == NULL, np.nan, values)
        full = np.full(self.n, null, dtype)
        if name in self._sparse:
            rows, values = self._sparse[name]
            full[rows] = values
        return full
