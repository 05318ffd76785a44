"""Arguments of an event (DebugAnnotation) -> cells of its row.

Those that are no numbers or texts are stored as messages, with their generation, and decoded once per
distinct one (`annotations`).
"""

from __future__ import annotations

import numpy as np

from hta_widgets.jit import inline, outline
from hta_widgets.trace.reader.bytes import Text, byte_at, same_bytes
from hta_widgets.trace.reader.event_scan import FLOAT, JSON, TEXT
from hta_widgets.trace.reader.perfetto.ids import State, meaning_of, text_code
from hta_widgets.trace.reader.perfetto.layout import (
    A_DEFERRED,
    A_DOUBLE,
    A_KEY,
    A_MESSAGE,
    A_NUMBER,
    A_STRING,
    A_TEXT,
    A_TEXT_ID,
    ACTION,
    FOLLOWING,
    IS_METADATA,
    LAST_KEY,
    METADATA,
    NONE,
    NOTHING,
    SKIP,
    Number,
)
from hta_widgets.trace.reader.perfetto.rows import (
    add_note,
    kind_of,
    message_code,
    put,
    store_number,
    store_text,
)
from hta_widgets.trace.reader.perfetto.wire import BYTES, read_field


@outline
def is_null(text: Text, start: int, stop: int) -> bool:
    """Whether a text is what PyTorch writes for null."""
    return (
        stop - start == 4
        and byte_at(text, start) == 110
        and byte_at(text, start + 1) == 117
        and byte_at(text, start + 2) == 108
        and byte_at(text, start + 3) == 108
    )


@inline
def _key(state: State, text: Text, start: int, stop: int) -> int:
    """Code of a key: mostly the one that followed the key before the last time."""
    before = state.numbers[LAST_KEY]
    key = state.marks[before, FOLLOWING]
    if (
        key == NONE
        or state.texts.length[key] != stop - start
        or not same_bytes(text, start, state.texts.text, state.texts.offset[key], stop - start)
    ):
        key = text_code(state, text, start, stop)
        state.marks[before, FOLLOWING] = key
    state.numbers[LAST_KEY] = key
    return key


@inline
def read_argument(state: State, text: Text, start: int, stop: int, generation: Number, row: int) -> bool:
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
                key = _key(state, text, begin, i)
            elif number == 6:
                holds, first, last = A_TEXT, begin, i
            elif number in (8, 9, 11, 12):
                holds = A_MESSAGE
        elif number == 1:
            key = meaning_of(state, A_KEY, generation, read)
        elif number in (2, 3, 4, 7):
            holds, value = A_NUMBER, read
        elif number == 5:
            holds, value = A_DOUBLE, read
        elif number == 17:
            holds, value = A_TEXT_ID, read
    j = state.marks[key, ACTION] if key >= 0 else SKIP
    if j < 0:
        if j == IS_METADATA and holds == A_TEXT:
            state.events[row, METADATA] = text_code(state, text, first, last)
        return True
    kind = kind_of(state, j)
    if holds == A_TEXT and kind != JSON:
        if not is_null(text, first, last):
            store_text(state, text, first, last, j, row)
        return True
    if kind <= FLOAT:
        if holds == A_NUMBER:
            store_number(state, value, j, row)
        elif holds == A_DOUBLE and kind == FLOAT:
            put(state, j, row, value)
        else:
            add_note(state, A_DEFERRED, row, j, message_code(state, text, start, stop, generation))
        return True
    if kind == TEXT and holds == A_TEXT_ID:
        code = meaning_of(state, A_STRING, generation, value)
        if code >= 0:
            put(state, j, row, code)
        return True
    if holds == A_TEXT and is_null(text, first, last):
        return True
    put(state, j, row, -2 - message_code(state, text, start, stop, generation))
    return True
