"""Events on a track (TrackEvent) -> rows."""

from __future__ import annotations

import numpy as np

from hta_widgets.jit import inline, outline
from hta_widgets.trace.reader.bytes import Text, byte_at
from hta_widgets.trace.reader.perfetto.arguments import read_argument
from hta_widgets.trace.reader.perfetto.ids import State, meaning_of, place_of_track, text_code
from hta_widgets.trace.reader.perfetto.layout import (
    A_CATEGORY,
    A_FLOW,
    AN_EVENT,
    BEGIN,
    CATEGORY,
    COMPLETE,
    COUNTER,
    DEFAULT_TRACK,
    DURATION,
    END,
    GENERATION,
    INSTANT,
    KIND,
    LANE,
    METADATA,
    METADATA_CODES,
    NAME,
    TRACK,
    Number,
)
from hta_widgets.trace.reader.perfetto.rows import add_note, drop_row, message_code, new_row
from hta_widgets.trace.reader.perfetto.wire import BYTES, read_field, read_varint


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
        add_note(state, A_FLOW, row, value, ends)
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
        add_note(state, A_FLOW, row, number, ends)
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
            state.events[row, NAME] = meaning_of(state, AN_EVENT, generation, value)
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
def read_track_event(state: State, text: Text, start: int, stop: int, slot: int, time: Number) -> bool:
    row = new_row(state, 0, time)
    generation = state.places[slot, GENERATION]
    uuid = state.places[slot, DEFAULT_TRACK]
    i = start
    while i < stop:
        number, wire, value, begin, i = read_field(text, i, stop)
        good = number >= 0
        if wire == BYTES:
            if number == 4:
                good = read_argument(state, text, begin, i, generation, row)
            elif number == 23:
                state.events[row, NAME] = text_code(state, text, begin, i)
            elif number == 22:
                if state.events[row, CATEGORY] < 0:
                    state.events[row, CATEGORY] = text_code(state, text, begin, i)
            elif number == 3:
                value, after = read_varint(text, begin, i)
                if after >= 0 and state.events[row, CATEGORY] < 0:
                    state.events[row, CATEGORY] = meaning_of(state, A_CATEGORY, generation, value)
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
            state.events[row, NAME] = meaning_of(state, AN_EVENT, generation, value)
        elif number == 3:
            if state.events[row, CATEGORY] < 0:
                state.events[row, CATEGORY] = meaning_of(state, A_CATEGORY, generation, value)
        elif number == 30 or number == 44:
            state.events[row, DURATION] = value
            state.events[row, LANE] = 1 if number == 44 else 0
        elif number in (36, 42, 47, 48):
            add_note(state, A_FLOW, row, value, 1 if number in (42, 48) else 0)
        if not good:
            drop_row(state, row)
            return False
    if state.events[row, KIND] == 0:
        drop_row(state, row)
        return True
    if state.events[row, KIND] == INSTANT and 0 <= state.events[row, NAME] < METADATA_CODES:
        state.events[row, METADATA] = -2 - message_code(state, text, start, stop, generation)
    state.events[row, TRACK] = place_of_track(state, uuid)
    return True
