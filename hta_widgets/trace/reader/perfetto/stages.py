"""Work of devices (GpuRenderStageEvent) -> rows, with the launch that it is of."""

from __future__ import annotations

import numpy as np

from hta_widgets.jit import outline
from hta_widgets.trace.reader.bytes import Text, u64
from hta_widgets.trace.reader.event_scan import FLOAT, JSON
from hta_widgets.trace.reader.perfetto.arguments import is_null
from hta_widgets.trace.reader.perfetto.ids import State, meaning_of, text_code
from hta_widgets.trace.reader.perfetto.layout import (
    A_KERNEL,
    A_STAGE,
    ACTION,
    AN_ARGUMENT,
    AN_EVENT,
    BLOCK,
    CATEGORY,
    COUNTS,
    DEVICE,
    DURATION,
    GENERATION,
    GRID,
    LANE,
    NAME,
    NONE,
    SHARED,
    SKIP,
    STAGE,
    TRACK,
    Number,
)
from hta_widgets.trace.reader.perfetto.rows import (
    drop_row,
    kind_of,
    new_row,
    put,
    scratch_message,
    store_number,
    store_text,
)
from hta_widgets.trace.reader.perfetto.wire import BYTES, VARINT, read_field


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
    put(state, state.numbers[column], row, -2 - scratch_message(state, n, generation))
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
            key = meaning_of(state, AN_ARGUMENT, generation, read)
        elif number == 2 and wire == BYTES:
            key = text_code(state, text, begin, i)
        elif number in (3, 4):
            value = read
    j = state.marks[key, ACTION] if key >= 0 else SKIP
    if j < 0 or kind_of(state, j) > FLOAT:
        return True
    if j == state.numbers[SHARED]:
        cell = state.numbers[COUNTS + j]
        if cell > 0 and state.cells[j, cell - 1, 0] == row:
            value += state.cells[j, cell - 1, 1]
    store_number(state, value, j, row)
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
            key = text_code(state, text, begin, i)
        elif wire == BYTES and number == 2:
            first, last = begin, i
    j = state.marks[key, ACTION] if key >= 0 else SKIP
    if j < 0 or is_null(text, first, last):
        return True
    if kind_of(state, j) != JSON:
        store_text(state, text, first, last, j, row)
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
    put(state, j, row, -2 - scratch_message(state, n + k, generation))
    return True


@outline
def read_stage(state: State, text: Text, start: int, stop: int, slot: int, time: Number) -> bool:
    """Work of a device on a queue (GpuRenderStageEvent)."""
    row = new_row(state, STAGE, time)
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
                state.events[row, NAME] = text_code(state, text, begin, i)
            elif number == 21:
                good = _launch(state, text, begin, i, generation, row)
        elif number == 2:
            state.events[row, DURATION] = value
        elif number == 11:
            state.events[row, TRACK] = value
        elif number == 13:
            state.events[row, LANE] = meaning_of(state, A_STAGE, generation, value)
        elif number == 14:
            state.events[row, CATEGORY] = meaning_of(state, A_STAGE, generation, value)
        elif number == 19:
            kernel_name = meaning_of(state, A_KERNEL, generation, value)
        elif number == 20:
            state.events[row, NAME] = meaning_of(state, AN_EVENT, generation, value)
        if not good:
            drop_row(state, row)
            return False
    if state.events[row, NAME] < 0:
        state.events[row, NAME] = kernel_name if kernel_name >= 0 else state.events[row, CATEGORY]
    j = state.numbers[DEVICE]
    cell = state.numbers[COUNTS + j]
    if cell == 0 or state.cells[j, cell - 1, 0] != row:
        put(state, j, row, state.events[row, TRACK])
    return True
