"""The scanner proper: JSON text of events -> columns, one pass, one byte cursor.

From small to large: white space, string, nested value, scalar; then key, value, event, block.  The cursor `i`
is an index into the block's text.  Text past `end` is filled with quotes, which stops every loop soon after;
a caller that finds i >= end knows that the text ran out.

A key is recognised by prediction: kineto writes the same keys in the same order, so the key that followed the
previous one last time (for events of the same category) is compared first and the hash table is asked only
when that fails.

Values in an unusual notation (exponents, quoted numbers, more than three decimals, NaN ...) are `deferred`:
their place is recorded, and `values.resolve` reads them.  A malformed or incomplete event is rolled back as a
whole.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from hta_widgets.jit import inline, kernel, outline
from hta_widgets.trace.reader.bytes import (
    PADDING,
    Text,
    borrowed,
    byte_at,
    count_bits,
    first_bit,
    mask_above,
    mask_equal,
    mask_folded,
    same_bytes,
    u64,
)
from hta_widgets.trace.reader.dictionary import FULL, Entries, borrowed_entries, intern
from hta_widgets.trace.reader.numbers import read_decimal, read_int, read_microseconds

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]

QUOTE, BACKSLASH, COMMA, COLON = ord('"'), ord("\\"), ord(","), ord(":")
OPEN_BRACKET, CLOSE_BRACKET, OPEN_BRACE, CLOSE_BRACE = ord("["), ord("]"), ord("{"), ord("}")
SPACE, LETTER_N = ord(" "), ord("n")
NO_BITS, ALL_BITS = u64(0), u64(0xFFFFFFFFFFFFFFFF)

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
    filled: Int64  # [0] rows, [1] deferred cells


ROWS, DEFERRED = 0, 1


@outline
def skip_long_space(text: Text, i: int) -> int:
    """`skip_space` over line breaks and indents."""
    while True:
        mask = mask_above(text, i, SPACE)
        if mask != NO_BITS:
            return i + first_bit(mask)
        i += 64


@inline
def skip_space(text: Text, i: int) -> int:
    """The next byte that is no white space (control characters count as white space)."""
    if byte_at(text, i) > SPACE:
        return i
    i += 1
    if byte_at(text, i) > SPACE:
        return i
    return skip_long_space(text, i)


@inline
def string_end(text: Text, i: int, end: int) -> int:
    """The closing quote of the string whose first character is at i; at least `end` where there is none."""
    while i < end:
        quotes = mask_equal(text, i, QUOTE)
        escapes = mask_equal(text, i, BACKSLASH)
        if escapes == NO_BITS:
            if quotes != NO_BITS:
                return i + first_bit(quotes)
            i += 64
        elif quotes != NO_BITS and first_bit(quotes) < first_bit(escapes):
            return i + first_bit(quotes)
        else:
            i += first_bit(escapes) + 2
    return i


@inline
def inside_strings(quotes: np.uint64, carry: np.uint64) -> np.uint64:
    """Bits from each opening quote to just before its closing quote: prefix parity of the quotes, flipped by
    `carry`.
    """
    quotes ^= quotes << u64(1)
    quotes ^= quotes << u64(2)
    quotes ^= quotes << u64(4)
    quotes ^= quotes << u64(8)
    quotes ^= quotes << u64(16)
    quotes ^= quotes << u64(32)
    return quotes ^ carry


@outline
def nested_end(text: Text, i: int, end: int) -> int:
    """Just past the bracket that closes the one at i; at least `end` where there is none."""
    depth = 0
    while i < end:
        # 64 bytes at once where they hold no escape; a string that is open at their end is finished apart
        if mask_equal(text, i, BACKSLASH) == NO_BITS:
            strings = inside_strings(mask_equal(text, i, QUOTE), NO_BITS)
            opening = mask_folded(text, i, OPEN_BRACE) & ~strings
            closing = mask_folded(text, i, CLOSE_BRACE) & ~strings
            while closing != NO_BITS:
                lowest = closing & (~closing + u64(1))
                before = lowest - u64(1)
                depth += count_bits(opening & before) - 1
                if depth <= 0:
                    return i + first_bit(lowest) + 1
                opening &= ~before
                closing &= closing - u64(1)
            depth += count_bits(opening)
            i += 64
            if strings >> u64(63) != NO_BITS:
                i = string_end(text, i, end) + 1
            continue
        stop = i + 64
        while i < stop and i < end:
            c = byte_at(text, i)
            if c == QUOTE:
                i = string_end(text, i + 1, end)
            elif c in (OPEN_BRACE, OPEN_BRACKET):
                depth += 1
            elif c in (CLOSE_BRACE, CLOSE_BRACKET):
                depth -= 1
                if depth <= 0:
                    return i + 1
            i += 1
    return i


@inline
def scalar_end(text: Text, i: int) -> int:
    """Just past a number or literal: the next comma, closing bracket, quote or white space."""
    while True:
        mask = mask_equal(text, i, COMMA) | mask_folded(text, i, CLOSE_BRACE)
        mask |= ~mask_above(text, i, SPACE) | mask_equal(text, i, QUOTE)
        if mask != NO_BITS:
            return i + first_bit(mask)
        i += 64


@inline
def claim_cell(columns: Columns, j: int, row: int) -> int:
    """Where to write column j of `row`: a new cell, or the row's old one (of duplicate keys the last
    counts).
    """
    cell = columns.counts[j]
    if cell > 0 and columns.rows[j, cell - 1] == row:
        return cell - 1  # type: ignore[no-any-return]
    columns.rows[j, cell] = row
    columns.counts[j] = cell + 1
    return cell  # type: ignore[no-any-return]


@inline
def drop_cell(columns: Columns, j: int, row: int) -> None:
    """Forget column j of `row`."""
    cell = columns.counts[j]
    if cell > 0 and columns.rows[j, cell - 1] == row:
        columns.counts[j] = cell - 1


@outline
def defer(columns: Columns, row: int, action: int, start: int, stop: int) -> int:
    """Leave a value to `values.resolve`; whatever stood there before is void."""
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
                columns.times[action - START, row] = time
                return DONE
        return defer(columns, row, action, start, stop)
    j = action - FIRST_SPARSE
    kind = plan.kind[j]
    if kind == INT:
        if shape == SCALAR:
            value, ok = read_int(text, start, length)
            if ok:
                columns.integers[j, claim_cell(columns, j, row)] = value
                return DONE
        return defer(columns, row, action, start, stop)
    if kind == FLOAT:
        if shape == SCALAR:
            number, ok = read_decimal(text, start, length)
            if ok:
                columns.floats[j, claim_cell(columns, j, row)] = number
                return DONE
        return defer(columns, row, action, start, stop)
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
    args_start = 0
    args_stop = 0
    previous = EVENT_START
    category = 0
    i += 1
    while True:
        i = skip_space(text, i)
        c = byte_at(text, i)
        if c == COMMA:
            i = skip_space(text, i + 1)
            c = byte_at(text, i)
        if c == CLOSE_BRACE:
            i += 1
            if in_args == 0:
                break
            in_args = 0
            previous = ARGS_END
            args_stop = i
            continue
        if c != QUOTE or i >= end:
            return i, MALFORMED

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
    )
    while True:
        row = columns.filled[ROWS]
        i = skip_space(text, i)
        if i >= stop:
            return stop, UNFINISHED
        c = byte_at(text, i)
        if c == COMMA:
            i += 1
            continue
        if c == CLOSE_BRACKET:
            return i + 1, DONE
        if c != OPEN_BRACE:
            return i, MALFORMED
        if row >= columns.rows.shape[1]:
            return i, NO_ROOM
        end = min(stop, i + longest)
        cells_deferred = columns.filled[DEFERRED]
        after, status = scan_event(text, i, end, row, names, plan, columns)
        if status == DONE:
            columns.filled[ROWS] = row + 1
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
