"""Reads what is not an event in a trace file: the JSON keys before and after `traceEvents`."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from itertools import islice
from typing import Any

# Possessive: going back over white space would cost the square of its length.
_KEY = re.compile(r'\s*+(?:,\s*+)?"((?:[^"\\]|\\.)*+)"\s*+:\s*+')
_NEXT_KEY = re.compile(r'(?<![\s,])(?P<gap>[\s,]++)(?="(?:[^"\\]|\\.)*+"\s*+:)')
_ARRAY_END = re.compile(rb'\}\s*+\]\s*+(?=,\s*+"|\})')
_DECODER = json.JSONDecoder(strict=False)
_SEARCHED_ENDS = 64
_MOST_DAMAGED = 64
"""How many unreadable values are passed over: each may have been read to the end of the text."""


@dataclass(frozen=True)
class Metadata:
    """Top-level keys, and the byte offset in the text at which the first unreadable part starts."""

    values: dict[str, Any]
    damaged_at: int | None = None


def read_metadata(head: bytes, tail: bytes) -> Metadata:
    """Keys of `head` (from the brace to the array's bracket) and of `tail` (from past the closing bracket to
    the end).

    If the whole does not parse, it is read key by key, leaving out the broken ones.
    """
    before = head[: head.rfind(b'"traceEvents"')]
    whole = _loads(before + b'"traceEvents": []' + tail)
    if whole is not None:
        whole.pop("traceEvents", None)
        return Metadata(whole)
    values, damaged_at = _members(before.lstrip(b"\xef\xbb\xbf \t\r\n")[1:])
    more, tail_damaged_at = _members(tail)
    values.update(more)
    values.pop("traceEvents", None)
    if damaged_at is None and tail_damaged_at is not None:
        damaged_at = len(head) + tail_damaged_at
    return Metadata(values, damaged_at)


def find_tail(text: bytes) -> bytes:
    """What follows the events in the text after a last, unreadable event; empty where no end is found."""
    for match in islice(_ARRAY_END.finditer(text), _SEARCHED_ENDS):
        tail = text[match.end() :]
        if _loads(b'{"traceEvents": []' + tail) is not None:
            return tail
    return b""


def _loads(text: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(text.lstrip(b"\xef\xbb\xbf").decode("utf-8", "replace"), strict=False)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _members(raw: bytes) -> tuple[dict[str, Any], int | None]:
    """The readable `"key": value` pairs of an object's inside, and where the first unreadable one starts."""
    text = raw.decode("utf-8", "replace")
    values: dict[str, Any] = {}
    damaged_at: int | None = None
    i = damaged = 0
    while match := _KEY.match(text, i):
        try:
            value, i = _DECODER.raw_decode(text, match.end())
            values[match[1]] = value
            continue
        except (ValueError, RecursionError):
            pass
        if damaged_at is None:
            damaged_at = match.start()
        damaged += 1
        # from the end of the key on: the gap must be seen from its beginning
        gaps = (gap for gap in _NEXT_KEY.finditer(text, match.end(1) + 1) if {"\n", ","} & {*gap["gap"]})
        following = next(gaps, None)
        if following is None or damaged == _MOST_DAMAGED:
            return values, damaged_at
        i = following.end()
    if damaged_at is None and text[i:].strip(" \t\r\n,}"):
        damaged_at = i
    return values, damaged_at
