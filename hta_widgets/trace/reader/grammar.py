"""Whether a value is JSON, for values that are read without it.

The scanner finds the end of a value and what it can use of it; it reads numbers such as `01` or `.5`, and
passes over what it does not need. These functions tell whether a strict parser would read the same. `NaN`,
`Infinity` and `-Infinity` count as JSON, for Python writes and reads them.
"""

from __future__ import annotations

from typing import Final

from hta_widgets.jit import inline, outline
from hta_widgets.trace.reader.bytes import Text, byte_at, u64, word_at
from hta_widgets.trace.reader.json_text import (
    CLOSE_BRACE,
    CLOSE_BRACKET,
    COLON,
    COMMA,
    NO_BITS,
    OPEN_BRACE,
    OPEN_BRACKET,
    QUOTE,
    scalar_end,
    skip_space,
    string_end,
)
from hta_widgets.trace.reader.numbers import DOT, MINUS, other_bytes

ZERO, NINE, PLUS, LETTER_E = ord("0"), ord("9"), ord("+"), ord("e")
_TRUE, _NULL, _FALS, _INFINITY = (
    u64(int.from_bytes(text, "little")) for text in (b"true", b"null", b"fals", b"Infinity")
)
_NAN = u64(int.from_bytes(b"NaN", "little"))
_DEEPEST: Final = 64
"""A value that is nested deeper is not looked at any further."""

# what may come next in a nested value
_VALUE, _VALUE_OR_END, _KEY, _KEY_OR_END, _COMMA_OR_END = range(5)


@inline
def is_plain(text: Text, i: int, n: int) -> bool:
    """Whether the n bytes at i are a whole number of at most 8 digits, as most numbers are."""
    if n < 1 or n > 8 or (other_bytes(word_at(text, i)) << u64((8 - n) * 8)) != NO_BITS:
        return False
    return n == 1 or byte_at(text, i) != ZERO


@inline
def has_leading_zero(text: Text, i: int) -> bool:
    """Whether the number at i, of digits and a point only, begins with a zero that JSON does not allow."""
    if byte_at(text, i) == MINUS:
        i += 1
    return byte_at(text, i) == ZERO and ZERO <= byte_at(text, i + 1) <= NINE


@inline
def after_digits(text: Text, i: int, stop: int) -> int:
    """The first byte of text[i : stop] that is no digit."""
    while i < stop and ZERO <= byte_at(text, i) <= NINE:
        i += 1
    return i


@outline
def is_scalar(text: Text, i: int, stop: int) -> bool:
    """Whether text[i : stop] is a number or a literal."""
    n = stop - i
    word = word_at(text, i)
    low = word & u64(0xFFFFFFFF)
    if n == 4 and (low in (_TRUE, _NULL)):
        return True
    if n == 5 and low == _FALS and byte_at(text, i + 4) == LETTER_E:
        return True
    if (n == 8 and word == _INFINITY) or (n == 3 and (word & u64(0xFFFFFF)) == _NAN):
        return True
    if n == 9 and byte_at(text, i) == MINUS and word_at(text, i + 1) == _INFINITY:
        return True
    if byte_at(text, i) == MINUS:
        i += 1
    first = i
    i = after_digits(text, i, stop)
    if i == first or (byte_at(text, first) == ZERO and i > first + 1):
        return False
    if i < stop and byte_at(text, i) == DOT:
        first = i + 1
        i = after_digits(text, first, stop)
        if i == first:
            return False
    if i < stop and (byte_at(text, i) | 0x20) == LETTER_E:
        i += 1
        if i < stop and (byte_at(text, i) == PLUS or byte_at(text, i) == MINUS):
            i += 1
        first = i
        i = after_digits(text, i, stop)
        if i == first:
            return False
    return i == stop


@outline
def is_nested(text: Text, i: int, stop: int) -> bool:
    """Whether text[i : stop] is an array or object."""
    objects = NO_BITS  # a bit for each open bracket, the innermost lowest: whether it is a brace
    depth = 0
    expects = _VALUE
    while i < stop:
        i = skip_space(text, i)
        c = byte_at(text, i)
        if i >= stop:
            break
        if c in (CLOSE_BRACKET, CLOSE_BRACE):
            of_object = objects & u64(1) != NO_BITS
            if of_object != (c == CLOSE_BRACE):
                return False
            if expects != _COMMA_OR_END and expects != (_KEY_OR_END if of_object else _VALUE_OR_END):
                return False
            depth -= 1
            objects >>= u64(1)
            i += 1
            if depth == 0:
                return i == stop
            expects = _COMMA_OR_END
            continue
        if expects == _COMMA_OR_END:
            if c != COMMA:
                return False
            expects = _KEY if objects & u64(1) != NO_BITS else _VALUE
            i += 1
            continue
        if expects in (_KEY, _KEY_OR_END):
            if c != QUOTE:
                return False
            i = skip_space(text, string_end(text, i + 1, stop) + 1)
            if i >= stop or byte_at(text, i) != COLON:
                return False
            i += 1
            expects = _VALUE
            continue
        if c in (OPEN_BRACKET, OPEN_BRACE):
            depth += 1
            if depth >= _DEEPEST:
                return True
            objects = (objects << u64(1)) | u64(c == OPEN_BRACE)
            expects = _KEY_OR_END if c == OPEN_BRACE else _VALUE_OR_END
            i += 1
            continue
        if c == QUOTE:
            i = string_end(text, i + 1, stop) + 1
        else:
            start = i
            i = scalar_end(text, i)
            if not is_plain(text, start, i - start) and not is_scalar(text, start, i):
                return False
        expects = _COMMA_OR_END
    return False
