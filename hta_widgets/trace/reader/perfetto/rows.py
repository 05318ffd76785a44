"""Rows of a scan: what is written of an event, a cell for each of its arguments, and notes for later."""

from __future__ import annotations

import numpy as np

from hta_widgets.jit import inline, outline
from hta_widgets.trace.reader.bytes import Text
from hta_widgets.trace.reader.dictionary import intern
from hta_widgets.trace.reader.event_scan import FLOAT, INT
from hta_widgets.trace.reader.numbers import read_decimal, read_int
from hta_widgets.trace.reader.perfetto.ids import State, text_code
from hta_widgets.trace.reader.perfetto.layout import (
    A_DEFERRED,
    COLUMNS,
    COUNTS,
    EVENT_COLUMNS,
    KIND,
    NONE,
    NOTE,
    NOTE_ID,
    NOTE_ROW,
    NOTE_VALUE,
    NOTES,
    ROWS,
    TIME,
    Number,
)


@inline
def new_row(state: State, kind: int, time: Number) -> int:
    row = state.numbers[ROWS]
    state.numbers[ROWS] = row + 1
    for column in range(EVENT_COLUMNS):
        state.events[row, column] = NONE
    state.events[row, KIND] = kind
    state.events[row, TIME] = time
    return row


@outline
def drop_row(state: State, row: int) -> None:
    """Forget a row, the last one, and its cells."""
    for j in range(state.numbers[COLUMNS]):
        cell = state.numbers[COUNTS + j]
        if cell > 0 and state.cells[j, cell - 1, 0] == row:
            state.numbers[COUNTS + j] = cell - 1
    while state.numbers[NOTES] > 0 and state.notes[state.numbers[NOTES] - 1, NOTE_ROW] == row:
        state.numbers[NOTES] -= 1
    state.numbers[ROWS] = row


@inline
def kind_of(state: State, j: int) -> int:
    """What a sparse column holds: INT, FLOAT, TEXT or JSON."""
    return state.numbers[COUNTS + state.numbers[COLUMNS] + j]


@inline
def _cell(state: State, j: int, row: int) -> int:
    """Where to write column j of `row`: of an argument given twice, the last counts."""
    cell = state.numbers[COUNTS + j]
    if cell > 0 and state.cells[j, cell - 1, 0] == row:
        return cell - 1
    state.cells[j, cell, 0] = row
    state.numbers[COUNTS + j] = cell + 1
    return cell


@inline
def put(state: State, j: int, row: int, value: Number) -> None:
    """Write column j of `row`."""
    state.cells[j, _cell(state, j, row), 1] = value


@inline
def _put_float(state: State, j: int, row: int, value: float) -> None:
    state.floats[j, _cell(state, j, row), 1] = value


@outline
def add_note(state: State, note: Number, row: int, number: Number, value: Number) -> None:
    cell = state.numbers[NOTES]
    state.notes[cell, NOTE] = note
    state.notes[cell, NOTE_ROW] = row
    state.notes[cell, NOTE_ID] = number
    state.notes[cell, NOTE_VALUE] = value
    state.numbers[NOTES] = cell + 1


@outline
def scratch_message(state: State, n: int, generation: Number) -> int:
    """Code of the message of n bytes that lies in scratch memory, and its generation."""
    for k in range(8):
        state.scratch[n + k] = (generation >> (8 * k)) & 0xFF
    return intern(state.texts, state.scratch, 0, n + 8)


@outline
def message_code(state: State, text: Text, start: int, stop: int, generation: Number) -> int:
    """Code of a message and its generation."""
    for k in range(stop - start):
        state.scratch[k] = text[start + k]
    return scratch_message(state, stop - start, generation)


@inline
def store_text(state: State, text: Text, start: int, stop: int, j: int, row: int) -> None:
    """Put a text into sparse column j, as a number where that is one of numbers."""
    n = stop - start
    kind = kind_of(state, j)
    if kind == INT:
        value, ok = read_int(text, start, n)
        if ok:
            put(state, j, row, value)
            return
    elif kind == FLOAT:
        number, ok = read_decimal(text, start, n)
        if ok:
            _put_float(state, j, row, number)
            return
    else:
        put(state, j, row, text_code(state, text, start, stop))
        return
    if n > 0:
        add_note(state, A_DEFERRED, row, j, -2 - text_code(state, text, start, stop))


@inline
def store_number(state: State, value: Number, j: int, row: int) -> None:
    """Put a number into sparse column j, one of numbers."""
    if kind_of(state, j) == INT:
        put(state, j, row, value)
    else:
        _put_float(state, j, row, np.float64(value))
