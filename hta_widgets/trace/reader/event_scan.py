"""The scanner proper: JSON text of events -> columns, one pass, one byte cursor.

From small to large: key, value, event, block; `json_text` has what they are made of.  The cursor `i`
is an index into the block's text.  Text past `end` is filled with quotes, which stops every loop soon after;
a caller that finds i >= end knows that the text ran out.

A key is recognised by prediction: kineto writes the same keys in the same order, so the key that followed the
previous one last time (for events of the same category) is compared first and the hash table is asked only
when that fails.

Values in an unusual notation (exponents, quoted numbers, more than three decimals, NaN ...) are `deferred`:
their place is recorded, and `values.resolve` reads them.  A malformed or incomplete event is rolled back as a
whole.  What can be read though it is not JSON is read, and counted with its first place.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from hta_widgets.arrays import Int32, Int64
from hta_widgets.jit import inline, kernel, outline
from hta_widgets.trace.reader.bytes import PADDING, Text, borrowed, byte_at, same_bytes
from hta_widgets.trace.reader.dictionary import FULL, Entries, borrowed_entries, intern
from hta_widgets.trace.reader.grammar import has_leading_zero, is_nested, is_plain, is_scalar
from hta_widgets.trace.reader.json_text import (
    CLOSE_BRACE,
    CLOSE_BRACKET,
    COLON,
    COMMA,
    OPEN_BRACE,
    OPEN_BRACKET,
    QUOTE,
    nested_end,
    scalar_end,
    skip_space,
    string_end,
)
from hta_widgets.trace.reader.numbers import read_decimal, read_int, read_microseconds

LETTER_N = ord("n")

# status of a scan
DONE: Final = 0  # an event: read.  A block: the array's closing bracket was seen
UNFINISHED: Final = 1  # the text ends inside an event (or between two)
MALFORMED: Final = 2  # not JSON, even leniently read
NO_ROOM: Final = 3  # an output array is full; flush, grow, go on

# what to do with the value of a key
SKIP: Final = -1
ARGUMENTS: Final = -2
START, DURATION = 5, 6  # actions 0..4 are the dense text columns, in schema.DENSE_COLUMNS' order
FIRST_SPARSE: Final = 16  # action of sparse column 0
FLOW_ID, BINDING, COUNTER_ARGS = 0, 1, 2  # sparse columns that do not come from args
PHASE, CATEGORY = 0, 1
COUNTER_PHASE: Final = 0  # dictionary code of "C", interned first

INT, FLOAT, TEXT, JSON = 0, 1, 2, 3

# key codes that no key has: what precedes the first key of an event, the first of its args, the first after
# args
EVENT_START, ARGS_START, ARGS_END, UNKNOWN_KEY = 0, 1, 2, 3
CATEGORIES_TOLD_APART = 32
LONGEST_KEY = PADDING // 2  # a longer one is unknown; comparing must not leave the padding

SCALAR, STRING, NESTED = 0, 1, 2

# what is read though it is not JSON
ODD_SEPARATORS, ODD_SCALARS, ODD_NESTING, ODD_KINDS = range(4)


class Plan(NamedTuple):
    """What to look for."""

    keys: Entries
    action: Int32  # [0 for an event's keys, 1 for its args, key] -> SKIP, ARGUMENTS, START ...
    kind: Int32  # [sparse column] -> INT, FLOAT, TEXT, JSON
    following: Int32  # [key * CATEGORIES_TOLD_APART + category] -> key expected next


class Columns(NamedTuple):
    """What was found.  Sparse cells of column j are [j, : counts[j]]."""

    texts: Int32  # [dense text column, row]
    times: Int64  # [start or duration, row]
    counts: Int64
    rows: Int32
    integers: Int64
    floats: npt.NDArray[np.float64]  # the same memory as `integers`
    deferred: Int64  # [cell] -> row, action, start and stop in the text
    filled: Int64  # see ROWS and what follows
    odd: Int64  # [kind] -> events with it, its first place, and its place in the event being read; -1: none


ROWS, DEFERRED, COMMAS, ODD = range(
    4
)  # rows, deferred cells, commas since the last event, odd kinds in this one
NO_EVENT_YET: Final = -(1 << 40)  # of COMMAS: then none is due
ODD_COUNT, ODD_FIRST, ODD_HERE = range(3)


@outline
def note_odd(columns: Columns, kind: int, at: int) -> None:
    """Note that the event being read is no JSON, but can be read."""
    if columns.odd[kind, ODD_HERE] < 0:
        columns.odd[kind, ODD_HERE] = at
        columns.filled[ODD] += 1


@outline
def settle_odd(columns: Columns, keep: bool) -> None:
    """Count what was noted for an event that was read, or forget it."""
    for kind in range(ODD_KINDS):
        if columns.odd[kind, ODD_HERE] >= 0:
            if keep:
                columns.odd[kind, ODD_COUNT] += 1
                if columns.odd[kind, ODD_FIRST] < 0:
                    columns.odd[kind, ODD_FIRST] = columns.odd[kind, ODD_HERE]
            columns.odd[kind, ODD_HERE] = -1
    columns.filled[ODD] = 0


@outline
def check_scalar(text: Text, start: int, stop: int, columns: Columns) -> None:
    """Note a number or literal that is none in JSON."""
    if not is_scalar(text, start, stop):
        note_odd(columns, ODD_SCALARS, start)


@inline
def is_number(plan: Plan, action: int) -> bool:
    """Whether the value goes where times, integers or fractions are stored."""
    return action < FIRST_SPARSE or plan.kind[action - FIRST_SPARSE] <= FLOAT


@inline
def claim_cell(columns: Columns, j: int, row: int) -> int:
    """Where to write column j of `row`: a new cell, or the row's old one (of duplicate keys the last
    counts).
    """
    cell = columns.counts[j]
    if cell > 0 and columns.rows[j, cell - 1] == row:
        return cell - 1
    columns.rows[j, cell] = row
    columns.counts[j] = cell + 1
    return cell


@inline
def drop_cell(columns: Columns, j: int, row: int) -> None:
    """Forget column j of `row`."""
    cell = columns.counts[j]
    if cell > 0 and columns.rows[j, cell - 1] == row:
        columns.counts[j] = cell - 1


@outline
def defer(text: Text, columns: Columns, row: int, action: int, start: int, stop: int) -> int:
    """Leave a value to `values.resolve`; whatever stood there before is void."""
    if byte_at(text, start) not in (QUOTE, OPEN_BRACKET, OPEN_BRACE):
        check_scalar(text, start, stop, columns)
    cell = columns.filled[DEFERRED]
    if cell >= columns.deferred.shape[0]:
        return NO_ROOM
    if action < FIRST_SPARSE:
        columns.times[action - START, row] = np.int64(-(1 << 63))
    else:
        drop_cell(columns, action - FIRST_SPARSE, row)
    columns.deferred[cell, 0] = row
    columns.deferred[cell, 1] = action
    columns.deferred[cell, 2] = start
    columns.deferred[cell, 3] = stop
    columns.filled[DEFERRED] = cell + 1
    return DONE


@outline
def store_text(
    text: Text, start: int, length: int, j: int, row: int, names: Entries, columns: Columns
) -> int:
    """Put a text into sparse column j."""
    code = intern(names, text, start, length)
    if code == FULL:
        return NO_ROOM
    columns.integers[j, claim_cell(columns, j, row)] = code
    return DONE


@inline
def store_value(
    text: Text,
    start: int,
    stop: int,
    shape: int,
    action: int,
    row: int,
    names: Entries,
    plan: Plan,
    columns: Columns,
) -> int:
    """Put the value text[start : stop] where `action` says."""
    inner, length = start, stop - start
    if shape == STRING:
        inner, length = start + 1, length - 2
    is_null = shape == SCALAR and (
        length == 0 or (byte_at(text, start) == LETTER_N and byte_at(text, start + 1) > ord("a"))
    )
    if action < START:
        if not is_null:
            code = intern(names, text, inner, length)
            if code == FULL:
                return NO_ROOM
            columns.texts[action, row] = code
        return DONE
    if action < FIRST_SPARSE:
        if shape == SCALAR:
            time, ok = read_microseconds(text, start, length)
            if ok:
                if has_leading_zero(text, start):
                    note_odd(columns, ODD_SCALARS, start)
                columns.times[action - START, row] = time
                return DONE
        return defer(text, columns, row, action, start, stop)
    j = action - FIRST_SPARSE
    kind = plan.kind[j]
    if kind == INT:
        if shape == SCALAR:
            value, ok = read_int(text, start, length)
            if ok:
                if has_leading_zero(text, start):
                    note_odd(columns, ODD_SCALARS, start)
                columns.integers[j, claim_cell(columns, j, row)] = value
                return DONE
        return defer(text, columns, row, action, start, stop)
    if kind == FLOAT:
        if shape == SCALAR:
            number, ok = read_decimal(text, start, length)
            if ok:
                if has_leading_zero(text, start):
                    note_odd(columns, ODD_SCALARS, start)
                columns.floats[j, claim_cell(columns, j, row)] = number
                return DONE
        return defer(text, columns, row, action, start, stop)
    if is_null:
        return DONE
    if kind == JSON:
        inner, length = start, stop - start
    return store_text(text, inner, length, j, row, names, columns)


@outline
def find_key(plan: Plan, text: Text, i: int, length: int) -> int:
    """Code of a key, learnt where new."""
    if length > LONGEST_KEY:
        return UNKNOWN_KEY
    key = intern(plan.keys, text, i, length)
    return UNKNOWN_KEY if key == FULL else key


@inline
def scan_event(
    text: Text, i: int, end: int, row: int, names: Entries, plan: Plan, columns: Columns
) -> tuple[int, int]:
    """Read the event whose brace is at i into `row`: (cursor, status)."""
    for column in range(START):
        columns.texts[column, row] = -1
    columns.times[0, row] = np.int64(-(1 << 63))
    columns.times[1, row] = np.int64(-(1 << 63))
    in_args = 0
    fresh = True  # no member since the last opening brace
    args_start = 0
    args_stop = 0
    previous = EVENT_START
    category = 0
    i += 1
    while True:
        i = skip_space(text, i)
        c = byte_at(text, i)
        comma = c == COMMA
        if comma:
            i = skip_space(text, i + 1)
            c = byte_at(text, i)
        if c == CLOSE_BRACE:
            if comma:
                note_odd(columns, ODD_SEPARATORS, i)
            i += 1
            if in_args == 0:
                break
            in_args = 0
            fresh = False
            previous = ARGS_END
            args_stop = i
            continue
        if c != QUOTE or i >= end:
            return i, MALFORMED
        if comma == fresh:
            note_odd(columns, ODD_SEPARATORS, i)
        fresh = False

        # key: the predicted one, or looked up
        i += 1
        guess = previous * CATEGORIES_TOLD_APART + category
        key = plan.following[guess]
        length = plan.keys.length[key]
        if byte_at(text, i + length) != QUOTE or not same_bytes(
            text, i, plan.keys.text, plan.keys.offset[key], length
        ):
            length = string_end(text, i, end) - i
            if i + length >= end:
                return end, UNFINISHED
            key = find_key(plan, text, i, length)
            plan.following[guess] = key
        previous = key
        i = skip_space(text, i + length + 1)
        if byte_at(text, i) != COLON:
            return i, MALFORMED
        i = skip_space(text, i + 1)
        if i >= end:
            return end, UNFINISHED

        # value
        action = plan.action[in_args, key]
        start = i
        c = byte_at(text, i)
        if c == QUOTE:
            shape = STRING
            i = string_end(text, i + 1, end) + 1
        elif c == OPEN_BRACE and action == ARGUMENTS:
            in_args = 1
            fresh = True
            args_start = i
            previous = ARGS_START
            i += 1
            continue
        elif c in (OPEN_BRACE, OPEN_BRACKET):
            shape = NESTED
            i = nested_end(text, i, end)
        else:
            shape = SCALAR
            i = scalar_end(text, i)
        if i >= end:
            return end, UNFINISHED
        if shape == SCALAR:
            # a number that is stored is looked at when it is read, or when that fails
            if (action < START or not is_number(plan, action)) and not is_plain(text, start, i - start):
                check_scalar(text, start, i, columns)
        elif shape == NESTED and not is_nested(text, start, i):
            note_odd(columns, ODD_NESTING, start)
        if action >= 0:
            status = store_value(text, start, i, shape, action, row, names, plan, columns)
            if status != DONE:
                return i, status
            if action == CATEGORY:
                category = columns.texts[CATEGORY, row] & (CATEGORIES_TOLD_APART - 1)
    if i > end:
        return end, UNFINISHED
    if columns.texts[PHASE, row] == COUNTER_PHASE and args_stop > 0:
        return i, store_text(text, args_start, args_stop - args_start, COUNTER_ARGS, row, names, columns)
    return i, DONE


@kernel
def scan_block(
    text: Text, i: int, stop: int, longest: int, names: Entries, plan: Plan, columns: Columns
) -> tuple[int, int]:
    """Read the events of text[i : stop] into new rows: (cursor, status).

    The cursor is where to go on: past the array's bracket when DONE, at the head of the event that could not
    be read otherwise.  An event longer than `longest` bytes is MALFORMED: an unclosed bracket must not
    swallow the file.
    """
    text = borrowed(text)
    names = borrowed_entries(names)
    plan = Plan(
        borrowed_entries(plan.keys), borrowed(plan.action), borrowed(plan.kind), borrowed(plan.following)
    )
    columns = Columns(
        borrowed(columns.texts),
        borrowed(columns.times),
        borrowed(columns.counts),
        borrowed(columns.rows),
        borrowed(columns.integers),
        borrowed(columns.floats),
        borrowed(columns.deferred),
        borrowed(columns.filled),
        borrowed(columns.odd),
    )
    while True:
        row = columns.filled[ROWS]
        i = skip_space(text, i)
        if i >= stop:
            return stop, UNFINISHED
        c = byte_at(text, i)
        if c == COMMA:
            columns.filled[COMMAS] += 1
            i += 1
            continue
        if c == CLOSE_BRACKET:
            if columns.filled[COMMAS] != 0 and columns.filled[COMMAS] != NO_EVENT_YET:
                note_odd(columns, ODD_SEPARATORS, i)
                settle_odd(columns, True)
            return i + 1, DONE
        if c != OPEN_BRACE:
            return i, MALFORMED
        if row >= columns.rows.shape[1]:
            return i, NO_ROOM
        end = min(stop, i + longest)
        cells_deferred = columns.filled[DEFERRED]
        if columns.filled[COMMAS] != 1 and columns.filled[COMMAS] != NO_EVENT_YET:
            note_odd(columns, ODD_SEPARATORS, i)
        after, status = scan_event(text, i, end, row, names, plan, columns)
        if columns.filled[ODD] > 0:
            settle_odd(columns, status == DONE)
        if status == DONE:
            columns.filled[ROWS] = row + 1
            columns.filled[COMMAS] = 0
            i = after
            continue
        for j in range(columns.counts.size):
            drop_cell(columns, j, row)
        columns.filled[DEFERRED] = cells_deferred
        if status == NO_ROOM:
            return i, NO_ROOM
        if after >= end:
            status = UNFINISHED if end == stop else MALFORMED
        return i, status
