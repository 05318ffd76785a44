"""A second reader, slow and simple: `json.loads` with `Decimal`, for what the scanner makes of JSON."""

from __future__ import annotations

import json
import math
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, InvalidOperation
from typing import Any

from hta_widgets.trace.reader.schema import ARGUMENT_COLUMNS, COUNTER_ARGS, EVENT_COLUMNS, KINDS, NULL
from hta_widgets.trace.reader.table import EventTable

MOST_RANKS = 1 << 17  # of a group; what is larger is not written out
LONGEST_NUMBER = 400  # what is longer is not read, and the table says so
EXACT = Context(prec=1000, Emax=MAX_EMAX, Emin=MIN_EMIN)
OF_EVENTS = {column.key: column for column in EVENT_COLUMNS}
OF_ARGUMENTS = {key: column for column in ARGUMENT_COLUMNS for key in (column.key, *column.aliases)}


class Number(str):
    """A number as it stands in the text."""


class Constant(str):
    """NaN or an infinity."""


class Object(dict[str, Any]):
    """An object, and the keys that it has twice: JSON does not say which of them counts."""

    def __init__(self, members: list[tuple[str, Any]]) -> None:
        super().__init__(members)
        self.twice: set[str] = set()
        if len(self) < len(members):
            keys = [key for key, _ in members]
            self.twice = {key for key in keys if keys.count(key) > 1}


def parsed(text: str) -> Any:
    """JSON, with the numbers as they stand in the text."""
    return json.loads(
        text, parse_float=Number, parse_int=Number, parse_constant=Constant, object_pairs_hook=Object
    )


def events_of(text: bytes) -> list[Any] | None:
    """The events of a text that is JSON, None where it is none or no trace."""
    try:
        found = parsed(text.decode("utf-8"))
    except (ValueError, RecursionError):
        return None
    events = found.get("traceEvents") if isinstance(found, dict) else found
    return events if isinstance(events, list) and all(isinstance(item, dict) for item in events) else None


def looks_like_a_trace(events: list[Any] | None) -> bool:
    """Whether any event has a phase or a time: a list of other objects is refused."""
    return any(
        isinstance(item.get("ph"), str) or isinstance(_expected(item.get("ts"), "int", "start_ns"), int)
        for item in events or ()
    )


def differences(table: EventTable, events: list[Any]) -> list[str]:
    """Where a table is not what the events say."""
    if table.n != len(events):
        return [f"{table.n} events, not {len(events)}"]
    expected: dict[str, dict[int, Any]] = {name: {} for name in table.columns}
    for row, event in enumerate(events):
        arguments = event.get("args")
        if "args" in event.twice:
            for column in ARGUMENT_COLUMNS:
                expected.setdefault(column.name, {})[row] = ...
            arguments = None
        for columns, members in ((OF_EVENTS, event), (OF_ARGUMENTS, arguments)):
            if not isinstance(members, Object):
                continue
            for key, value in members.items():
                if (column := columns.get(key)) is not None:
                    cells = expected.setdefault(column.name, {})
                    ambiguous = row in cells or key in members.twice  # two spellings, or one of them twice
                    cells[row] = ... if ambiguous else _expected(value, column.kind, column.name)
    _add_groups(expected)
    _put_on_streams(expected)
    found = []
    for name, cells in expected.items():
        if name == COUNTER_ARGS.name:
            continue
        given = _given(table, name)
        found += [
            f"event {row}: {name} is {given.get(row)!r}, not {cells.get(row)!r}"
            for row in given.keys() | cells.keys()
            if (other := cells.get(row)) is not ... and given.get(row) != other
        ]
    return found + _counters(table, events)


def _add_groups(expected: dict[str, dict[int, Any]]) -> None:
    """The ranks of a group that is written as the first of them, their distance and their number."""
    lists = expected.setdefault("process_group_ranks", {})
    parts = [expected.get(name, {}) for name in ("global_rank_start", "global_rank_stride", "group_size")]
    for row in parts[1].keys() - {row for row, ranks in lists.items() if ranks is not None}:
        start, stride, size = (part.get(row) for part in parts)
        if ... in (start, stride, size):
            lists[row] = ...
        elif None not in (start, stride, size) and start >= 0 < stride and 0 < size <= MOST_RANKS:
            lists[row] = [str(start + stride * place) for place in range(size)]


def _put_on_streams(expected: dict[str, dict[int, Any]]) -> None:
    """Work of a graph, which is drawn on a lane of the graph, belongs to the stream that ran it."""
    streams, threads = (expected.setdefault(name, {}) for name in ("stream", "tid"))
    for row, ran in expected.get("original_stream", {}).items():
        if ran is ... or streams.get(row) is ...:
            streams[row] = threads[row] = ...
        elif ran is not None and streams.get(row) is not None:
            streams[row], threads[row] = ran, str(ran)


def _given(table: EventTable, name: str) -> dict[int, Any]:
    """What a column holds, by row."""
    rows, values = table.sparse(name)
    cells = zip(rows.tolist(), values.tolist(), strict=True)
    kind = KINDS[name]
    if kind in ("text", "json"):
        texts = table.dictionary(name)
        return {row: parsed(texts[code]) if kind == "json" else texts[code] for row, code in cells}
    if kind == "int":
        return {row: number for row, number in cells if number != NULL}
    return {row: number for row, number in cells if not math.isnan(number)}


def _counters(table: EventTable, events: list[Any]) -> list[str]:
    """Counter events have all of their arguments, as they stand in the text, and others have none."""
    given = _given(table, COUNTER_ARGS.name)
    expected = {
        row: event["args"]
        for row, event in enumerate(events)
        if event.get("ph") == "C" and isinstance(event.get("args"), dict)
    }
    ambiguous = {row for row, event in enumerate(events) if event.twice & {"ph", "args"}}
    return [
        f"event {row}: its counters are {given.get(row)!r}, not {expected.get(row)!r}"
        for row in (given.keys() | expected.keys()) - ambiguous
        if given.get(row) != expected.get(row)
    ]


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
    if len(value) > LONGEST_NUMBER:
        return ...
    if kind == "float":
        return float(value)
    try:
        exact = Decimal(value)
    except InvalidOperation:  # an exponent of twenty digits
        return ...
    if exact and exact.adjusted() > 30:
        return None
    if name in ("start_ns", "dur_ns"):
        rounded = int(exact.scaleb(3, EXACT).to_integral_value("ROUND_HALF_EVEN", EXACT))
        return rounded if abs(rounded) < 1 << 63 else None
    whole = int(exact)
    if exact != whole or whole >= 1 << 64:
        return None
    whole = whole - (1 << 64) if whole >= 1 << 63 else whole
    return whole if whole > -(1 << 63) else None
