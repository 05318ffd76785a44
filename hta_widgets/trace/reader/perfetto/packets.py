"""The packets of a Perfetto trace -> rows and cells, one pass over the bytes.

From small to large: an id, an argument, an event, a packet, a block. What a packet may at most add to a table
is checked before it is read (`_has_room`), so that nothing fails half-way; what is no message is dropped as a
whole, since its frame says where the next packet begins.

Names, categories and keys have ids that a sequence of packets gives them, anew whenever it clears its state:
`ids` finds what an id means in a *generation* of a sequence.  Arguments that are no numbers or texts are
stored as messages, with their generation, and decoded once per distinct one (`annotations`).
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from hta_widgets.jit import inline, kernel, outline
from hta_widgets.trace.reader.bytes import PADDING, Text, borrowed, byte_at, u64
from hta_widgets.trace.reader.dictionary import BYTES as TEXT_BYTES
from hta_widgets.trace.reader.dictionary import COUNT, Entries, borrowed_entries, intern
from hta_widgets.trace.reader.event_scan import FLOAT, INT, JSON, TEXT
from hta_widgets.trace.reader.numbers import read_decimal, read_int
from hta_widgets.trace.reader.perfetto.wire import BYTES, VARINT, is_message, read_field, read_varint

Number = Any
"""A number of 64 bits: kernels turn a plain int into one."""

Int64 = npt.NDArray[np.int64]

# status of a scan
ALL: Final = 0  # every packet that ends before the stop was read
NO_ROOM: Final = 1  # flush the rows, make room for a packet of totals[WANTED] bytes, go on
BROKEN: Final = 2  # no packet begins at the cursor
COMPRESSED: Final = 3  # the packet before the cursor holds packets, packed at totals[PACKED_AT : PACKED_END]

# kinds of rows
BEGIN, END, INSTANT, COUNTER, STAGE, STAGE_COUNTER, COMPLETE = range(1, 8)
# columns of `events`; LANE: the name of a stage's queue, or whether a counter's value is a float
KIND, TIME, DURATION, TRACK, NAME, CATEGORY, LANE, METADATA, EVENT_COLUMNS = range(9)
NONE: Final = -1

# columns of `places`, of which each is a sequence or a track, as FLAGS says
GENERATION, DEFAULT_TRACK, DEFAULT_CLOCK, OWN_CLOCK, OWN_UNIT, OWN_OFFSET, OWN_LAST = 0, 2, 3, 4, 5, 6, 7
PARENT, FLAGS, PID, TID, TRACK_NAME, PROCESS_NAME, THREAD_NAME, LABELS, PROCESS_SORT, THREAD_SORT = range(10)
PLACE_COLUMNS: Final = 10  # the names are codes
DESCRIBED, IS_PROCESS, IS_THREAD, IS_COUNTER, IS_SEQUENCE = 1, 2, 4, 8, 16

# what ids are of
A_SEQUENCE, A_TRACK, AN_EVENT, A_CATEGORY, A_KEY, A_STRING, A_STAGE, A_KERNEL, AN_ARGUMENT = range(9)
A_COUNTER, A_COUNTER_DEVICE = 9, 10

# `numbers`: single ones, then SEEN, CLOCK_OFFSET ..., and for each sparse column its cells and its kind
(ROWS, NOTES, WANTED, MALFORMED, MALFORMED_AT, GENERATIONS, PLACES, UNRESOLVED, UNKNOWN_CLOCK, ANCHOR,
 REALTIME, HAS_ANCHOR, LAST_SEQUENCE, LAST_SLOT, PACKED_AT, PACKED_END, PACKETS, COLUMNS, GRID, BLOCK, SHARED,
 DEVICE) = range(22)  # fmt: skip
SEEN: Final = 32  # [field of a packet] -> packets
MOST_FIELDS: Final = 256  # of packets, whose payloads are counted
CLOCKS: Final = 64
CLOCK_OFFSET: Final = SEEN + MOST_FIELDS  # [clock] -> what to add to get BOOTTIME
CLOCK_KNOWN: Final = CLOCK_OFFSET + CLOCKS
COUNTS: Final = CLOCK_KNOWN + CLOCKS

# columns of `marks`, of each text
MEANING, ACTION = 0, 1
# columns of `notes`: a flow has the row, its id and whether it ends there; a deferred value the row, its
# column and the code of a message, or -2 - that of a text
NOTE, NOTE_ROW, NOTE_ID, NOTE_VALUE = range(4)
A_FLOW, A_DEFERRED = 0, 1

SKIP, IS_METADATA = -1, -3
BOOTTIME, REALTIME_CLOCK, FIRST_OWN_CLOCK = 6, 1, 64
METADATA_CODES: Final = 2  # the first names are those of instants about the whole trace

# the most bytes of texts that a packet adds: texts, messages twice, and ids
TEXT_PER_BYTE: Final = 16
TEXT_ROOM: Final = 4096

# what an argument holds
NOTHING, A_NUMBER, A_DOUBLE, A_TEXT, A_TEXT_ID, A_MESSAGE = range(6)


class State(NamedTuple):
    """What was read, and what it refers to: few arrays, since a function takes each of them apart.

    `texts` holds all that is equal or not: texts, ids (what they are of, their generation and number, 8 bytes
    each) and messages (with the 8 bytes of their generation). It does not matter where two coincide.
    """

    texts: Entries
    marks: Int64  # [text] -> what it means as an id, what to do with it as a key
    events: Int64
    cells: Int64  # [sparse column, cell] -> row, and value: of texts the code, of messages -2 - the code
    floats: npt.NDArray[np.float64]  # the same memory
    notes: Int64
    places: Int64
    numbers: Int64
    words: Int64  # scratch memory
    scratch: Text  # the same


@outline
def _id(state: State, what: Number, generation: Number, number: Number) -> int:
    """The place of an id in `marks`."""
    state.words[0] = what
    state.words[1] = generation
    state.words[2] = number
    return intern(state.texts, state.scratch, 0, 24)


@outline
def _text(state: State, text: Text, start: int, stop: int) -> int:
    """Code of a text."""
    return intern(state.texts, text, start, stop - start)


@inline
def _kind(state: State, j: int) -> int:
    """What a sparse column holds: INT, FLOAT, TEXT or JSON."""
    return state.numbers[COUNTS + state.numbers[COLUMNS] + j]  # type: ignore[no-any-return]


@outline
def _define(state: State, what: Number, generation: Number, number: Number, meaning: Number) -> None:
    state.marks[_id(state, what, generation, number), MEANING] = meaning


@outline
def _meaning(state: State, what: Number, generation: Number, number: Number) -> int:
    meaning = state.marks[_id(state, what, generation, number), MEANING]
    if meaning == NONE:
        state.numbers[UNRESOLVED] += 1
    return meaning  # type: ignore[no-any-return]


@outline
def _sequence(state: State, number: Number) -> int:
    """The place of a sequence, new where it was not seen before."""
    place = _id(state, A_SEQUENCE, 0, number)
    slot = state.marks[place, MEANING]
    if slot == NONE:
        slot = state.numbers[PLACES]
        state.numbers[PLACES] += 1
        state.marks[place, MEANING] = slot
        state.places[slot, FLAGS] = IS_SEQUENCE
        state.places[slot, OWN_CLOCK] = NONE
        _clear(state, slot)
    state.numbers[LAST_SEQUENCE] = number
    state.numbers[LAST_SLOT] = slot
    return slot  # type: ignore[no-any-return]


@outline
def _clear(state: State, slot: int) -> None:
    """Begin a generation: ids mean nothing any more."""
    state.numbers[GENERATIONS] += 1
    state.places[slot, GENERATION] = state.numbers[GENERATIONS]
    state.places[slot, DEFAULT_TRACK] = 0
    state.places[slot, DEFAULT_CLOCK] = 0


@outline
def _track(state: State, uuid: Number) -> int:
    """The place of a track, new where it was not seen before."""
    place = _id(state, A_TRACK, 0, uuid)
    track = state.marks[place, MEANING]
    if track == NONE:
        track = state.numbers[PLACES]
        state.numbers[PLACES] += 1
        state.marks[place, MEANING] = track
        for column in range(PLACE_COLUMNS):
            state.places[track, column] = NONE
        state.places[track, FLAGS] = 0
        state.places[track, TID] = uuid
        state.places[track, PROCESS_SORT] = state.places[track, THREAD_SORT] = -(1 << 63)
    return track  # type: ignore[no-any-return]


# ---- arguments


@inline
def _cell(state: State, j: int, row: int) -> int:
    """Where to write column j of `row`: of an argument given twice, the last counts."""
    cell = state.numbers[COUNTS + j]
    if cell > 0 and state.cells[j, cell - 1, 0] == row:
        return cell - 1  # type: ignore[no-any-return]
    state.cells[j, cell, 0] = row
    state.numbers[COUNTS + j] = cell + 1
    return cell  # type: ignore[no-any-return]


@outline
def _put(state: State, j: int, row: int, value: Number) -> None:
    """Write column j of `row`."""
    state.cells[j, _cell(state, j, row), 1] = value


@outline
def _put_float(state: State, j: int, row: int, value: float) -> None:
    state.floats[j, _cell(state, j, row), 1] = value


@outline
def _note(state: State, note: Number, row: int, number: Number, value: Number) -> None:
    cell = state.numbers[NOTES]
    state.notes[cell, NOTE] = note
    state.notes[cell, NOTE_ROW] = row
    state.notes[cell, NOTE_ID] = number
    state.notes[cell, NOTE_VALUE] = value
    state.numbers[NOTES] = cell + 1


@outline
def _closed(state: State, n: int, generation: Number) -> int:
    """Code of the message of n bytes that lies in scratch memory, and its generation."""
    for k in range(8):
        state.scratch[n + k] = (generation >> (8 * k)) & 0xFF
    return intern(state.texts, state.scratch, 0, n + 8)


@outline
def _message(state: State, text: Text, start: int, stop: int, generation: Number) -> int:
    """Code of a message and its generation."""
    for k in range(stop - start):
        state.scratch[k] = text[start + k]
    return _closed(state, stop - start, generation)


@outline
def _is_null(text: Text, start: int, stop: int) -> bool:
    """Whether a text is what PyTorch writes for null."""
    return (
        stop - start == 4
        and byte_at(text, start) == 110
        and byte_at(text, start + 1) == 117
        and byte_at(text, start + 2) == 108
        and byte_at(text, start + 3) == 108
    )


@outline
def _store_text(state: State, text: Text, start: int, stop: int, j: int, row: int) -> None:
    """Put a text into sparse column j, as a number where that is one of numbers."""
    n = stop - start
    kind = _kind(state, j)
    if kind == INT:
        value, ok = read_int(text, start, n)
        if ok:
            _put(state, j, row, value)
            return
    elif kind == FLOAT:
        number, ok = read_decimal(text, start, n)
        if ok:
            _put_float(state, j, row, number)
            return
    else:
        _put(state, j, row, _text(state, text, start, stop))
        return
    if n > 0:
        _note(state, A_DEFERRED, row, j, -2 - _text(state, text, start, stop))


@outline
def _store_number(state: State, value: Number, j: int, row: int) -> None:
    """Put a number into sparse column j, one of numbers."""
    if _kind(state, j) == INT:
        _put(state, j, row, value)
    else:
        _put_float(state, j, row, np.float64(value))


@inline
def _annotation(state: State, text: Text, start: int, stop: int, generation: Number, row: int) -> bool:
    """Read an argument of an event (DebugAnnotation)."""
    key = NONE
    holds = NOTHING
    value = np.int64(0)
    first = last = 0
    i = start
    while i < stop:
        number, wire, read, begin, i = read_field(text, i, stop)
        if number < 0:
            return False
        if wire == BYTES:
            if number == 10:
                key = _text(state, text, begin, i)
            elif number == 6:
                holds, first, last = A_TEXT, begin, i
            elif number in (8, 9, 11, 12):
                holds = A_MESSAGE
        elif number == 1:
            key = _meaning(state, A_KEY, generation, read)
        elif number in (2, 3, 4, 7):
            holds, value = A_NUMBER, read
        elif number == 5:
            holds, value = A_DOUBLE, read
        elif number == 17:
            holds, value = A_TEXT_ID, read
    j = state.marks[key, ACTION] if key >= 0 else SKIP
    if j < 0:
        if j == IS_METADATA and holds == A_TEXT:
            state.events[row, METADATA] = _text(state, text, first, last)
        return True
    kind = _kind(state, j)
    if holds == A_TEXT and kind != JSON:
        if not _is_null(text, first, last):
            _store_text(state, text, first, last, j, row)
        return True
    if kind <= FLOAT:
        if holds == A_NUMBER:
            _store_number(state, value, j, row)
        elif holds == A_DOUBLE and kind == FLOAT:
            _put(state, j, row, value)
        else:
            _note(state, A_DEFERRED, row, j, _message(state, text, start, stop, generation))
        return True
    if kind == TEXT and holds == A_TEXT_ID:
        code = _meaning(state, A_STRING, generation, value)
        if code >= 0:
            _put(state, j, row, code)
        return True
    if holds == A_TEXT and _is_null(text, first, last):
        return True
    _put(state, j, row, -2 - _message(state, text, start, stop, generation))
    return True


# ---- events


@inline
def _new_row(state: State, kind: int, time: Number) -> int:
    row = state.numbers[ROWS]
    state.numbers[ROWS] = row + 1
    for column in range(EVENT_COLUMNS):
        state.events[row, column] = NONE
    state.events[row, KIND] = kind
    state.events[row, TIME] = time
    return row  # type: ignore[no-any-return]


@outline
def _drop_row(state: State, row: int) -> None:
    """Forget a row, the last one, and its cells."""
    for j in range(state.numbers[COLUMNS]):
        cell = state.numbers[COUNTS + j]
        if cell > 0 and state.cells[j, cell - 1, 0] == row:
            state.numbers[COUNTS + j] = cell - 1
    while state.numbers[NOTES] > 0 and state.notes[state.numbers[NOTES] - 1, NOTE_ROW] == row:
        state.numbers[NOTES] -= 1
    state.numbers[ROWS] = row


@outline
def _flows(
    state: State,
    text: Text,
    start: int,
    stop: int,
    wire: int,
    value: Number,
    fixed: bool,
    row: int,
    ends: Number,
) -> bool:
    """Note the flows of a field: one, or several packed."""
    if wire != BYTES:
        _note(state, A_FLOW, row, value, ends)
        return True
    i = start
    while i < stop:
        if fixed:
            if stop - i < 8:
                return False
            number = np.int64(0)
            for k in range(8):
                number |= np.int64(byte_at(text, i + k)) << np.int64(8 * k)
            i += 8
        else:
            number, i = read_varint(text, i, stop)
            if i < 0:
                return False
        _note(state, A_FLOW, row, number, ends)
    return True


@outline
def _legacy(state: State, text: Text, start: int, stop: int, generation: Number, row: int) -> bool:
    """The phase of Chrome's own format, where the event has no type (LegacyEvent)."""
    i = start
    while i < stop:
        number, _, value, _, i = read_field(text, i, stop)
        if number < 0:
            return False
        if number == 1:
            state.events[row, NAME] = _meaning(state, AN_EVENT, generation, value)
        elif number == 3:
            state.events[row, DURATION] = 1000 * value
        elif number == 2 and state.events[row, KIND] == 0:
            if value == 88:
                state.events[row, KIND] = COMPLETE
            elif value == 66:
                state.events[row, KIND] = BEGIN
            elif value == 69:
                state.events[row, KIND] = END
            elif value in (73, 105, 110):
                state.events[row, KIND] = INSTANT
    return True


@inline
def _track_event(state: State, text: Text, start: int, stop: int, slot: int, time: Number) -> bool:
    row = _new_row(state, 0, time)
    generation = state.places[slot, GENERATION]
    uuid = state.places[slot, DEFAULT_TRACK]
    i = start
    while i < stop:
        number, wire, value, begin, i = read_field(text, i, stop)
        good = number >= 0
        if wire == BYTES:
            if number == 4:
                good = _annotation(state, text, begin, i, generation, row)
            elif number == 23:
                state.events[row, NAME] = _text(state, text, begin, i)
            elif number == 22:
                if state.events[row, CATEGORY] < 0:
                    state.events[row, CATEGORY] = _text(state, text, begin, i)
            elif number == 3:
                value, after = read_varint(text, begin, i)
                if after >= 0 and state.events[row, CATEGORY] < 0:
                    state.events[row, CATEGORY] = _meaning(state, A_CATEGORY, generation, value)
            elif number == 6:
                good = _legacy(state, text, begin, i, generation, row)
            elif number in (36, 42, 47, 48):
                ends = 1 if number in (42, 48) else 0
                good = _flows(state, text, begin, i, wire, value, number > 42, row, ends)
        elif number == 9:
            if 0 <= value <= COUNTER:
                state.events[row, KIND] = value
        elif number == 11:
            uuid = value
        elif number == 10:
            state.events[row, NAME] = _meaning(state, AN_EVENT, generation, value)
        elif number == 3:
            if state.events[row, CATEGORY] < 0:
                state.events[row, CATEGORY] = _meaning(state, A_CATEGORY, generation, value)
        elif number == 30 or number == 44:
            state.events[row, DURATION] = value
            state.events[row, LANE] = 1 if number == 44 else 0
        elif number in (36, 42, 47, 48):
            _note(state, A_FLOW, row, value, 1 if number in (42, 48) else 0)
        if not good:
            _drop_row(state, row)
            return False
    if state.events[row, KIND] == 0:
        _drop_row(state, row)
        return True
    if state.events[row, KIND] == INSTANT and 0 <= state.events[row, NAME] < METADATA_CODES:
        state.events[row, METADATA] = -2 - _message(state, text, start, stop, generation)
    state.events[row, TRACK] = _track(state, uuid)
    return True


# ---- work of devices


@outline
def _dimensions(
    state: State, text: Text, start: int, stop: int, column: int, generation: Number, row: int
) -> bool:
    """The size of a launch, as the list that it is in JSON."""
    x = y = z = np.int64(1)
    i = start
    while i < stop:
        number, _, value, _, i = read_field(text, i, stop)
        if number < 0:
            return False
        if number == 1:
            x = value
        elif number == 2:
            y = value
        elif number == 3:
            z = value
    n = 0
    for value in (x, y, z):  # an array of three numbers, as a message
        head = n
        state.scratch[n] = 0x62
        state.scratch[n + 2] = 0x20
        n += 3
        rest = u64(value)
        while rest >= u64(0x80):
            state.scratch[n] = np.uint8((rest & u64(0x7F)) | u64(0x80))
            rest >>= u64(7)
            n += 1
        state.scratch[n] = np.uint8(rest)
        n += 1
        state.scratch[head + 1] = n - head - 2
    _put(state, state.numbers[column], row, -2 - _closed(state, n, generation))
    return True


@outline
def _launch_argument(state: State, text: Text, start: int, stop: int, generation: Number, row: int) -> bool:
    """A named number of a launch (ExtraComputeArg). Shared memory is the sum of its parts."""
    key = NONE
    value = np.int64(0)
    i = start
    while i < stop:
        number, wire, read, begin, i = read_field(text, i, stop)
        if number < 0:
            return False
        if number == 1 and wire == VARINT:
            key = _meaning(state, AN_ARGUMENT, generation, read)
        elif number == 2 and wire == BYTES:
            key = _text(state, text, begin, i)
        elif number in (3, 4):
            value = read
    j = state.marks[key, ACTION] if key >= 0 else SKIP
    if j < 0 or _kind(state, j) > FLOAT:
        return True
    if j == state.numbers[SHARED]:
        cell = state.numbers[COUNTS + j]
        if cell > 0 and state.cells[j, cell - 1, 0] == row:
            value += state.cells[j, cell - 1, 1]
    _store_number(state, value, j, row)
    return True


@outline
def _launch(state: State, text: Text, start: int, stop: int, generation: Number, row: int) -> bool:
    i = start
    while i < stop:
        number, wire, _, begin, i = read_field(text, i, stop)
        good = number >= 0
        if wire == BYTES:
            if number == 1:
                good = _dimensions(state, text, begin, i, GRID, generation, row)
            elif number == 2:
                good = _dimensions(state, text, begin, i, BLOCK, generation, row)
            elif number == 3:
                good = _launch_argument(state, text, begin, i, generation, row)
        if not good:
            return False
    return True


@outline
def _extra(state: State, text: Text, start: int, stop: int, generation: Number, row: int) -> bool:
    """A named text of a stage (ExtraData); JSON's lists and objects among them are texts, too."""
    key = NONE
    first = last = 0
    i = start
    while i < stop:
        number, wire, _, begin, i = read_field(text, i, stop)
        if number < 0:
            return False
        if wire == BYTES and number == 1:
            key = _text(state, text, begin, i)
        elif wire == BYTES and number == 2:
            first, last = begin, i
    j = state.marks[key, ACTION] if key >= 0 else SKIP
    if j < 0 or _is_null(text, first, last):
        return True
    if _kind(state, j) != JSON:
        _store_text(state, text, first, last, j, row)
        return True
    # as legacy_json_value: what is no JSON counts as text
    n = last - first
    state.scratch[0] = 0x4A
    k = 1
    rest = n
    while rest >= 0x80:
        state.scratch[k] = (rest & 0x7F) | 0x80
        rest >>= 7
        k += 1
    state.scratch[k] = rest
    k += 1
    for at in range(n):
        state.scratch[k + at] = text[first + at]
    _put(state, j, row, -2 - _closed(state, n + k, generation))
    return True


@outline
def _stage(state: State, text: Text, start: int, stop: int, slot: int, time: Number) -> bool:
    """Work of a device on a queue (GpuRenderStageEvent)."""
    row = _new_row(state, STAGE, time)
    generation = state.places[slot, GENERATION]
    state.events[row, DURATION] = state.events[row, TRACK] = 0
    kernel_name = NONE
    i = start
    while i < stop:
        number, wire, value, begin, i = read_field(text, i, stop)
        good = number >= 0
        if wire == BYTES:
            if number == 6:
                good = _extra(state, text, begin, i, generation, row)
            elif number == 17:
                state.events[row, NAME] = _text(state, text, begin, i)
            elif number == 21:
                good = _launch(state, text, begin, i, generation, row)
        elif number == 2:
            state.events[row, DURATION] = value
        elif number == 11:
            state.events[row, TRACK] = value
        elif number == 13:
            state.events[row, LANE] = _meaning(state, A_STAGE, generation, value)
        elif number == 14:
            state.events[row, CATEGORY] = _meaning(state, A_STAGE, generation, value)
        elif number == 19:
            kernel_name = _meaning(state, A_KERNEL, generation, value)
        elif number == 20:
            state.events[row, NAME] = _meaning(state, AN_EVENT, generation, value)
        if not good:
            _drop_row(state, row)
            return False
    if state.events[row, NAME] < 0:
        state.events[row, NAME] = kernel_name if kernel_name >= 0 else state.events[row, CATEGORY]
    j = state.numbers[DEVICE]
    cell = state.numbers[COUNTS + j]
    if cell == 0 or state.cells[j, cell - 1, 0] != row:
        _put(state, j, row, state.events[row, TRACK])
    return True


@outline
def _counter_specs(
    state: State, text: Text, start: int, stop: int, generation: Number, descriptor: Number
) -> bool:
    """Names of counters (GpuCounterDescriptor)."""
    i = start
    while i < stop:
        number, wire, _, begin, i = read_field(text, i, stop)
        if number < 0:
            return False
        if number == 1 and wire == BYTES:
            counter, name = np.int64(0), NONE
            k, end = begin, i
            while k < end:
                inner, inner_wire, value, first, k = read_field(text, k, end)
                if inner < 0:
                    return False
                if inner == 1 and inner_wire == VARINT:
                    counter = value
                elif inner == 2 and inner_wire == BYTES:
                    name = _text(state, text, first, k)
            _define(state, A_COUNTER, generation, (descriptor << 32) | (counter & 0xFFFFFFFF), name)
    return True


@outline
def _counters(state: State, text: Text, start: int, stop: int, slot: int, time: Number) -> bool:
    """Values of a device's counters (GpuCounterEvent)."""
    generation = state.places[slot, GENERATION]
    descriptor: Number = np.int64(0)
    device: Number = NONE
    i = start
    while i < stop:
        number, wire, value, begin, i = read_field(text, i, stop)
        if number < 0:
            return False
        if number == 1 and wire == BYTES:
            if not _counter_specs(state, text, begin, i, generation, 0):
                return False
        elif number == 4 and wire == VARINT:
            descriptor = value & 0x7FFFFFFF
        elif number == 3 and wire == VARINT:
            device = value
    if device == NONE:
        known = state.marks[_id(state, A_COUNTER_DEVICE, generation, descriptor), MEANING]
        device = known if known >= 0 else 0
    i = start
    while i < stop:
        number, wire, _, begin, i = read_field(text, i, stop)
        if number != 2 or wire != BYTES:
            continue
        row = _new_row(state, STAGE_COUNTER, time)
        state.events[row, TRACK] = device
        k = begin
        while k < i:
            inner, _, value, _, k = read_field(text, k, i)
            if inner < 0:
                _drop_row(state, row)
                return False
            if inner == 1:
                key = (descriptor << 32) | (value & 0xFFFFFFFF)
                state.events[row, NAME] = _meaning(state, A_COUNTER, generation, key)
            elif inner in (2, 3):
                state.events[row, DURATION] = value
                state.events[row, LANE] = inner - 2
    return True


# ---- what events refer to


@outline
def _interned_text(
    state: State, text: Text, start: int, stop: int, generation: Number, what: Number, field: int
) -> bool:
    """Give an id to the text in one of a message's fields."""
    number_of_id, name = np.int64(0), NONE
    i = start
    while i < stop:
        number, wire, value, begin, i = read_field(text, i, stop)
        if number < 0:
            return False
        if number == 1 and wire == VARINT:
            number_of_id = value
        elif wire == BYTES and (number == field or (what == A_KERNEL and number == 2 and name == NONE)):
            name = _text(state, text, begin, i)
    _define(state, what, generation, number_of_id, name)
    return True


@outline
def _interned_counters(state: State, text: Text, start: int, stop: int, generation: Number) -> bool:
    descriptor, device, first, last = np.int64(0), np.int64(0), 0, 0
    i = start
    while i < stop:
        number, wire, value, begin, i = read_field(text, i, stop)
        if number < 0:
            return False
        if number == 1 and wire == VARINT:
            descriptor = value & 0x7FFFFFFF
        elif number == 3 and wire == VARINT:
            device = value
        elif number == 2 and wire == BYTES:
            first, last = begin, i
    _define(state, A_COUNTER_DEVICE, generation, descriptor, device)
    return _counter_specs(state, text, first, last, generation, descriptor)


@outline
def _interned(state: State, text: Text, start: int, stop: int, slot: int) -> bool:
    """Take in the ids of a packet (InternedData)."""
    generation = state.places[slot, GENERATION]
    i = start
    while i < stop:
        number, wire, _, begin, i = read_field(text, i, stop)
        good = number >= 0
        if wire == BYTES:
            if number == 1:
                good = _interned_text(state, text, begin, i, generation, A_CATEGORY, 2)
            elif number == 2:
                good = _interned_text(state, text, begin, i, generation, AN_EVENT, 2)
            elif number == 3:
                good = _interned_text(state, text, begin, i, generation, A_KEY, 2)
            elif number == 29:
                good = _interned_text(state, text, begin, i, generation, A_STRING, 2)
            elif number == 24:
                good = _interned_text(state, text, begin, i, generation, A_STAGE, 2)
            elif number == 1000:
                good = _interned_text(state, text, begin, i, generation, A_KERNEL, 3)
            elif number == 1001:
                good = _interned_text(state, text, begin, i, generation, AN_ARGUMENT, 2)
            elif number == 47:
                good = _interned_counters(state, text, begin, i, generation)
        if not good:
            return False
    return True


@outline
def _descriptor(state: State, text: Text, start: int, stop: int) -> bool:
    """What a track is of (TrackDescriptor)."""
    uuid, parent = np.int64(0), np.int64(0)
    i = start
    while i < stop:
        number, _, value, _, i = read_field(text, i, stop)
        if number < 0:
            return False
        if number == 1:
            uuid = value
        elif number == 5:
            parent = value
    track = _track(state, uuid)
    state.places[track, FLAGS] |= DESCRIBED
    if parent != 0 and parent != uuid:
        state.places[track, PARENT] = _track(state, parent)
    i = start
    while i < stop:
        number, wire, _, begin, i = read_field(text, i, stop)
        if wire != BYTES:
            continue
        if number in (2, 10, 13):
            state.places[track, TRACK_NAME] = _text(state, text, begin, i)
        elif number == 8:
            state.places[track, FLAGS] |= IS_COUNTER
        elif number == 3 or number == 4:
            of_process = number == 3
            state.places[track, FLAGS] |= IS_PROCESS if of_process else IS_THREAD
            k, end = begin, i
            while k < end:
                inner, inner_wire, value, first, k = read_field(text, k, end)
                if inner < 0:
                    return False
                if inner_wire == BYTES:
                    if of_process and inner == 6:
                        state.places[track, PROCESS_NAME] = _text(state, text, first, k)
                    elif of_process and inner == 8:
                        state.places[track, LABELS] = _text(state, text, first, k)
                    elif not of_process and inner == 5:
                        state.places[track, THREAD_NAME] = _text(state, text, first, k)
                elif inner == 1:
                    state.places[track, PID] = value
                elif inner == 2 and not of_process:
                    state.places[track, TID] = value
                elif inner == 3:
                    state.places[track, PROCESS_SORT if of_process else THREAD_SORT] = value
    return True


@outline
def _defaults(state: State, text: Text, start: int, stop: int, slot: int) -> bool:
    """What holds for the sequence's packets that do not say otherwise (TracePacketDefaults)."""
    i = start
    while i < stop:
        number, wire, value, begin, i = read_field(text, i, stop)
        if number < 0:
            return False
        if number == 58 and wire == VARINT:
            state.places[slot, DEFAULT_CLOCK] = value
        elif number == 11 and wire == BYTES:
            k, end = begin, i
            while k < end:
                inner, _, uuid, _, k = read_field(text, k, end)
                if inner < 0:
                    return False
                if inner == 11:
                    state.places[slot, DEFAULT_TRACK] = uuid
    return True


# ---- clocks


@outline
def _snapshot(state: State, text: Text, start: int, stop: int, slot: int) -> bool:
    """How far clocks are from BOOTTIME (ClockSnapshot); those from 64 on are the sequence's own."""
    boot, real = np.int64(0), np.int64(0)
    has_boot = has_real = False
    for turn in range(2):
        i = start
        while i < stop:
            number, wire, _, begin, i = read_field(text, i, stop)
            if number < 0:
                return False
            if number != 1 or wire != BYTES:
                continue
            clock, time, unit, counts_on = np.int64(0), np.int64(0), np.int64(1), False
            k, end = begin, i
            while k < end:
                inner, _, value, _, k = read_field(text, k, end)
                if inner < 0:
                    return False
                if inner == 1:
                    clock = value
                elif inner == 2:
                    time = value
                elif inner == 3:
                    counts_on = value != 0
                elif inner == 4 and value > 0:
                    unit = value
            if turn == 0:
                if clock == BOOTTIME:
                    boot, has_boot = time, True
                elif clock == REALTIME_CLOCK:
                    real, has_real = time, True
                elif not has_boot and 0 < clock < CLOCKS and state.numbers[CLOCK_KNOWN + clock] != 0:
                    boot = time + state.numbers[CLOCK_OFFSET + clock]
            elif 0 < clock < CLOCKS:
                if has_boot:
                    state.numbers[CLOCK_OFFSET + clock] = boot - time
                    state.numbers[CLOCK_KNOWN + clock] = 1
            elif clock >= FIRST_OWN_CLOCK:
                state.places[slot, OWN_CLOCK] = clock
                state.places[slot, OWN_UNIT] = unit
                state.places[slot, OWN_OFFSET] = boot - unit * time
                state.places[slot, OWN_LAST] = unit * time if counts_on else NONE
    if has_boot and has_real and state.numbers[HAS_ANCHOR] == 0:
        state.numbers[ANCHOR], state.numbers[REALTIME], state.numbers[HAS_ANCHOR] = boot, real, 1
    return True


@inline
def _boottime(state: State, slot: int, clock: Number, time: Number) -> Number:
    if clock == 0:
        clock = state.places[slot, DEFAULT_CLOCK]
    if clock == 0 or clock == BOOTTIME:
        return time
    if clock < CLOCKS:
        if clock > 0 and state.numbers[CLOCK_KNOWN + clock] != 0:
            return time + state.numbers[CLOCK_OFFSET + clock]
    elif state.places[slot, OWN_CLOCK] == clock:
        time *= state.places[slot, OWN_UNIT]
        if state.places[slot, OWN_LAST] != NONE:
            time += state.places[slot, OWN_LAST]
            state.places[slot, OWN_LAST] = time
        return time + state.places[slot, OWN_OFFSET]
    state.numbers[UNKNOWN_CLOCK] += 1
    return time


# ---- packets


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
        state.numbers[LAST_SLOT] if sequence == state.numbers[LAST_SEQUENCE] else _sequence(state, sequence)
    )
    if flags & 1:
        _clear(state, slot)
    if defaults_to > 0 and not _defaults(state, text, defaults_at, defaults_to, slot):
        return BROKEN
    if interned_to > 0 and not _interned(state, text, interned_at, interned_to, slot):
        return BROKEN
    good = True
    if payload == 11:
        good = _track_event(state, text, first, last, slot, _boottime(state, slot, clock, time))
    elif payload == 53:
        good = _stage(state, text, first, last, slot, _boottime(state, slot, clock, time))
    elif payload == 52:
        good = _counters(state, text, first, last, slot, _boottime(state, slot, clock, time))
    elif payload == 60:
        good = _descriptor(state, text, first, last)
    elif payload == 6:
        good = _snapshot(state, text, first, last, slot)
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
            return i  # type: ignore[no-any-return]
        i += 1
    return -1
