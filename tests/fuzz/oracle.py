"""A second reader, slow and simple: `json.loads` with `Decimal`, for what the scanner makes of JSON."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from typing import Any

from hta_widgets.trace.reader.schema import ARGUMENT_COLUMNS, DENSE_COLUMNS, EVENT_COLUMNS, NULL
from hta_widgets.trace.reader.table import EventTable


class Number(str):
    """A number as it stands in the text."""


class Constant(str):
    """NaN or an infinity."""


def events_of(text: bytes) -> list[Any] | None:
    """The events of a text that is JSON, None where it is none or no trace."""
    try:
        found = json.loads(
            text.decode("utf-8"), parse_float=Number, parse_int=Number, parse_constant=Constant, strict=True
        )
    except (ValueError, RecursionError):
        return None
    events = found.get("traceEvents") if isinstance(found, dict) else found
    return events if isinstance(events, list) and all(isinstance(item, dict) for item in events) else None


def looks_like_a_trace(events: list[Any] | None) -> bool:
    """Whether any event has a phase or a time: a list of other objects is refused."""
    return any(isinstance(item.get("ph"), str) or isinstance(item.get("ts"), Number) for item in events or ())


def differences(table: EventTable, events: list[Any]) -> list[str]:
    """Where a table is not what the events say."""
    if table.n != len(events):
        return [f"{table.n} events, not {len(events)}"]
    found = []
    for column in (*DENSE_COLUMNS, *EVENT_COLUMNS[len(DENSE_COLUMNS) :], *ARGUMENT_COLUMNS):
        holders = [event if column in EVENT_COLUMNS else _arguments(event) for event in events]
        if any(alias in holder for holder in holders for alias in column.aliases):
            continue  # two spellings in one event: the last in the file counts
        expected = [_expected(holder.get(column.key), column.kind, column.name) for holder in holders]
        if column.kind in ("text", "json"):
            codes, texts = table.codes(column.name).tolist(), table.dictionary(column.name)
            given: list[Any] = [None if code < 0 else texts[code] for code in codes]
            if column.kind == "json":
                given = [None if text is None else json.loads(text, parse_float=Number, parse_int=Number,
                         parse_constant=Constant) for text in given]  # fmt: skip
        elif column.kind == "float":
            given = [None if math.isnan(number) else number for number in table.floats(column.name).tolist()]
        else:
            given = [None if number == NULL else number for number in table.ints(column.name).tolist()]
        found += [
            f"event {row}: {column.name} is {one!r}, not {other!r}"
            for row, (one, other) in enumerate(zip(given, expected, strict=True))
            if one != other and other is not ...
        ]
    return found


def _arguments(event: dict[str, Any]) -> dict[str, Any]:
    arguments = event.get("args")
    return arguments if isinstance(arguments, dict) else {}


def _expected(value: Any, kind: str, name: str) -> Any:
    """What a column holds for a value; `...` where the reader may decide."""
    if value is None:
        return None
    if kind == "json":
        return value
    if kind == "text":
        if isinstance(value, str):
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return ... if isinstance(value, dict | list | bool) else value
    if isinstance(value, Constant):
        return None if kind == "int" or value == "NaN" else float(value.replace("Infinity", "inf"))
    if not isinstance(value, Number):
        return ... if isinstance(value, str) else None
    exact = Decimal(value)
    if kind == "float":
        return float(value)
    if name in ("start_ns", "dur_ns"):
        rounded = int((exact * 1000).to_integral_value(rounding="ROUND_HALF_EVEN"))
        return rounded if abs(rounded) < 1 << 63 else None
    if exact != exact.to_integral_value() or abs(exact) >= 1 << 64:
        return None
    whole = int(exact) - (1 << 64) if exact >= 1 << 63 else int(exact)
    return whole if whole > -(1 << 63) else None
