"""Whether a file is Perfetto's is told by its first packet, whole or cut."""

import pytest

from hta_widgets.trace.reader.perfetto.head import is_perfetto

TIME = b"\x40\x07"  # field 8, a number
LONG = TIME * 100  # whose length takes two bytes


def packet(content: bytes) -> bytes:
    length = len(content)
    return b"\x0a" + (bytes([length]) if length < 128 else bytes([length & 127 | 128, length >> 7])) + content


@pytest.mark.parametrize(
    ("head", "told"),
    [
        (packet(TIME), True),
        (packet(TIME) + b"\x0a", True),
        (packet(TIME) + b"\x0b", False),
        (packet(LONG) + packet(TIME), True),
        (packet(LONG) + b"\x0b", False),
        (packet(LONG)[:100], True),
        (packet(LONG)[:101], True),
        (packet(b"\x42\x01a"), False),  # field 8, no number
        (packet(b"\x82\x80\x02\x00"), True),  # field 4096
        (packet(b"\x8a\x80\x02\x00"), False),
        (packet(b""), False),
        (b"\x0a", False),
        (b"", False),
        (b"\x0a\xff\xff\xff\xff\xff\x01", False),
        (b'{"traceEvents": []}', False),
    ],
)
def test_a_packet_of_known_fields(head: bytes, told: bool) -> None:
    assert is_perfetto(head) == told
