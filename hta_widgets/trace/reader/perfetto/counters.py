"""Counters of devices (GpuCounterEvent) -> rows."""

from __future__ import annotations

import numpy as np

from hta_widgets.jit import outline
from hta_widgets.trace.reader.bytes import Text
from hta_widgets.trace.reader.perfetto.ids import State, define, meaning_of, place_of, text_code
from hta_widgets.trace.reader.perfetto.layout import (
    A_COUNTER,
    A_COUNTER_DEVICE,
    DURATION,
    GENERATION,
    LANE,
    MEANING,
    NAME,
    NONE,
    STAGE_COUNTER,
    TRACK,
    Number,
)
from hta_widgets.trace.reader.perfetto.rows import drop_row, new_row
from hta_widgets.trace.reader.perfetto.wire import BYTES, VARINT, read_field


@outline
def read_counter_names(
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
                    name = text_code(state, text, first, k)
            define(state, A_COUNTER, generation, (descriptor << 32) | (counter & 0xFFFFFFFF), name)
    return True


@outline
def read_counters(state: State, text: Text, start: int, stop: int, slot: int, time: Number) -> bool:
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
            if not read_counter_names(state, text, begin, i, generation, 0):
                return False
        elif number == 4 and wire == VARINT:
            descriptor = value & 0x7FFFFFFF
        elif number == 3 and wire == VARINT:
            device = value
    if device == NONE:
        known = state.marks[place_of(state, A_COUNTER_DEVICE, generation, descriptor), MEANING]
        device = known if known >= 0 else 0
    i = start
    while i < stop:
        number, wire, _, begin, i = read_field(text, i, stop)
        if number != 2 or wire != BYTES:
            continue
        row = new_row(state, STAGE_COUNTER, time)
        state.events[row, TRACK] = device
        k = begin
        while k < i:
            inner, _, value, _, k = read_field(text, k, i)
            if inner < 0:
                drop_row(state, row)
                return False
            if inner == 1:
                key = (descriptor << 32) | (value & 0xFFFFFFFF)
                state.events[row, NAME] = meaning_of(state, A_COUNTER, generation, key)
            elif inner in (2, 3):
                state.events[row, DURATION] = value
                state.events[row, LANE] = inner - 2
    return True
