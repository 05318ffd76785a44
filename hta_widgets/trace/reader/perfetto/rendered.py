"""Messages of arguments -> JSON, for the plain ones: numbers, ASCII texts, lists and objects of these.

What is left, `annotations` decodes.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from hta_widgets.arrays import Int64
from hta_widgets.jit import kernel, outline
from hta_widgets.trace.reader.bytes import PADDING, Text, borrowed, byte_at, u64
from hta_widgets.trace.reader.dictionary import Dictionary
from hta_widgets.trace.reader.perfetto.wire import BYTES, VARINT, read_field

LIST, OBJECT, SCALAR = 1, 2, 3
ROOM: Final = 4  # the most bytes of JSON for a byte of a message: an empty list takes two, and gives four
_GENERATION: Final = 8  # bytes, after each message
_DEEPEST: Final = 64
_STOP, _HOLDS, _IS_ENTRY, _COLUMNS = 0, 1, 2, 3


def as_json_texts(texts: Dictionary, codes: Int64) -> list[str | None]:
    """The JSON of each of these messages; None: it is not a plain one."""
    if not len(codes):
        return []
    entries = texts.entries
    out = np.empty(ROOM * int(entries.length[codes].sum()) + 16 * len(codes) + PADDING, np.uint8)
    ends = np.empty(len(codes), np.int64)
    frames = np.empty((_DEEPEST, _COLUMNS), np.int64)
    render(entries.text, entries.offset[codes], entries.length[codes], out, ends, frames)
    begin, found = 0, list[str | None]()
    rendered = out[: abs(int(ends[-1]))].tobytes().decode("ascii")
    for end in ends.tolist():
        found.append(rendered[begin:end] if end > 0 else None)
        begin = abs(end)
    return found


@kernel
def render(text: Text, offsets: Int64, lengths: Int64, out: Text, ends: Int64, frames: Int64) -> None:
    """Write the JSON of each message; `ends` has where it ends, negative where there is none."""
    text, out, frames = borrowed(text), borrowed(out), borrowed(frames)
    at = 0
    for k in range(len(offsets)):
        stop = offsets[k] + lengths[k] - _GENERATION
        end = _rendered(text, offsets[k], stop, out, at, frames)
        ends[k] = end if end >= 0 else -at
        at = abs(ends[k])


@outline
def _rendered(text: Text, i: int, stop: int, out: Text, at: int, frames: Int64) -> int:
    """Write the JSON of one message; -1 where it is not plain."""
    depth = 0
    frames[0, _STOP], frames[0, _HOLDS], frames[0, _IS_ENTRY] = stop, 0, 0
    named = True
    while True:
        holds = frames[depth, _HOLDS]
        if i >= frames[depth, _STOP]:
            if holds == 0:
                if not named:
                    return -1
                out[at] = 0x5B
                at += 1
            if holds != SCALAR:
                out[at] = 0x7D if holds == OBJECT else 0x5D
                at += 1
            if depth == 0:
                return at
            depth -= 1
            named = True
            continue
        number, wire, value, begin, after = read_field(text, i, frames[depth, _STOP])
        i = after
        if number == 10 and wire == BYTES:
            if frames[depth, _IS_ENTRY] == 0:
                continue
            if named or holds != 0:
                return -1
            at = _quoted(text, begin, after, out, at)
            if at < 0:
                return -1
            out[at], out[at + 1] = 0x3A, 0x20
            at += 2
            named = True
            continue
        if not named:
            return -1
        if (number == 11 or number == 12) and wire == BYTES:
            kind = OBJECT if number == 11 else LIST
            if holds == 0:
                out[at] = 0x7B if kind == OBJECT else 0x5B
                at += 1
            elif holds == kind:
                out[at], out[at + 1] = 0x2C, 0x20
                at += 2
            else:
                return -1
            frames[depth, _HOLDS] = kind
            depth += 1
            if depth == _DEEPEST:
                return -1
            frames[depth, _STOP], frames[depth, _HOLDS] = after, 0
            frames[depth, _IS_ENTRY] = 1 if kind == OBJECT else 0
            named = kind != OBJECT
            i = begin
            continue
        if holds != 0:
            return -1
        frames[depth, _HOLDS] = SCALAR
        if number == 4 and wire == VARINT:
            at = _number(value, out, at)
        elif number == 6 and wire == BYTES:
            at = _quoted(text, begin, after, out, at)
        else:
            return -1
        if at < 0:
            return -1


@outline
def _quoted(text: Text, i: int, stop: int, out: Text, at: int) -> int:
    """Write a text; -1 where JSON spells it otherwise."""
    out[at] = 0x22
    at += 1
    while i < stop:
        byte = byte_at(text, i)
        if byte < 0x20 or byte > 0x7E or byte == 0x22 or byte == 0x5C:
            return -1
        out[at] = byte
        at += 1
        i += 1
    out[at] = 0x22
    return at + 1


@outline
def _number(value: np.int64, out: Text, at: int) -> int:
    rest = u64(value)
    if value < 0:
        out[at] = 0x2D
        at += 1
        rest = u64(0) - rest
    digits, left = 1, rest
    while left >= u64(10):
        left //= u64(10)
        digits += 1
    for k in range(digits - 1, -1, -1):
        out[at + k] = 0x30 + np.int64(rest % u64(10))
        rest //= u64(10)
    return at + digits
