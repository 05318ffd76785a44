"""The packets of a Perfetto trace -> rows and cells, one pass over the bytes.

What a packet may at most add to a table is checked before it is read (`_has_room`), so that nothing fails
half-way; what is no message is dropped as a whole, since its frame says where the next packet begins.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hta_widgets.jit import inline, kernel
from hta_widgets.trace.reader.bytes import PADDING, Text, borrowed, byte_at
from hta_widgets.trace.reader.dictionary import BYTES as TEXT_BYTES
from hta_widgets.trace.reader.dictionary import COUNT, borrowed_entries
from hta_widgets.trace.reader.perfetto.clocks import boottime, read_clocks
from hta_widgets.trace.reader.perfetto.counters import read_counters
from hta_widgets.trace.reader.perfetto.descriptors import read_defaults, read_descriptor
from hta_widgets.trace.reader.perfetto.events import read_track_event
from hta_widgets.trace.reader.perfetto.ids import State, forget_ids, place_of_sequence
from hta_widgets.trace.reader.perfetto.interned import read_interned
from hta_widgets.trace.reader.perfetto.layout import (
    ALL,
    BROKEN,
    COMPRESSED,
    LAST_SEQUENCE,
    LAST_SLOT,
    MALFORMED,
    MALFORMED_AT,
    MOST_FIELDS,
    NO_ROOM,
    NOTES,
    PACKED_AT,
    PACKED_END,
    PACKETS,
    PLACES,
    ROWS,
    SEEN,
    TEXT_PER_BYTE,
    TEXT_ROOM,
    WANTED,
)
from hta_widgets.trace.reader.perfetto.stages import read_stage
from hta_widgets.trace.reader.perfetto.wire import BYTES, is_message, read_field, read_varint


@inline
def _has_room(state: State, n: int, counters: int) -> bool:
    """Whether whatever a packet of n bytes holds fits, `counters` of them those of a device."""
    entries = n + 512  # a text takes three bytes, and so does an id or a message
    texts = state.texts
    return (
        state.numbers[ROWS] + 1 + counters // 2 <= state.events.shape[0]
        and state.numbers[NOTES] + n // 2 + 2 <= state.notes.shape[0]
        and state.numbers[PLACES] + 8 <= state.places.shape[0]
        and 2 * n + 64 + PADDING <= state.scratch.size
        and 2 * (texts.used[COUNT] + entries + 1) <= texts.slot_code.size
        and texts.used[TEXT_BYTES] + TEXT_PER_BYTE * n + TEXT_ROOM + PADDING <= texts.text.size
    )


@inline
def _packet(state: State, text: Text, start: int, stop: int) -> int:
    """Read a packet (TracePacket): ALL, NO_ROOM, BROKEN if it is malformed, or COMPRESSED."""
    time = np.int64(0)
    clock = flags = sequence = np.int64(0)
    payload = first = last = 0
    interned_at = interned_to = defaults_at = defaults_to = 0
    i = start
    while i < stop:
        number, wire, value, begin, i = read_field(text, i, stop)
        if number < 0:
            return BROKEN
        if wire == BYTES:
            if number == 12:
                interned_at, interned_to = begin, i
            elif number == 59:
                defaults_at, defaults_to = begin, i
            elif number != 36:
                payload, first, last = number, begin, i
        elif number == 8:
            time = value
        elif number == 10:
            sequence = value
        elif number == 13:
            flags |= value
        elif number == 41:
            flags |= value & 1
        elif number == 58:
            clock = value
    if not _has_room(state, stop - start, last - first if payload == 52 else 0):
        state.numbers[WANTED] = stop - start
        return NO_ROOM
    state.numbers[PACKETS] += 1
    if payload < MOST_FIELDS:
        state.numbers[SEEN + payload] += 1
    slot = (
        state.numbers[LAST_SLOT]
        if sequence == state.numbers[LAST_SEQUENCE]
        else place_of_sequence(state, sequence)
    )
    if flags & 1:
        forget_ids(state, slot)
    if defaults_to > 0 and not read_defaults(state, text, defaults_at, defaults_to, slot):
        return BROKEN
    if interned_to > 0 and not read_interned(state, text, interned_at, interned_to, slot):
        return BROKEN
    good = True
    if payload == 11:
        good = read_track_event(state, text, first, last, slot, boottime(state, slot, clock, time))
    elif payload == 53:
        good = read_stage(state, text, first, last, slot, boottime(state, slot, clock, time))
    elif payload == 52:
        good = read_counters(state, text, first, last, slot, boottime(state, slot, clock, time))
    elif payload == 60:
        good = read_descriptor(state, text, first, last)
    elif payload == 6:
        good = read_clocks(state, text, first, last, slot)
    elif payload == 50:
        state.numbers[PACKED_AT], state.numbers[PACKED_END] = first, last
        return COMPRESSED
    return ALL if good else BROKEN


@kernel
def scan_packets(text: Text, i: Any, stop: int, offset: int, state: State) -> tuple[int, int]:
    """Read the packets of text[i : stop] into new rows: (cursor, status). text[0] lies at `offset`."""
    text = borrowed(text)
    state = State(
        borrowed_entries(state.texts),
        borrowed(state.marks),
        borrowed(state.events),
        borrowed(state.cells),
        borrowed(state.floats),
        borrowed(state.notes),
        borrowed(state.places),
        borrowed(state.numbers),
        borrowed(state.words),
        borrowed(state.scratch),
    )
    while i < stop:
        if byte_at(text, i) != 0x0A:
            # a field of Trace that is no packet
            number, _, _, _, after = read_field(text, i, stop)
            if number < 2:
                return i, BROKEN
            i = after
            continue
        length, begin = read_varint(text, i + 1, stop)
        if begin < 0 or length < 0:
            return i, ALL if begin < 0 and stop - i <= 11 else BROKEN
        if length > stop - begin:
            state.numbers[WANTED] = length
            return i, ALL
        after = begin + length
        status = _packet(state, text, begin, after)
        if status == NO_ROOM:
            return i, NO_ROOM
        i = after
        if status == COMPRESSED:
            return i, COMPRESSED
        if status == BROKEN:
            if state.numbers[MALFORMED] == 0:
                state.numbers[MALFORMED_AT] = offset + begin
            state.numbers[MALFORMED] += 1
    return i, ALL


@kernel
def next_packet(text: Text, i: Any, stop: int) -> int:
    """Where the next packets begin after damage: three in a row that are messages; -1 if nowhere."""
    while i < stop:
        at: Any = i
        good = 0
        while good < 3 and at < stop and byte_at(text, at) == 0x0A:
            length, begin = read_varint(text, at + 1, stop)
            if (
                begin < 0
                or length < 2
                or length > stop - begin
                or not is_message(text, begin, begin + length)
            ):
                break
            at = begin + length
            good += 1
        if good == 3 or (good > 0 and at == stop):
            return i
        i += 1
    return -1
