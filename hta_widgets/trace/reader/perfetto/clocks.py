"""Clocks: how far each is from BOOTTIME, and a packet's time on that clock."""

from __future__ import annotations

import numpy as np

from hta_widgets.jit import inline, outline
from hta_widgets.trace.reader.bytes import Text
from hta_widgets.trace.reader.perfetto.ids import State
from hta_widgets.trace.reader.perfetto.layout import (
    ANCHOR,
    BOOTTIME,
    CLOCK_KNOWN,
    CLOCK_OFFSET,
    CLOCKS,
    DEFAULT_CLOCK,
    FIRST_OWN_CLOCK,
    HAS_ANCHOR,
    NONE,
    OWN_CLOCK,
    OWN_LAST,
    OWN_OFFSET,
    OWN_UNIT,
    REALTIME,
    REALTIME_CLOCK,
    UNKNOWN_CLOCK,
    Number,
)
from hta_widgets.trace.reader.perfetto.wire import BYTES, read_field


@outline
def read_clocks(state: State, text: Text, start: int, stop: int, slot: int) -> bool:
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
def boottime(state: State, slot: int, clock: Number, time: Number) -> Number:
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
