"""Arguments of an event that are no plain numbers or texts: messages, each distinct one decoded once."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any, Final

from hta_widgets.trace.reader.perfetto.wire import double, fields, signed

NAME_IID, NAME = 1, 10
BOOL, UINT, INT, DOUBLE, STRING, POINTER, NESTED, JSON = 2, 3, 4, 5, 6, 7, 8, 9
ENTRIES, ITEMS, STRING_IID = 11, 12, 17

_DEEPEST: Final = 64
_ABSENT: Final = object()

Resolve = Callable[[int, int], str]
"""The text of an interned name (`NAME_IID`) or value (`STRING_IID`)."""


def decoded(message: bytes, resolve: Resolve) -> Any:
    """What a DebugAnnotation holds, as JSON's types; an empty one stands for an empty list.

    Raises ValueError if it is malformed, or nested too deeply.
    """
    return _value(message, resolve, 0)[1]


def as_json(value: Any) -> str:
    """The text that PyTorch's JSON has for a value."""
    return json.dumps(_finite(value), ensure_ascii=False)


def _value(message: bytes, resolve: Resolve, depth: int) -> tuple[str, Any]:
    if depth > _DEEPEST:
        raise ValueError("it is nested too deeply")
    name, found = "", _ABSENT
    entries: dict[str, Any] = {}
    items: list[Any] = []
    for number, _, value in fields(message):
        if isinstance(value, bytes):
            if number == NAME:
                name = value.decode("utf-8", "replace")
            elif number == STRING:
                found = value.decode("utf-8", "replace")
            elif number == ENTRIES:
                key, inner = _value(value, resolve, depth + 1)
                entries[key] = inner
            elif number == ITEMS:
                items.append(_value(value, resolve, depth + 1)[1])
            elif number == JSON:
                found = _json(value)
            elif number == NESTED:
                found = _nested(value, depth + 1)
        elif number == NAME_IID:
            name = resolve(NAME_IID, value)
        elif number == STRING_IID:
            found = resolve(STRING_IID, value)
        elif number == BOOL:
            found = bool(value)
        elif number == INT:
            found = signed(value)
        elif number in (UINT, POINTER):
            found = value
        elif number == DOUBLE:
            found = double(value)
    if found is _ABSENT:
        found = entries or items
    return name, found


def _nested(message: bytes, depth: int) -> Any:
    """The older spelling of lists and objects (NestedValue)."""
    if depth > _DEEPEST:
        raise ValueError("it is nested too deeply")
    found: Any = None
    keys: list[str] = []
    values: list[Any] = []
    items: list[Any] = []
    for number, _, value in fields(message):
        if isinstance(value, bytes):
            if number == 2:
                keys.append(value.decode("utf-8", "replace"))
            elif number == 3:
                values.append(_nested(value, depth + 1))
            elif number == 4:
                items.append(_nested(value, depth + 1))
            elif number == 8:
                found = value.decode("utf-8", "replace")
        elif number == 5:
            found = signed(value)
        elif number == 6:
            found = double(value)
        elif number == 7:
            found = bool(value)
    if found is not None:
        return found
    return dict(zip(keys, values, strict=False)) or items


def _json(text: bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text.decode("utf-8", "replace")


def _finite(value: Any) -> Any:
    """Without what JSON cannot say."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, list):
        return [_finite(item) for item in value]
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    return value
