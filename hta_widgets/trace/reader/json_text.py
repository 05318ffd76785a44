"""Where the pieces of JSON text end: white space, strings, nested values, scalars.

The cursor `i` is an index into a text that is filled with quotes past `end`, which stops every loop soon
after: a caller that finds i >= end knows that the text ran out.
"""

from __future__ import annotations

import numpy as np

from hta_widgets.jit import inline, outline
from hta_widgets.trace.reader.bytes import (
    Text,
    byte_at,
    count_bits,
    first_bit,
    mask_above,
    mask_equal,
    mask_folded,
    u64,
)

QUOTE, BACKSLASH, COMMA, COLON = ord('"'), ord("\\"), ord(","), ord(":")
OPEN_BRACKET, CLOSE_BRACKET, OPEN_BRACE, CLOSE_BRACE = ord("["), ord("]"), ord("{"), ord("}")
SPACE = ord(" ")
NO_BITS = u64(0)


@outline
def skip_long_space(text: Text, i: int) -> int:
    """`skip_space` over line breaks and indents."""
    while True:
        mask = mask_above(text, i, SPACE)
        if mask != NO_BITS:
            return i + first_bit(mask)
        i += 64


@inline
def skip_space(text: Text, i: int) -> int:
    """The next byte that is no white space (control characters count as white space)."""
    if byte_at(text, i) > SPACE:
        return i
    i += 1
    if byte_at(text, i) > SPACE:
        return i
    return skip_long_space(text, i)


@inline
def string_end(text: Text, i: int, end: int) -> int:
    """The closing quote of the string whose first character is at i; at least `end` where there is none."""
    while i < end:
        quotes = mask_equal(text, i, QUOTE)
        escapes = mask_equal(text, i, BACKSLASH)
        if escapes == NO_BITS:
            if quotes != NO_BITS:
                return i + first_bit(quotes)
            i += 64
        elif quotes != NO_BITS and first_bit(quotes) < first_bit(escapes):
            return i + first_bit(quotes)
        else:
            i += first_bit(escapes) + 2
    return i


@inline
def inside_strings(quotes: np.uint64, carry: np.uint64) -> np.uint64:
    """Bits from each opening quote to just before its closing quote: prefix parity of the quotes, flipped by
    `carry`.
    """
    quotes ^= quotes << u64(1)
    quotes ^= quotes << u64(2)
    quotes ^= quotes << u64(4)
    quotes ^= quotes << u64(8)
    quotes ^= quotes << u64(16)
    quotes ^= quotes << u64(32)
    return quotes ^ carry


@outline
def nested_end(text: Text, i: int, end: int) -> int:
    """Just past the bracket that closes the one at i; at least `end` where there is none."""
    depth = 0
    while i < end:
        # 64 bytes at once where they hold no escape; a string that is open at their end is finished apart
        if mask_equal(text, i, BACKSLASH) == NO_BITS:
            strings = inside_strings(mask_equal(text, i, QUOTE), NO_BITS)
            opening = mask_folded(text, i, OPEN_BRACE) & ~strings
            closing = mask_folded(text, i, CLOSE_BRACE) & ~strings
            while closing != NO_BITS:
                lowest = closing & (~closing + u64(1))
                before = lowest - u64(1)
                depth += count_bits(opening & before) - 1
                if depth <= 0:
                    return i + first_bit(lowest) + 1
                opening &= ~before
                closing &= closing - u64(1)
            depth += count_bits(opening)
            i += 64
            if strings >> u64(63) != NO_BITS:
                i = string_end(text, i, end) + 1
            continue
        stop = i + 64
        while i < stop and i < end:
            c = byte_at(text, i)
            if c == QUOTE:
                i = string_end(text, i + 1, end)
            elif c in (OPEN_BRACE, OPEN_BRACKET):
                depth += 1
            elif c in (CLOSE_BRACE, CLOSE_BRACKET):
                depth -= 1
                if depth <= 0:
                    return i + 1
            i += 1
    return i


@inline
def scalar_end(text: Text, i: int) -> int:
    """Just past a number or literal: the next comma, closing bracket, quote or white space."""
    while True:
        mask = mask_equal(text, i, COMMA) | mask_folded(text, i, CLOSE_BRACE)
        mask |= ~mask_above(text, i, SPACE) | mask_equal(text, i, QUOTE)
        if mask != NO_BITS:
            return i + first_bit(mask)
        i += 64
