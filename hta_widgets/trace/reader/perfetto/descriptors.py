"""What later packets refer to: tracks, and a sequence's defaults."""

from __future__ import annotations

import numpy as np

from hta_widgets.jit import outline
from hta_widgets.trace.reader.bytes import Text
from hta_widgets.trace.reader.perfetto.ids import State, place_of_track, text_code
from hta_widgets.trace.reader.perfetto.layout import (
    DEFAULT_CLOCK,
    DEFAULT_TRACK,
    DESCRIBED,
    FLAGS,
    IS_COUNTER,
    IS_PROCESS,
    IS_THREAD,
    LABELS,
    PARENT,
    PID,
    PROCESS_NAME,
    PROCESS_SORT,
    THREAD_NAME,
    THREAD_SORT,
    TID,
    TRACK_NAME,
)
from hta_widgets.trace.reader.perfetto.wire import BYTES, VARINT, read_field


@outline
def read_descriptor(state: State, text: Text, start: int, stop: int) -> bool:
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
    track = place_of_track(state, uuid)
    state.places[track, FLAGS] |= DESCRIBED
    if parent != 0 and parent != uuid:
        state.places[track, PARENT] = place_of_track(state, parent)
    i = start
    while i < stop:
        number, wire, _, begin, i = read_field(text, i, stop)
        if wire != BYTES:
            continue
        if number in (2, 10, 13):
            state.places[track, TRACK_NAME] = text_code(state, text, begin, i)
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
                        state.places[track, PROCESS_NAME] = text_code(state, text, first, k)
                    elif of_process and inner == 8:
                        state.places[track, LABELS] = text_code(state, text, first, k)
                    elif not of_process and inner == 5:
                        state.places[track, THREAD_NAME] = text_code(state, text, first, k)
                elif inner == 1:
                    state.places[track, PID] = value
                elif inner == 2 and not of_process:
                    state.places[track, TID] = value
                elif inner == 3:
                    state.places[track, PROCESS_SORT if of_process else THREAD_SORT] = value
    return True


@outline
def read_defaults(state: State, text: Text, start: int, stop: int, slot: int) -> bool:
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
