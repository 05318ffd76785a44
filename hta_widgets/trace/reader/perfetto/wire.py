"""The protobuf wire format: numbers, and messages as fields, for kernels and (slowly) for Python.

Every length is checked against the message around it before anything is read or copied.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from hta_widgets.jit import inline, outline
from hta_widgets.trace.reader.bytes import Text, byte_at, first_bit, u64, word_at

VARINT: Final = 0
FIXED64: Final = 1
BYTES: Final = 2
FIXED32: Final = 5
LONGEST_VARINT: Final = 10
MALFORMED_FIELD: Final = -1


@inline
def read_varint(text: Text, i: int, end: int) -> tuple[Any, Any]:
    """(value, index after it) of the number at i; the index is -1 if it does not end before `end`."""
    if i < end and byte_at(text, i) < 0x80:  # most are of one byte
        return np.int64(byte_at(text, i)), i + 1
    return _long_varint(text, i, end)


@outline
def _long_varint(text: Text, i: int, end: int) -> tuple[Any, Any]:
    """The same: 8 bytes at once, each of which has 7 bits, then the rest."""
    if i >= end:
        return np.int64(0), -1
    word = word_at(text, i)
    stops = ~word & u64(0x8080808080808080)
    length = 8
    if stops != u64(0):
        length = first_bit(stops) // 8 + 1
        word &= u64(0xFFFFFFFFFFFFFFFF) >> u64(64 - 8 * length)
    word = (word & u64(0x007F007F007F007F)) | ((word & u64(0x7F007F007F007F00)) >> u64(1))
    word = (word & u64(0x00003FFF00003FFF)) | ((word & u64(0x3FFF00003FFF0000)) >> u64(2))
    value = (word & u64(0x000000000FFFFFFF)) | ((word & u64(0x0FFFFFFF00000000)) >> u64(4))
    i += length
    shift = 7 * length
    while stops == u64(0):
        if i >= end or shift >= 7 * LONGEST_VARINT:
            return np.int64(0), -1
        byte = byte_at(text, i)
        i += 1
        value |= u64(byte & 0x7F) << u64(shift)
        shift += 7
        if byte < 0x80:
            break
    return np.int64(value), i if i <= end else -1


@inline
def read_field(text: Text, i: int, end: int) -> tuple[Any, Any, Any, Any, Any]:
    """(number, wire type, value, start, index after it) of the field at i, in a message that ends at `end`.

    The bytes of a text or message are text[start : index after it], and `value` is their count. The number is
    `MALFORMED_FIELD` if it is no field.
    """
    tag, i = read_varint(text, i, end)
    if i < 0 or tag < 8:
        return MALFORMED_FIELD, 0, np.int64(0), 0, 0
    number, wire = np.int64(tag >> 3), np.int64(tag & 7)
    if wire == VARINT:
        value, i = read_varint(text, i, end)
        if i >= 0:
            return number, wire, value, i, i
    elif wire == BYTES:
        length, i = read_varint(text, i, end)
        if i >= 0 and 0 <= length <= end - i:
            return number, wire, length, i, i + length
    elif wire == FIXED64:
        if end - i >= 8:
            return number, wire, np.int64(word_at(text, i)), i, i + 8
    elif wire == FIXED32 and end - i >= 4:
        return number, wire, np.int64(word_at(text, i) & u64(0xFFFFFFFF)), i, i + 4
    return MALFORMED_FIELD, 0, np.int64(0), 0, 0


@outline
def is_message(text: Text, i: int, end: int) -> bool:
    """Whether text[i : end] is fields from its begin to its end."""
    while i < end:
        number, _, _, _, i = read_field(text, i, end)
        if number < 0:
            return False
    return True


def fields(data: bytes) -> Iterator[tuple[int, int, int | bytes]]:
    """(number, wire type, value) of each field of a message, for what is read once and not by kernels.

    Raises ValueError where it is none.
    """
    i, end = 0, len(data)
    while i < end:
        tag, i = _varint(data, i)
        number, wire = tag >> 3, tag & 7
        value: int | bytes
        if number == 0:
            raise ValueError("field 0")
        if wire == VARINT:
            value, i = _varint(data, i)
        elif wire == BYTES:
            length, i = _varint(data, i)
            value, i = data[i : i + length], i + length
        elif wire in (FIXED64, FIXED32):
            width = 8 if wire == FIXED64 else 4
            value, i = int.from_bytes(data[i : i + width], "little"), i + width
        else:
            raise ValueError(f"wire type {wire}")
        if i > end:
            raise ValueError("it is cut")
        yield number, wire, value


def signed(value: int) -> int:
    """A number of 64 bits as int64."""
    return value - (1 << 64) if value >= 1 << 63 else value


def double(value: int) -> float:
    """The float64 whose bits a number is."""
    return float(struct.unpack("<d", value.to_bytes(8, "little"))[0])


def _varint(data: bytes, i: int) -> tuple[int, int]:
    if i < len(data) and data[i] < 0x80:  # most are of one byte
        return data[i], i + 1
    value = 0
    for shift in range(0, 7 * LONGEST_VARINT, 7):
        if i >= len(data):
            raise ValueError("it is cut")
        value |= (data[i] & 0x7F) << shift
        i += 1
        if data[i - 1] < 0x80:
            return value & ((1 << 64) - 1), i
    raise ValueError("a number is too long")
