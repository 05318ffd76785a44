"""The position of each event in a trace's text: what `event_scan` reads, without its columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from hta_widgets.arrays import Bool, Int64
from hta_widgets.jit import inline, kernel
from hta_widgets.trace.reader.bytes import PADDING, Text, borrowed, byte_at, u64, word_at
from hta_widgets.trace.reader.damage import LONGEST_EVENT, LONGEST_EVENT_AFTER_DAMAGE, next_head
from hta_widgets.trace.reader.event_scan import DONE, MALFORMED, NO_ROOM, UNFINISHED
from hta_widgets.trace.reader.json_text import (
    CLOSE_BRACE,
    CLOSE_BRACKET,
    COLON,
    COMMA,
    OPEN_BRACE,
    OPEN_BRACKET,
    QUOTE,
    SPACE,
    nested_end,
    scalar_end,
    skip_space,
    string_end,
)
from hta_widgets.trace.reader.source import Source

ARGS: Final = u64(int.from_bytes(b"args", "little"))
_BLOCK: Final = 4 << 20
_BYTES_PER_EVENT: Final = 128  # a guess: few events are shorter


def padded_text(source: Source) -> Text:
    """The whole text of a file, followed by padding for wide reads: quotes, which end every loop."""
    size = 0
    text = np.empty((source.total or 0) + _BLOCK + PADDING, np.uint8)
    while count := source.read_into(memoryview(text)[size : size + _BLOCK]):  # type: ignore[arg-type]
        size += count
        if size + _BLOCK + PADDING > len(text):
            text = np.concatenate([text[:size], np.empty(size + _BLOCK + PADDING, np.uint8)])
    text[size : size + PADDING] = QUOTE
    return text[: size + PADDING]


def find_spans(text: Text, first: int) -> tuple[Int64, Int64, int | None]:
    """Starts and stops of the readable events of a padded text whose array begins at `first`, and the place
    just past the array's bracket, or None if there is none. Damage is skipped as in the scanner.
    """
    size = len(text) - PADDING
    starts, stops = np.empty((2, max(16, (size - first) // _BYTES_PER_EVENT)), np.int64)
    count, longest, i = 0, LONGEST_EVENT, first
    while True:
        i, count, status = _spans(text, i, size, longest, starts, stops, count)
        if status == NO_ROOM:
            starts, stops = (np.concatenate([offsets, np.empty_like(offsets)]) for offsets in (starts, stops))
            continue
        if status == DONE:
            return starts[:count].copy(), stops[:count].copy(), i
        following = next_head(text, i, size)
        if following is None:
            return starts[:count].copy(), stops[:count].copy(), None
        if size - i > longest:
            longest = max(LONGEST_EVENT_AFTER_DAMAGE, longest // 2)
        i = following


def find_values(text: Text, start: Int64, stop: Int64, key: str) -> tuple[Int64, Int64]:
    """Where each event's value of a key (at most 8 bytes) starts and stops; -1: none."""
    first, last = np.full((2, len(start)), -1, np.int64)
    word = int.from_bytes(key.encode(), "little")
    _values(text, start, stop, word, len(key.encode()), first, last)
    return first, last


def spliced(text: Text, first: Int64, last: Int64, texts: Sequence[bytes], which: Int64) -> Text:
    """A text with ``texts[which[k]]`` in place of text[first[k] : last[k]]; these ascend and are disjoint."""
    lengths = np.array([0, *map(len, texts)], np.int64)
    out = np.empty(len(text) + int((lengths[which + 1] - (last - first)).sum()), np.uint8)
    _splice(text, first, last, np.frombuffer(b"".join(texts), np.uint8), np.cumsum(lengths), which, out)
    return out


def joined(text: Text, start: Int64, stop: Int64) -> Bool:
    """For each event but the last: whether one comma and white space is all that stands before the next."""
    plain = np.zeros(max(0, len(start) - 1), np.bool_)
    if len(plain):
        _joined(text, start, stop, plain)
    return plain


@inline
def _event_end(text: Text, i: int, end: int) -> tuple[int, int]:
    """(just past the event whose brace is at i, status)."""
    in_args = False
    i += 1
    while True:
        i = skip_space(text, i)
        c = byte_at(text, i)
        if c == COMMA:
            i = skip_space(text, i + 1)
            c = byte_at(text, i)
        if c == CLOSE_BRACE:
            i += 1
            if in_args:
                in_args = False
                continue
            return (i, DONE) if i <= end else (end, UNFINISHED)
        if c != QUOTE or i >= end:
            return i, MALFORMED
        key = i + 1
        i = string_end(text, key, end)
        if i >= end:
            return end, UNFINISHED
        is_args = i - key == 4 and (word_at(text, key) & u64(0xFFFFFFFF)) == ARGS  #
        i = skip_space(text, i + 1)
        if byte_at(text, i) != COLON:
            return i, MALFORMED
        i = skip_space(text, i + 1)
        if i >= end:
            return end, UNFINISHED
        c = byte_at(text, i)
        if c == QUOTE:
            i = string_end(text, i + 1, end) + 1
        elif c == OPEN_BRACE and is_args and not in_args:
            in_args = True
            i += 1
            continue
        elif c in (OPEN_BRACE, OPEN_BRACKET):
            i = nested_end(text, i, end)
        else:
            i = scalar_end(text, i)
        if i >= end:
            return end, UNFINISHED


@kernel
def _spans(
    text: Text, i: int, stop: int, longest: int, starts: Int64, stops: Int64, count: int
) -> tuple[int, int, int]:
    """Note the events of text[i : stop] from number `count` on: (cursor, count, status)."""
    text = borrowed(text)
    while True:
        i = skip_space(text, i)
        if i >= stop:
            return stop, count, UNFINISHED
        c = byte_at(text, i)
        if c == COMMA:
            i += 1
            continue
        if c == CLOSE_BRACKET:
            return i + 1, count, DONE
        if c != OPEN_BRACE:
            return i, count, MALFORMED
        if count >= len(starts):
            return i, count, NO_ROOM
        after, status = _event_end(text, i, min(stop, i + longest))
        if status != DONE:
            return i, count, status
        starts[count] = i
        stops[count] = after
        count += 1
        i = after


@kernel
def _values(text: Text, start: Int64, stop: Int64, word: int, length: int, first: Int64, last: Int64) -> None:
    text = borrowed(text)
    mask = ~u64(0) >> u64(64 - 8 * length)
    for event in range(len(start)):
        i, end = start[event] + 1, stop[event]
        while True:
            i = skip_space(text, i)
            if byte_at(text, i) == COMMA:
                i = skip_space(text, i + 1)
            if byte_at(text, i) != QUOTE:
                break
            key = i + 1
            i = string_end(text, key, end)
            wanted = i - key == length and (word_at(text, key) & mask) == u64(word)
            i = skip_space(text, skip_space(text, i + 1) + 1)
            begin = i
            c = byte_at(text, i)
            if c == QUOTE:
                i = string_end(text, i + 1, end) + 1
            elif c in (OPEN_BRACE, OPEN_BRACKET):
                i = nested_end(text, i, end)
            else:
                i = scalar_end(text, i)
            if wanted:
                first[event], last[event] = begin, i


@inline
def _copied(text: Text, begin: int, end: int, out: Text, at: int) -> int:
    """Copy a part of a text to `at`; returns where it ends there."""
    for i in range(begin, end):
        out[at + i - begin] = text[i]
    return at + end - begin


@kernel
def _splice(
    text: Text, first: Int64, last: Int64, texts: Text, offset: Int64, which: Int64, out: Text
) -> None:
    done, written = 0, 0
    for k in range(len(first) + 1):
        written = _copied(text, done, first[k] if k < len(first) else len(text), out, written)
        if k < len(first):
            written = _copied(texts, offset[which[k]], offset[which[k] + 1], out, written)
            done = last[k]


@kernel
def _joined(text: Text, start: Int64, stop: Int64, plain: Bool) -> None:
    for i in range(len(plain)):
        commas = 0
        for at in range(stop[i], start[i + 1]):
            c = text[at]
            if c == COMMA:
                commas += 1
            elif c > SPACE:
                commas = 2
        plain[i] = commas == 1
