"""The ids that a packet gives to texts and counters (InternedData)."""

from __future__ import annotations

import numpy as np

from hta_widgets.jit import outline
from hta_widgets.trace.reader.bytes import Text
from hta_widgets.trace.reader.perfetto.counters import read_counter_names
from hta_widgets.trace.reader.perfetto.ids import State, define, text_code
from hta_widgets.trace.reader.perfetto.layout import (
    A_CATEGORY,
    A_COUNTER_DEVICE,
    A_KERNEL,
    A_KEY,
    A_STAGE,
    A_STRING,
    AN_ARGUMENT,
    AN_EVENT,
    GENERATION,
    NONE,
    Number,
)
from hta_widgets.trace.reader.perfetto.wire import BYTES, VARINT, read_field


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
            name = text_code(state, text, begin, i)
    define(state, what, generation, number_of_id, name)
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
    define(state, A_COUNTER_DEVICE, generation, descriptor, device)
    return read_counter_names(state, text, first, last, generation, descriptor)


@outline
def read_interned(state: State, text: Text, start: int, stop: int, slot: int) -> bool:
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
