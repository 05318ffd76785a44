"""Chosen events as a numbered list that can be sorted by any column and read page by page.

Sorting packs each event's key and its number into one 64-bit integer wherever both fit, as they do for times,
ids and names: one sort of plain integers is several times faster than a stable argsort, and as stable.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.arrays import Bool, Int32, Int64
from hta_widgets.engine import checkpoint
from hta_widgets.trace.model import Trace
from hta_widgets.widgets.chosen_events import Chosen, chosen_rows
from hta_widgets.widgets.column_filters import Filters, distribution, passing
from hta_widgets.widgets.event_columns import NATURAL, Numbers, Texts, Values, read

_ORDERS = 4  # remembered per list
_COLUMNS = 64
_BITS = 63
_EXACT = 1 << 53


class Unfiltered:
    """The rows of chosen events, by rank, and what the values of their columns are like."""

    def __init__(self, trace: Trace, chosen: Chosen) -> None:
        self.rows = chosen_rows(trace, chosen)

    @memoize_per_rank(last=_COLUMNS)
    def distribution(self, name: str) -> dict[str, Any]:
        """What the values of a column are like, as `column_filters.distribution` has it."""
        values = []
        for rank, rows in self.rows:
            checkpoint()
            values.append(read(rank, name, rows))
        return distribution(values)


class EventList:
    """The events that `chosen` selects and that pass the filters, numbered by rank, start and file order.

    Attributes:
        trace: of which job.
        chosen: which events.
        filters: filters of their columns.
        unfiltered: the chosen events, whatever the filters.
        kept: which of the chosen pass the filters; None for all.
        n: the number of those that do.
    """

    def __init__(
        self, trace: Trace, chosen: Chosen, filters: Filters = (), known: EventList | None = None
    ) -> None:
        """`known`: a list of the same job, whose rows are taken over where the same are chosen."""
        self.trace, self.chosen, self.filters = trace, chosen, filters
        same = known is not None and known.trace is trace and known.chosen == chosen
        self.unfiltered: Unfiltered = (
            known.unfiltered if known is not None and same else Unfiltered(trace, chosen)
        )
        self._ranks = [rank for rank, _ in self.unfiltered.rows]
        self._rows = [rows for _, rows in self.unfiltered.rows]
        self.kept: Bool | None = None
        if filters:
            passes = [passing(rank, rows, filters) for rank, rows in self.unfiltered.rows]
            self._rows = [rows[passed] for rows, passed in zip(self._rows, passes, strict=True)]
            self.kept = np.concatenate([np.empty(0, np.bool_), *passes])
        self._first = np.cumsum([0, *(len(rows) for rows in self._rows)])
        self.n = int(self._first[-1])

    def order(self, sort: str) -> Int32 | None:
        """Event numbers sorted by `sort` ("dur_ns", "-dur_ns"); None for the original order.

        As `DataFrame.sort_values(kind="stable")`: equal ones stay in order, missing ones come last.
        """
        return self._sorted(sort) if sort else None

    @memoize_per_rank(last=_ORDERS)
    def _sorted(self, sort: str) -> Int32:
        name, descending = sorting(sort)
        return stable_order(*self._keys(name), descending)

    def page(self, order: Int32 | None, first: int, count: int, columns: Sequence[str]) -> pd.DataFrame:
        """`count` events from place `first` of an order on."""
        last = min(first + count, self.n)
        numbers = np.arange(first, last) if order is None else order[first:last].astype(np.int64)
        which = np.searchsorted(self._first, numbers, side="right") - 1
        back = np.argsort(np.argsort(which, kind="stable"))
        pieces = [
            (self._ranks[at], self._rows[at][numbers[which == at] - self._first[at]])
            for at in np.unique(which).tolist()
        ]
        data = {}
        for name in columns:
            parts = [read(rank, name, rows).series() for rank, rows in pieces]
            joined = pd.concat(parts, ignore_index=True) if parts else pd.Series(dtype=object)
            data[name] = _exact(joined.iloc[back].reset_index(drop=True))
        return pd.DataFrame(data)

    def find(self, order: Int32 | None, rank: int, event_id: int) -> int:
        """The place of an event in an order, -1 if it is not among the chosen."""
        for at, rank_trace in enumerate(self._ranks):
            if rank_trace.rank == rank:
                hits = np.flatnonzero(rank_trace.event_id[self._rows[at]] == event_id)
                if not len(hits):
                    return -1
                number = int(self._first[at] + hits[0])
                return number if order is None else int(np.flatnonzero(order == number)[0])
        return -1

    def _keys(self, name: str) -> tuple[Int64, Bool]:
        """int64 keys that sort as the column's values, and which values are missing."""
        values: list[Values] = []
        for rank, rows in zip(self._ranks, self._rows, strict=True):
            checkpoint()
            values.append(read(rank, name, rows))
        texts = [value for value in values if isinstance(value, Texts)]
        if texts:
            return _text_keys(texts, natural=name in NATURAL)
        numbers = [value for value in values if isinstance(value, Numbers)]
        if not numbers:
            return np.empty(0, np.int64), np.empty(0, np.bool_)
        joined = np.concatenate([number.data for number in numbers])
        missing = np.concatenate([number.missing for number in numbers])
        return (_float_keys(joined) if joined.dtype.kind == "f" else joined), missing


def sorting(sort: str) -> tuple[str, bool]:
    """("dur_ns", True) for "-dur_ns"."""
    return sort.removeprefix("-"), sort.startswith("-")


def stable_order(keys: Int64, missing: Bool, descending: bool) -> Int32:
    """Positions in the order of the keys; equal keys stay in order, missing ones come last."""
    n = len(keys)
    present = keys[~missing] if missing.any() else keys
    if not len(present):
        return np.arange(n, dtype=np.int32)
    low, high = int(present.min()), int(present.max())
    shift = n.bit_length()
    if (high - low + 1).bit_length() + shift > _BITS:
        spread = np.where(missing, 0, ~keys if descending else keys)
        return np.lexsort((spread, missing)).astype(np.int32)
    packed = np.where(missing, high - low + 1, high - keys if descending else keys - low)
    packed <<= shift
    packed |= np.arange(n)
    packed.sort()
    packed &= (1 << shift) - 1
    return packed.astype(np.int32)


def _text_keys(values: Sequence[Texts], natural: bool) -> tuple[Int64, Bool]:
    """Places of the texts among all distinct ones in order, for each value."""
    texts = {text for value in values for text in value.texts}
    place = {text: at for at, text in enumerate(sorted(texts, key=_natural if natural else None))}
    keys = [
        np.array([*(place[text] for text in value.texts), -1], np.int64)[value.codes] for value in values
    ]  # code -1 picks the last
    joined = np.concatenate(keys)
    return joined, joined < 0


def _natural(text: str) -> tuple[str, int, str]:
    """The number at the end counts as one."""
    head = text.rstrip("0123456789")
    digits = text[len(head) :]
    return head, int(digits[:18] or -1), text


def _float_keys(values: NDArray[np.float64]) -> Int64:
    """Integers in the order of the floats: the bits of a negative one are turned round."""
    bits = (values + 0.0).view(np.int64)  # + 0.0: one zero
    return np.where(bits < 0, bits ^ np.int64(2**63 - 1), bits)


def _exact(series: pd.Series) -> pd.Series:
    """Integers that a browser's numbers cannot hold become text."""
    if series.dtype == "Int64" and (series.abs() > _EXACT).any():
        return series.astype("str")
    return series
