"""The recorded inputs of operators, one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import reduce
from typing import Final

import numpy as np

from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.operators.inputs import Inputs, parse_shapes, parse_types, parse_values
from hta_widgets.arrays import Int32, Int64
from hta_widgets.trace.ordering import first_of_each, numbered, rows_of_each
from hta_widgets.trace.rank_trace import RankTrace

_COLUMNS: Final = ("input_dims", "input_type", "concrete_inputs")


class RecordedInputs:
    """What was passed to the operators of a rank, as far as it was recorded: the same again and again.

    Attributes:
        of_row: int32 for each row of the rank, the number of what was passed to it, -1 where nothing is
            recorded.
        shapes, types, values: int32 codes of the texts of each number, -1 where absent, as for -1, the last.
    """

    def __init__(self, rank_trace: RankTrace) -> None:
        self._names, self._name = rank_trace.names, rank_trace.name
        self._texts = [rank_trace.table.dictionary(column) for column in _COLUMNS]
        rows, codes = _side_by_side([rank_trace.recorded(column) for column in _COLUMNS])
        number = numbered(*codes)
        first = first_of_each(number)
        self.of_row = np.full(rank_trace.n, -1, np.int32)
        self.of_row[rows] = number
        self.shapes, self.types, self.values = (np.append(code[first], np.int32(-1)) for code in codes)

    def of(self, row: int) -> Inputs:
        """The inputs of the operator of a row."""
        number = self.of_row[row]
        dims, types, values = (
            texts[codes[number]] if codes[number] >= 0 else ""
            for codes, texts in zip((self.shapes, self.types, self.values), self._texts, strict=True)
        )
        kinds = parse_types(types)
        return Inputs(self._names[self._name[row]], parse_shapes(dims, kinds), kinds, parse_values(values))


def _side_by_side(columns: list[tuple[Int32, Int32]]) -> tuple[Int32, list[Int32]]:
    """All rows that have one of these columns, and the codes of each column there, -1 where absent."""
    rows = [row for row, _ in columns]
    every = max(rows, key=len)
    if any(len(row) and not np.array_equal(row, every) for row in rows):
        every = reduce(np.union1d, rows)
    return every, [_placed(every, *column) for column in columns]


def _placed(every: Int32, rows: Int32, codes: Int32) -> Int32:
    if len(rows) == len(every):
        return codes
    placed = np.full(len(every), -1, np.int32)
    placed[np.searchsorted(every, rows)] = codes
    return placed


recorded_inputs = memoize_per_rank()(RecordedInputs)


def alike(rank_trace: RankTrace, rows: Int64) -> Iterator[tuple[Inputs, Int64]]:
    """What was passed to these operators, each once, with the rows of those that it was passed to."""
    recorded = recorded_inputs(rank_trace)
    for same in rows_of_each(numbered(recorded.of_row[rows])):
        yield recorded.of(int(rows[same[0]])), rows[same]


def rows_where(rank_trace: RankTrace, rows: Int64, holds: Callable[[Inputs], bool]) -> Int64:
    """Those of these operators whose recorded inputs have a property, which is asked of equal ones once."""
    recorded = recorded_inputs(rank_trace)
    number, first, of = np.unique(recorded.of_row[rows], return_index=True, return_inverse=True)
    found = np.array([holds(recorded.of(row)) for row in rows[first].tolist()], np.bool_)
    return rows[(found & (number >= 0))[of]]
