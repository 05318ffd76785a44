"""Columns of what ranks recorded of their communication kernels, which travel in a few bytes per kernel.

What travels is compressed (`trace.cluster`); here values are put so that little is left of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hta_widgets.arrays import Int32, Int64

# Of these each value is like the one before it; others repeat, which zlib finds by itself.
_GROWING = ("rank", "event_id", "iteration", "start_ns", "seq", "comms_id")


@dataclass(frozen=True)
class Records:
    """Columns of equal length."""

    numbers: Mapping[str, Int64]  # whole numbers, by column; one of them is ``rank``
    codes: Mapping[str, Int32]  # texts, by column: codes into ``texts``, -1 for none
    texts: Sequence[str]  # each once

    @classmethod
    def of(cls, numbers: Mapping[str, Int64], codes: Mapping[str, tuple[Int32, Sequence[str]]]) -> Records:
        """Records whose columns of texts have a table each, of which they may use little."""
        table: dict[str, int] = {}
        return cls(
            numbers, {name: _renumbered(*column, table) for name, column in codes.items()}, list(table)
        )

    @classmethod
    def joined(cls, parts: Sequence[Records]) -> Records:
        """One after the other."""
        if len(parts) == 1:
            return parts[0]
        table: dict[str, int] = {}
        codes = [
            {name: _renumbered(column, part.texts, table) for name, column in part.codes.items()}
            for part in parts
        ]
        first = parts[0]
        return cls(
            {name: np.concatenate([part.numbers[name] for part in parts]) for name in first.numbers},
            {name: np.concatenate([part[name] for part in codes]) for name in first.codes},
            list(table),
        )

    def by_rank(self) -> Records:
        """In ascending order of the column ``rank``; of each rank in the order that it has."""
        rank = self.numbers["rank"]
        if (rank[1:] >= rank[:-1]).all():
            return self
        order = np.argsort(rank, kind="stable")
        return Records(
            {name: column[order] for name, column in self.numbers.items()},
            {name: column[order] for name, column in self.codes.items()},
            self.texts,
        )

    def short(self) -> Records:
        """The same, to be read only: a column of equal values takes the memory of one."""
        numbers, codes = (
            {name: _short(column) for name, column in columns.items()}
            for columns in (self.numbers, self.codes)
        )
        return Records(numbers, codes, self.texts)

    def texts_of(self, name: str) -> npt.NDArray[np.object_]:
        """A column of texts, None where absent."""
        return np.array([*self.texts, None], object)[self.codes[name]]

    def __reduce__(self) -> tuple[Any, ...]:
        columns: dict[str, npt.NDArray[Any]] = {**self.numbers, **self.codes}
        packed = [_planes(column, name in _GROWING) for name, column in columns.items()]
        state = list(self.numbers), list(self.codes), list(self.texts), len(self.numbers["rank"])
        return _unpacked, (*state, b"".join(packed))


def _short(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return np.broadcast_to(values[:1].copy(), values.shape) if len(np.unique(values)) == 1 else values


def _renumbered(codes: Int32, texts: Sequence[str], table: dict[str, int]) -> Int32:
    """Codes into the table, to which the texts that they use are added."""
    number = np.full(len(texts) + 1, -1, np.int32)
    for code in np.flatnonzero(np.bincount(codes[codes >= 0], minlength=len(texts))).tolist():
        number[code] = table.setdefault(texts[code], len(table))
    return number[codes]


def _planes(column: npt.NDArray[np.integer[Any]], growing: bool) -> bytes:
    """The lowest bytes of all values, then the next, and so on: those above the values' size are all 0.

    Differences wrap around, and so do their sums: any value comes back. The sign is the lowest bit.
    """
    values = column.astype(np.int64)
    if growing:
        values = np.diff(values, prepend=np.int64(0))
    folded = (values << 1) ^ (values >> 63)
    return folded.astype("<i8").view(np.uint8).reshape(-1, 8).T.tobytes()


def _unpacked(numbers: list[str], codes: list[str], texts: list[str], length: int, packed: bytes) -> Records:
    """What `Records.__reduce__` has packed."""
    planes = np.frombuffer(packed, np.uint8).reshape(len(numbers) + len(codes), 8, length)
    columns = {}
    for name, own in zip([*numbers, *codes], planes, strict=True):
        folded = np.ascontiguousarray(own.T).view("<u8").reshape(-1)
        values = (folded >> np.uint64(1)).astype(np.int64) ^ -(folded & np.uint64(1)).astype(np.int64)
        columns[name] = np.cumsum(values, dtype=np.int64) if name in _GROWING else values
    return Records(
        {name: columns[name] for name in numbers},
        {name: columns[name].astype(np.int32) for name in codes},
        texts,
    )
