"""Ids: what a packet may name by a number, and what each number means.

Names, categories and keys have ids that a sequence of packets gives them, anew whenever it clears its state:
an id is looked up in a *generation* of a sequence.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hta_widgets.arrays import Int64
from hta_widgets.jit import inline, outline
from hta_widgets.trace.reader.bytes import Text
from hta_widgets.trace.reader.dictionary import Entries, intern
from hta_widgets.trace.reader.perfetto.layout import (
    A_SEQUENCE,
    A_TRACK,
    DEFAULT_CLOCK,
    DEFAULT_TRACK,
    FLAGS,
    GENERATION,
    GENERATIONS,
    IS_SEQUENCE,
    LAST_SEQUENCE,
    LAST_SLOT,
    LAST_TRACK,
    LAST_UUID,
    MEANING,
    NONE,
    OWN_CLOCK,
    PLACE_COLUMNS,
    PLACES,
    PROCESS_SORT,
    THREAD_SORT,
    TID,
    UNRESOLVED,
    Number,
)


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


@inline
def place_of(state: State, what: Number, generation: Number, number: Number) -> int:
    """The place of an id in `marks`."""
    state.words[0] = what
    state.words[1] = generation
    state.words[2] = number
    return intern(state.texts, state.scratch, 0, 24)


@inline
def text_code(state: State, text: Text, start: int, stop: int) -> int:
    """Code of a text."""
    return intern(state.texts, text, start, stop - start)


@outline
def define(state: State, what: Number, generation: Number, number: Number, meaning: Number) -> None:
    state.marks[place_of(state, what, generation, number), MEANING] = meaning


@inline
def meaning_of(state: State, what: Number, generation: Number, number: Number) -> int:
    meaning = state.marks[place_of(state, what, generation, number), MEANING]
    if meaning == NONE:
        state.numbers[UNRESOLVED] += 1
    return meaning


@outline
def place_of_sequence(state: State, number: Number) -> int:
    """The place of a sequence, new where it was not seen before."""
    place = place_of(state, A_SEQUENCE, 0, number)
    slot = state.marks[place, MEANING]
    if slot == NONE:
        slot = state.numbers[PLACES]
        state.numbers[PLACES] += 1
        state.marks[place, MEANING] = slot
        state.places[slot, FLAGS] = IS_SEQUENCE
        state.places[slot, OWN_CLOCK] = NONE
        forget_ids(state, slot)
    state.numbers[LAST_SEQUENCE] = number
    state.numbers[LAST_SLOT] = slot
    return slot


@outline
def forget_ids(state: State, slot: int) -> None:
    """Begin a generation: ids mean nothing any more."""
    state.numbers[GENERATIONS] += 1
    state.places[slot, GENERATION] = state.numbers[GENERATIONS]
    state.places[slot, DEFAULT_TRACK] = 0
    state.places[slot, DEFAULT_CLOCK] = 0


@inline
def place_of_track(state: State, uuid: Number) -> int:
    """The place of a track, mostly that of the event before."""
    if state.numbers[LAST_UUID] != uuid or state.numbers[LAST_TRACK] == NONE:
        state.numbers[LAST_TRACK] = _other_track(state, uuid)
        state.numbers[LAST_UUID] = uuid
    return state.numbers[LAST_TRACK]


@outline
def _other_track(state: State, uuid: Number) -> int:
    """The place of a track, new where it was not seen before."""
    place = place_of(state, A_TRACK, 0, uuid)
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
    return track
