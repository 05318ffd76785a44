"""Filters of a table's columns, each by a text or by a range, and what the values of a column are like."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import traitlets as t
from numpy.typing import NDArray

from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.widgets.event_columns import KNOWN_COLUMNS, Numbers, Texts, Values, is_text, read

Range: TypeAlias = tuple[float | None, float | None]
# (column, a text that its values hold, or the least and the greatest value), by column
Filters: TypeAlias = tuple[tuple[str, str | Range], ...]

_BINS = 24
_COMMONEST = 12
_SKEWED = 100  # of so wide a range, the bins grow with the values
# pandas has no column "track": made of two, as `event_columns` does it
_TRACK = (
    '("stream " + e["stream"].astype("string"))'
    r'.fillna(e["tid"].astype("string").str.replace(r"^([0-9]+)$", r"thread \1", regex=True))'
)


def checked(filters: Any) -> dict[str, str | Range]:
    """Filters as somebody gave them, by column.

    Raises:
        TraitError: no such column; a text for numbers, or a range for texts.
    """
    if not isinstance(filters, Mapping):
        raise t.TraitError(f"filters are a dict by column, not {filters!r}")
    return {name: _checked(name, value) for name, value in filters.items() if value not in ("", None)}


def _checked(name: Any, value: Any) -> str | Range:
    if name not in KNOWN_COLUMNS:
        raise t.TraitError(f"no column {name!r}; the columns are {', '.join(KNOWN_COLUMNS)}")
    if is_text(name):
        if not isinstance(value, str):
            raise t.TraitError(f"the filter of {name} is a text, not {value!r}")
        return value
    ends = tuple(value) if isinstance(value, Sequence) and not isinstance(value, str) else ()
    numbers = all(
        end is None or (isinstance(end, int | float) and not isinstance(end, bool) and not math.isnan(end))
        for end in ends
    )
    if len(ends) != 2 or not numbers:
        raise t.TraitError(
            f"the filter of {name} is the least and the greatest value, each a number or None, not {value!r}"
        )
    return ends[0], ends[1]


def passing(rank: RankTrace, rows: NDArray[np.int64], filters: Filters) -> NDArray[np.bool_]:
    """Which of some rows of a rank pass all filters; what has no value passes none."""
    passes = np.ones(len(rows), np.bool_)
    for name, wanted in filters:
        passes &= _passes(read(rank, name, rows), wanted)
    return passes


def _passes(values: Values, wanted: str | Range) -> NDArray[np.bool_]:
    if isinstance(values, Texts) or isinstance(wanted, str):
        assert isinstance(values, Texts) and isinstance(wanted, str)
        text = wanted.lower()
        holds = np.array([*(text in one.lower() for one in values.texts), False], np.bool_)
        return holds[values.codes]  # code -1, none, picks the last
    low, high = wanted
    passes = ~values.missing
    if low is not None:
        passes &= values.data >= low
    if high is not None:
        passes &= values.data <= high
    return passes


def expression(filters: Filters) -> str:
    """The pandas calls that filter a frame of events like this."""
    return "".join(f".loc[lambda e: {_condition(name, wanted)}]" for name, wanted in filters)


def _condition(name: str, wanted: str | Range) -> str:
    column = f'e["{name}"]'
    if isinstance(wanted, str):
        texts = _TRACK if name == "track" else f'{column}.astype("string")'
        return f"{texts}.str.contains({wanted!r}, case=False, regex=False, na=False)"
    low, high = wanted
    if low is not None and high is not None:
        return f"{column}.between({low!r}, {high!r}).fillna(False)"
    return f"({column} {'>=' if high is None else '<='} {(low if high is None else high)!r}).fillna(False)"


def distribution(parts: Sequence[Values]) -> dict[str, Any]:
    """What the values of a column are like.

    Returns:
        `missing`: how many have none. Of numbers `edges` and `counts` of bins, which grow with the values
        where their range is wide. Of texts `values`, the commonest ones with their counts, and `distinct`.
    """
    texts = [part for part in parts if isinstance(part, Texts)]
    return _of_texts(texts) if texts else _of_numbers([p for p in parts if isinstance(p, Numbers)])


def _of_texts(parts: Sequence[Texts]) -> dict[str, Any]:
    counts: dict[str, int] = {}
    missing = 0
    for part in parts:
        numbers = np.bincount(part.codes.astype(np.int64) + 1, minlength=len(part.texts) + 1).tolist()
        missing += numbers[0]
        for text, number in zip(part.texts, numbers[1:], strict=True):
            if number:
                counts[text] = counts.get(text, 0) + number
    values = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return {"values": values[:_COMMONEST], "distinct": len(values), "missing": missing}


def _of_numbers(parts: Sequence[Numbers]) -> dict[str, Any]:
    present = [part.data[~part.missing].astype(np.float64) for part in parts]
    values = np.concatenate([np.empty(0), *present])
    values = values[np.isfinite(values)]
    missing = sum(len(part.data) for part in parts) - len(values)
    if not len(values):
        return {"edges": [], "counts": [], "missing": missing}
    edges = _edges(values)
    return {"edges": edges.tolist(), "counts": np.histogram(values, edges)[0].tolist(), "missing": missing}


def _edges(values: NDArray[np.float64]) -> NDArray[np.float64]:
    low, high = values.min(), values.max()
    if low == high:
        return np.array([low, high])
    if low >= 0 and high > _SKEWED * max(float(np.median(values)), 1e-300):
        least = values[values > 0].min()
        if least < high:
            edges = np.geomspace(least, high, _BINS + 1)
            edges[0], edges[-1] = low, high
            return edges
    return np.linspace(low, high, _BINS + 1)
