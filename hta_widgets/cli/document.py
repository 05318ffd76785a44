"""Frames as JSON that other programs can rely on; `docs/command_line.md` describes it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd
from pandas.api import types

from hta_widgets.analysis.evidence.budget import dumped, tokens_of
from hta_widgets.analysis.evidence.names import MOST_LETTERS, cleaned
from hta_widgets.errors import MissingDataError
from hta_widgets.trace.scope import Scope

_CHUNK = 10_000
_MOST_LISTED = 40
_MOST_TEXTS = 3
_SENTENCE = 400
_AROUND = 8  # tokens of brackets and line ends


def scope_as_dict(scope: Scope) -> dict[str, list[int] | None]:
    """The parts of a scope; None means all."""
    named = {
        "ranks": scope.ranks,
        "iterations": scope.iterations,
        "window_ns": scope.window_ns,
        "streams": scope.streams,
    }
    return {name: None if part is None else list(part) for name, part in named.items()}


def dtypes(frame: pd.DataFrame) -> dict[str, str]:
    """The type of each column: int64, float64, bool and the like, or str; any of them may hold nulls."""
    return {str(name): _dtype(frame[name].dtype) for name in frame.columns}


def records(frame: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Each row as a dict of ints, floats, bools, texts and None."""
    names = [str(name) for name in frame.columns]
    for at in range(0, len(frame), _CHUNK):
        part = frame.iloc[at : at + _CHUNK]
        for values in zip(*(_values(part[name]) for name in part.columns), strict=True):
            yield dict(zip(names, values, strict=True))


def frame_as_dict(frame: pd.DataFrame) -> dict[str, Any]:
    """A frame as `columns` and `rows`."""
    return {"columns": dtypes(frame), "rows": list(records(frame))}


def missing_as_dict(error: MissingDataError) -> dict[str, Any]:
    """What replaces an answer that the trace lacks data for."""
    return {"missing": {"field": error.field, "remedy": error.remedy, "detail": error.detail}}


def json_lines(head: Mapping[str, Any], frame: pd.DataFrame) -> Iterator[str]:
    """The lines of a JSON object: the items of `head`, then `columns` and `rows`, one line per row."""
    yield dumped({**head, "columns": dtypes(frame)})[:-1] + ', "rows": ['
    yield from _listed(map(dumped, records(frame)))
    yield "]}"


def bounded_lines(
    head: Mapping[str, Any], frame: pd.DataFrame, budget: int | None, most: int | None = None
) -> Iterator[str]:
    """As `json_lines`, with at most `most` rows and in at most `budget` tokens; None: any number.

    `truncated` has how many rows are printed, of how many; it is null where all are. Where the budget leaves
    some out, texts are cut to 120 letters, or null where they are lists or expressions, and long lists of
    numbers in the scope are cut to their ends.
    """
    total = len(frame)
    frame = frame.head(total if most is None else most)
    limited = {"rows": len(frame), "of": total} if len(frame) < total else None
    if budget is None:
        yield from json_lines({**head, "truncated": limited}, frame)
        return
    rows: list[str] = []
    short: list[str] = []
    whole, cut = {**head, "truncated": limited}, _shortened(head)
    of = {"rows": total, "of": total}
    room, short_room = (
        budget - tokens_of(dumped({**each, "truncated": of, "columns": dtypes(frame)})) - _AROUND
        for each in (whole, cut)
    )
    for record in records(frame):
        if room >= 0:
            rows.append(dumped(record))
            room -= tokens_of(rows[-1] + ",\n")
        short.append(dumped(_shortened(record)))
        short_room -= tokens_of(short[-1] + ",\n")
        if room < 0 and short_room < 0:
            break
    if room >= 0 and len(rows) == len(frame):
        yield from json_lines(whole, frame)
        return
    if short_room < 0 and short:
        short.pop()
    truncated = {"rows": len(short), "of": total}
    yield dumped({**cut, "truncated": truncated, "columns": dtypes(frame)})[:-1] + ', "rows": ['
    yield from _listed(iter(short))
    yield "]}"


def _listed(lines: Iterator[str]) -> Iterator[str]:
    """The lines, a comma after each but the last."""
    before = None
    for line in lines:
        if before is not None:
            yield f"{before},"
        before = line
    if before is not None:
        yield before


def _shortened(value: Any) -> Any:
    """Texts cut to a length, and long lists of numbers to their ends."""
    if isinstance(value, str):
        # half a list, or half an expression, is worth nothing: `--columns` prints it whole
        return None if len(value) > MOST_LETTERS and value[0] in "[{" else cleaned(value)
    if isinstance(value, Mapping):
        return {
            key: cleaned(each, _SENTENCE) if key == "sentence" else _shortened(each)
            for key, each in value.items()
        }
    if isinstance(value, list):
        if len(value) > _MOST_LISTED:
            return {"first": value[0], "last": value[-1], "count": len(value)}
        texts = [_shortened(each) for each in value[:_MOST_TEXTS]]
        more = len(value) - len(texts)
        return (
            [*texts, f"{more:,} more"] if more and isinstance(value[0], str) else list(map(_shortened, value))
        )
    return value


def plain(value: Any) -> Any:
    """`value`, made of mappings, sequences and scalars, as JSON can hold it; NaN becomes None."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    return plain(value.item()) if hasattr(value, "item") else str(value)


def _dtype(dtype: Any) -> str:
    # pandas has several string types and nullable variants of numbers, which readers need not know
    return str(dtype).lower() if types.is_numeric_dtype(dtype) else "str"


def _values(series: pd.Series) -> list[Any]:
    if not types.is_numeric_dtype(series):  # bools count as numeric
        return [None if missing else str(value) for value, missing in zip(series, series.isna(), strict=True)]
    if types.is_float_dtype(series):
        floats = series.to_numpy("float64", na_value=math.nan).tolist()
        return [value if math.isfinite(value) else None for value in floats]
    if types.is_extension_array_dtype(series):
        return [None if value is pd.NA else value for value in series.tolist()]
    return series.tolist()
