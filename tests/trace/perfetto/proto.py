"""The protobuf wire format, written by hand: the tests need no library for it."""

from __future__ import annotations

import struct


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def fixed64(field: int, value: int) -> bytes:
    return varint(field << 3 | 1) + struct.pack("<Q", value & (1 << 64) - 1)


def double(field: int, value: float) -> bytes:
    return varint(field << 3 | 1) + struct.pack("<d", value)


def data(field: int, value: bytes | str) -> bytes:
    raw = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(raw)) + raw


def packet(*parts: bytes) -> bytes:
    return data(1, b"".join(parts))
