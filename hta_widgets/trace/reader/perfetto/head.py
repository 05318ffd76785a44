"""Whether a file is a Perfetto trace, by how it begins."""

from __future__ import annotations

from typing import Final

from hta_widgets.trace.reader.perfetto.wire import BYTES, VARINT, fields

_VARINTS: Final = frozenset({3, 8, 10, 13, 41, 42, 58, 79, 87, 98})
_PACKET: Final = 0x0A
_LARGEST_FIELD: Final = 1 << 12


def is_perfetto(head: bytes) -> bool:
    """Whether the first bytes are a packet whose fields are of the types of Perfetto's schema."""
    if head[:1] != bytes([_PACKET]):
        return False
    length = shift = 0
    for at in range(1, 6):
        if at >= len(head):
            return False
        length |= (head[at] & 0x7F) << shift
        shift += 7
        if head[at] < 0x80:
            break
    else:
        return False
    packet, after = head[at + 1 : at + 1 + length], head[at + 1 + length : at + 2 + length]
    if not packet or after not in (b"", bytes([_PACKET])):
        return False
    read = 0
    try:
        for number, wire, _ in fields(packet):
            if number > _LARGEST_FIELD or wire != (VARINT if number in _VARINTS else BYTES):
                return False
            read += 1
    except ValueError:
        return bool(read) and len(packet) < length  # the head ends before the packet does
    return bool(read)
