"""Interning: equal byte strings get equal codes.  An open-addressing hash table over one byte arena."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hta_widgets.jit import inline, kernel, outline
from hta_widgets.trace.reader.bytes import PADDING, Text, borrowed, hash_bytes, same_bytes, u64

FULL = -2
"""`intern`'s answer when the table must grow first (see `Dictionary.grow`)."""

COUNT, BYTES, WANTED = 0, 1, 2


class Entries(NamedTuple):
    """The arrays of a dictionary, as the kernels see them."""

    slot_hash: npt.NDArray[np.uint64]
    slot_code: npt.NDArray[np.int32]  # -1: free
    offset: npt.NDArray[np.int64]  # of an entry's text in `text`
    length: npt.NDArray[np.int64]
    text: Text
    used: npt.NDArray[np.int64]  # entries, bytes of text, length of the string that did not fit


@inline
def borrowed_entries(entries: Entries) -> Entries:
    """The same entries for use within a kernel."""
    return Entries(
        borrowed(entries.slot_hash),
        borrowed(entries.slot_code),
        borrowed(entries.offset),
        borrowed(entries.length),
        borrowed(entries.text),
        borrowed(entries.used),
    )


@inline
def intern(entries: Entries, text: Text, i: int, n: int) -> int:
    """Code of text[i : i + n], added where new; FULL where there is no room."""
    h = hash_bytes(text, i, n)
    last_slot = entries.slot_code.size - 1
    slot = np.int64(h & u64(last_slot))
    while True:
        code = entries.slot_code[slot]
        if code < 0:
            return add_entry(entries, text, i, n, h, slot)
        if (
            entries.slot_hash[slot] == h
            and entries.length[code] == n
            and same_bytes(text, i, entries.text, entries.offset[code], n)
        ):
            return code
        slot = (slot + 1) & last_slot


@outline
def add_entry(entries: Entries, text: Text, i: int, n: int, h: np.uint64, slot: np.int64) -> int:
    """Copy text[i : i + n] into the arena under a new code."""
    code = entries.used[COUNT]
    at = entries.used[BYTES]
    if (
        2 * (code + 1) > entries.slot_code.size
        or code >= entries.offset.size
        or at + n + PADDING > entries.text.size
    ):
        entries.used[WANTED] = n
        return FULL
    for k in range(n):
        entries.text[at + k] = text[i + k]
    entries.offset[code] = at
    entries.length[code] = n
    entries.slot_hash[slot] = h
    entries.slot_code[slot] = code
    entries.used[COUNT] = code + 1
    entries.used[BYTES] = at + n
    return code


@kernel
def intern_text(entries: Entries, text: Text, i: int, n: int) -> int:
    """`intern` for callers in Python."""
    return intern(entries, text, i, n)


@kernel
def fill_slots(old: Entries, slot_hash: npt.NDArray[np.uint64], slot_code: npt.NDArray[np.int32]) -> None:
    """Re-insert the entries of `old` into larger slot arrays."""
    last_slot = slot_code.size - 1
    for k in range(old.slot_code.size):
        if old.slot_code[k] >= 0:
            slot = np.int64(old.slot_hash[k] & u64(last_slot))
            while slot_code[slot] >= 0:
                slot = (slot + 1) & last_slot
            slot_hash[slot] = old.slot_hash[k]
            slot_code[slot] = old.slot_code[k]


class Dictionary:
    """Owner of a dictionary's arrays: fills them from Python and enlarges them."""

    def __init__(self, entries: int, text_bytes: int) -> None:
        """Room for `entries` (a power of two) strings of `text_bytes` in total."""
        self.entries = Entries(
            slot_hash=np.zeros(2 * entries, np.uint64),
            slot_code=np.full(2 * entries, -1, np.int32),
            offset=np.zeros(entries, np.int64),
            length=np.zeros(entries, np.int64),
            text=np.zeros(text_bytes + PADDING, np.uint8),
            used=np.zeros(3, np.int64),
        )

    def __len__(self) -> int:
        return int(self.entries.used[COUNT])

    def add(self, text: str) -> int:
        """Code of `text`."""
        raw = text.encode()
        padded = np.frombuffer(raw + bytes(PADDING), np.uint8)
        code = intern_text(self.entries, padded.copy(), 0, len(raw))
        if code == FULL:
            self.grow()
            return self.add(text)
        return code

    def add_blank(self) -> int:
        """A code that no text ever gets."""
        code = len(self)
        self.entries.used[COUNT] += 1
        return code

    def grow(self) -> None:
        """Enlarge whatever was too small for the string that did not fit."""
        self.reserve(1, int(self.entries.used[WANTED]))

    def reserve(self, more: int, text_bytes: int) -> None:
        """Make room for `more` strings of `text_bytes` in total."""
        old = self.entries
        count, used_bytes = old.used[:WANTED].tolist()
        slots = old.slot_code.size
        while 2 * (count + more) > slots:
            slots *= 4
        if slots > old.slot_code.size:
            slot_hash = np.zeros(slots, np.uint64)
            slot_code = np.full(slots, -1, np.int32)
            fill_slots(old, slot_hash, slot_code)
            blank = np.zeros(slots // 2 - old.offset.size, np.int64)
            self.entries = self.entries._replace(
                slot_hash=slot_hash,
                slot_code=slot_code,
                offset=np.concatenate([old.offset, blank]),
                length=np.concatenate([old.length, blank]),
            )
        if used_bytes + text_bytes + PADDING > old.text.size:
            text = np.zeros(2 * (old.text.size + text_bytes), np.uint8)
            text[:used_bytes] = old.text[:used_bytes]
            self.entries = self.entries._replace(text=text)

    def raw(self, code: int) -> bytes:
        """The bytes of an entry."""
        at = int(self.entries.offset[code])
        return self.entries.text[at : at + int(self.entries.length[code])].tobytes()
