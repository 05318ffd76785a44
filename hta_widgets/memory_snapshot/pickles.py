"""Reads a pickle as plain data, without Python's unpickler: no object of it is ever made.

A kernel runs the few opcodes that dicts, lists, tuples, texts, numbers, bools and None need, on numbers that
stand for them.  Every other opcode (a global, a call, a state, a persistent id, an extension ...) ends the
reading with an error before anything follows from it.  What containers hold comes out as one long table.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from hta_widgets.arrays import Int64
from hta_widgets.jit import inline, kernel, outline
from hta_widgets.trace.reader.bytes import PADDING, Text, borrowed, byte_at, u64, word_at
from hta_widgets.trace.reader.dictionary import BYTES as TEXT_BYTES
from hta_widgets.trace.reader.dictionary import COUNT, Dictionary, Entries, borrowed_entries, intern

# kinds of values; that of a text is its code, that of a container its number
ABSENT, NONE, BOOL, INT, FLOAT, TEXT, CONTAINER, MARK = range(8)
IN_LIST: Final = -1  # the key of what a list or tuple holds

_BATCH: Final = 1000  # so many items of a list follow each other at most; longer lists go on
_ITEM_BYTES: Final = 16  # of what is on the stack
_SPARE: Final = 4 + PADDING // _ITEM_BYTES  # places on the stack that stay free

# status
DONE, NO_ROOM, REFUSED, CUT, WRONG = range(5)
# numbers of the state
AT, ITEMS, DEPTH, CONTAINERS, MEMO, OPCODE, WANTED, EMPTY, NUMBERS = range(
    9
)  # EMPTY: the last list, if it is

_OPCODES: Final = {
    "c": "GLOBAL", "\x93": "STACK_GLOBAL", "R": "REDUCE", "b": "BUILD", "i": "INST", "o": "OBJ",
    "\x81": "NEWOBJ", "\x92": "NEWOBJ_EX", "P": "PERSID", "Q": "BINPERSID", "\x82": "EXT1", "\x83": "EXT2",
    "\x84": "EXT4", "B": "BINBYTES", "C": "SHORT_BINBYTES", "\x8e": "BINBYTES8", "\x96": "BYTEARRAY8",
    "\x97": "NEXT_BUFFER", "\x98": "READONLY_BUFFER", "\x8f": "EMPTY_SET", "\x90": "ADDITEMS",
    "\x91": "FROZENSET", "I": "INT", "L": "LONG", "F": "FLOAT", "S": "STRING", "T": "BINSTRING",
    "U": "SHORT_BINSTRING", "V": "UNICODE", "0": "POP", "1": "POP_MARK", "2": "DUP", "g": "GET", "p": "PUT",
}  # fmt: skip


class PickleError(ValueError):
    """A pickle holds something else than plain data, or is damaged; `offset` is the byte where."""

    def __init__(self, reason: str, offset: int) -> None:
        self.reason, self.offset = reason, offset
        super().__init__(f"{reason} (byte {offset})")


class Graph(NamedTuple):
    """What a pickle holds: an item is in a container, under a key, and has a kind and a value."""

    container: Int64
    key: Int64  # code of a text, or IN_LIST
    kind: npt.NDArray[np.int8]
    value: Int64
    root: int  # number of the outermost container
    containers: int
    texts: Dictionary

    def text(self, code: int) -> str:
        """The text of a code."""
        return self.texts.raw(code).decode("utf-8", "replace")

    def code(self, text: str) -> int:
        """The code of a text."""
        return self.texts.add(text)


class _State(NamedTuple):
    container: Int64
    key: Int64
    kind: npt.NDArray[np.int8]
    value: Int64
    stack: Int64  # [depth] -> kind, value
    stack_bytes: Text  # the same memory
    memo: Int64  # [number] -> kind, value
    numbers: Int64
    texts: Entries
    list_of: Int64  # [code of what a list of containers holds] -> its number + 1, 0 where there is none


def plain_values(data: npt.NDArray[np.uint8]) -> Graph:
    """What a pickle holds.

    Raises:
        PickleError: it holds more than dicts, lists, tuples, texts, numbers, bools and None, or is
            damaged.
    """
    text = np.concatenate([data, np.zeros(PADDING, np.uint8)])
    size = len(data)
    texts = Dictionary(1 << 14, 1 << 20)
    items = max(1 << 12, size // 12)
    stack = np.empty((1 << 14, 2), np.int64)
    state = _State(
        container=np.empty(items, np.int64),
        key=np.empty(items, np.int64),
        kind=np.empty(items, np.int8),
        value=np.empty(items, np.int64),
        stack=stack,
        stack_bytes=_as_bytes(stack),
        memo=np.zeros((1 << 14, 2), np.int64),
        numbers=np.zeros(NUMBERS, np.int64),
        texts=texts.entries,
        list_of=np.zeros(texts.entries.offset.size, np.int64),
    )
    while True:
        status = run(text, size, state)
        at = int(state.numbers[AT])
        if status == DONE:
            break
        if status == REFUSED:
            opcode = int(state.numbers[OPCODE])
            name = _OPCODES.get(chr(opcode), f"an unknown opcode, 0x{opcode:02x}")
            raise PickleError(f"it holds more than plain data ({name}), and is not read for safety", at)
        if status == CUT:
            raise PickleError("the pickle is cut off", at)
        if status == WRONG:
            raise PickleError("the pickle is damaged", at)
        state = _with_room(state, texts, size)
    numbers = state.numbers
    kind, value = state.stack[0].tolist()
    if numbers[DEPTH] != 1 or kind != CONTAINER:
        raise PickleError("the pickle holds no dict or list", 0)
    n = int(numbers[ITEMS])
    return Graph(
        state.container[:n],
        state.key[:n],
        state.kind[:n],
        state.value[:n],
        value,
        int(numbers[CONTAINERS]),
        texts,
    )


def _with_room(state: _State, texts: Dictionary, size: int) -> _State:
    """The state with room for what did not fit. Nothing grows beyond what the pickle's bytes can fill."""
    numbers = state.numbers
    wanted = int(numbers[WANTED])
    if wanted > size:
        raise PickleError("the pickle is damaged", int(numbers[AT]))
    texts.reserve(64, _ITEM_BYTES * wanted + 64)
    items, depth, memo = len(state.value), len(state.stack), len(state.memo)
    stack = _longer(state.stack, numbers[DEPTH] + _SPARE > depth)
    list_of = np.zeros(texts.entries.offset.size, np.int64)
    list_of[: len(state.list_of)] = state.list_of
    return state._replace(
        container=_longer(state.container, numbers[ITEMS] + wanted + 4 > items),
        key=_longer(state.key, numbers[ITEMS] + wanted + 4 > items),
        kind=_longer(state.kind, numbers[ITEMS] + wanted + 4 > items),
        value=_longer(state.value, numbers[ITEMS] + wanted + 4 > items),
        stack=stack,
        stack_bytes=_as_bytes(stack),
        list_of=list_of,
        memo=_longer(state.memo, numbers[MEMO] + 4 > memo),
        texts=texts.entries,
    )


def _as_bytes(stack: Int64) -> Text:
    return stack.reshape(-1).view(np.uint8)


def _longer(array: npt.NDArray[Any], needed: bool) -> npt.NDArray[Any]:
    return np.concatenate([array, np.zeros_like(array)]) if needed else array


@inline
def _push(state: _State, kind: int, value: Any) -> None:
    depth = state.numbers[DEPTH]
    state.stack[depth, 0] = kind
    state.stack[depth, 1] = value
    state.numbers[DEPTH] = depth + 1


@outline
def _new_container(state: _State) -> None:
    _push(state, CONTAINER, state.numbers[CONTAINERS])
    state.numbers[CONTAINERS] += 1


@outline
def _mark(state: _State) -> int:
    """Where the last mark is on the stack; -1 if there is none."""
    at = state.numbers[DEPTH] - 1
    while at >= 0 and state.stack[at, 0] != MARK:
        at -= 1
    return at


@inline
def _add(state: _State, container: np.int64, key: np.int64, at: int) -> None:
    """Put what is on the stack into a container."""
    n = state.numbers[ITEMS]
    state.container[n] = container
    state.key[n] = key
    state.kind[n] = state.stack[at, 0]
    state.value[n] = state.stack[at, 1]
    state.numbers[ITEMS] = n + 1


@outline
def _fill(state: _State, below: int, first: int, pairs: bool) -> bool:
    """Put all from `first` on into the container at `below`, and take it off the stack."""
    depth = state.numbers[DEPTH]
    if below < 0 or state.stack[below, 0] != CONTAINER or (pairs and (depth - first) % 2 != 0):
        return False
    container = state.stack[below, 1]
    at = first
    while at < depth:
        if pairs:
            # keys that are no texts are found by nobody
            key = state.stack[at, 1] if state.stack[at, 0] == TEXT else np.int64(-2)
            _add(state, container, key, at + 1)
            at += 2
        else:
            _add(state, container, np.int64(IN_LIST), at)
            at += 1
    state.numbers[DEPTH] = below + 1
    return True


@outline
def _append(state: _State, mark: int) -> bool:
    """Put all above a mark into the list below it.

    Each event of the allocator has a list of frames of its own, but most hold the same: of lists of the same
    containers, the first stands for all.
    """
    numbers = state.numbers
    depth, last = numbers[DEPTH], numbers[MEMO] - 1
    container = state.stack[mark - 1, 1]
    # nothing was memorised since: whoever refers to the list later does so by this number
    can_share = container == numbers[EMPTY] and last >= 0 and state.memo[last, 0] == CONTAINER
    can_share = can_share and state.memo[last, 1] == container and 0 < depth - mark - 1 < _BATCH
    numbers[EMPTY] = -1
    for at in range(mark + 1, depth):
        can_share = can_share and state.stack[at, 0] == CONTAINER
    if can_share:
        code = intern(
            state.texts, state.stack_bytes, _ITEM_BYTES * (mark + 1), _ITEM_BYTES * (depth - mark - 1)
        )
        if state.list_of[code] > 0:
            state.stack[mark - 1, 1] = state.memo[last, 1] = state.list_of[code] - 1
            numbers[DEPTH] = mark
            return True
        state.list_of[code] = container + 1
    return _fill(state, mark - 1, mark + 1, False)


@outline
def _tuple(state: _State, first: int) -> bool:
    """Make a tuple of all from `first` on."""
    depth = state.numbers[DEPTH]
    if first < 0 or first > depth:
        return False
    for at in range(first, depth):
        if state.stack[at, 0] == MARK:
            return False
        _add(state, state.numbers[CONTAINERS], np.int64(IN_LIST), at)
    state.numbers[DEPTH] = first
    _new_container(state)
    return True


@outline
def _unsigned(text: Text, i: int, n: int) -> Any:
    return np.int64(word_at(text, i) & (u64(0xFFFFFFFFFFFFFFFF) >> u64(64 - 8 * n)))


@outline
def _long(text: Text, i: int, n: int) -> Any:
    """An integer of n bytes; one that takes more than 64 bits as its lowest."""
    if n <= 0:
        return np.int64(0)
    value = _unsigned(text, i, min(n, 8))
    if n < 8 and value >> np.int64(8 * n - 1):
        value -= np.int64(1) << np.int64(8 * n)
    return value


@outline
def _double(text: Text, i: int) -> np.int64:
    """The bits of a float64 that is written from its highest byte on."""
    value = u64(0)
    for k in range(8):
        value = (value << u64(8)) | u64(byte_at(text, i + k))
    return np.int64(value)


@outline
def _remember(state: _State, number: np.int64) -> bool:
    depth = state.numbers[DEPTH]
    if depth == 0 or state.stack[depth - 1, 0] == MARK:
        return False
    state.memo[number, 0] = state.stack[depth - 1, 0]
    state.memo[number, 1] = state.stack[depth - 1, 1]
    return True


@kernel
def run(text: Text, size: int, state: _State) -> int:
    """Run opcodes from where the state is; it stays at the one that could not be run."""
    text = borrowed(text)
    state = _State(
        borrowed(state.container),
        borrowed(state.key),
        borrowed(state.kind),
        borrowed(state.value),
        borrowed(state.stack),
        borrowed(state.stack_bytes),
        borrowed(state.memo),
        borrowed(state.numbers),
        borrowed_entries(state.texts),
        borrowed(state.list_of),
    )
    numbers = state.numbers
    items, depths, memos = state.value.size, state.stack.shape[0], state.memo.shape[0]
    i = numbers[AT]
    while True:
        numbers[AT] = i
        if i >= size:
            return CUT
        op = byte_at(text, i)
        i += 1
        depth = numbers[DEPTH]
        # what an opcode adds: what is above the mark at most
        numbers[WANTED] = 0
        if depth + _SPARE > depths or numbers[MEMO] + 4 > memos or numbers[ITEMS] + depth + 4 > items:
            numbers[WANTED] = min(depth, size)
            return NO_ROOM
        good = True
        if op == 0x4B:  # BININT1
            _push(state, INT, np.int64(byte_at(text, i)))
            i += 1
        elif op == 0x4D:  # BININT2
            _push(state, INT, _unsigned(text, i, 2))
            i += 2
        elif op == 0x4A:  # BININT
            _push(state, INT, _long(text, i, 4))
            i += 4
        elif op == 0x8A or op == 0x8B:  # LONG1, LONG4
            width = 1 if op == 0x8A else 4
            n = _unsigned(text, i, width)
            i += width
            if n > size - i:
                return CUT
            _push(state, INT, _long(text, i, n))
            i += n
        elif op == 0x47:  # BINFLOAT
            _push(state, FLOAT, _double(text, i))
            i += 8
        elif op == 0x8C or op == 0x58 or op == 0x8D:  # SHORT_BINUNICODE, BINUNICODE, BINUNICODE8
            width = 1 if op == 0x8C else 4 if op == 0x58 else 8
            n = _unsigned(text, i, width)
            i += width
            if n < 0 or n > size - i:
                return CUT
            used = state.texts.used
            if (
                2 * (used[COUNT] + 2) > state.texts.slot_code.size
                or used[TEXT_BYTES] + n + PADDING > state.texts.text.size
            ):
                numbers[WANTED] = n
                return NO_ROOM
            _push(state, TEXT, np.int64(intern(state.texts, text, i, n)))
            i += n
        elif op == 0x4E:
            _push(state, NONE, np.int64(0))
        elif op == 0x88 or op == 0x89:
            _push(state, BOOL, np.int64(op == 0x88))
        elif op == 0x7D or op == 0x5D or op == 0x29:  # EMPTY_DICT, EMPTY_LIST, EMPTY_TUPLE
            _new_container(state)
            numbers[EMPTY] = numbers[CONTAINERS] - 1 if op == 0x5D else np.int64(-1)
        elif op == 0x28:
            _push(state, MARK, np.int64(0))
        elif op == 0x73:  # SETITEM
            good = depth >= 3 and _fill(state, depth - 3, depth - 2, True)
        elif op == 0x75:  # SETITEMS
            mark = _mark(state)
            good = mark > 0 and _fill(state, mark - 1, mark + 1, True)
        elif op == 0x61:  # APPEND
            numbers[EMPTY] = -1
            good = depth >= 2 and _fill(state, depth - 2, depth - 1, False)
        elif op == 0x65:  # APPENDS
            mark = _mark(state)
            if mark > 0:
                n = depth - mark - 1
                used = state.texts.used
                if (
                    2 * (used[COUNT] + 2) > state.texts.slot_code.size
                    or used[TEXT_BYTES] + _ITEM_BYTES * n + PADDING > state.texts.text.size
                ):
                    numbers[WANTED] = n
                    return NO_ROOM
                good = state.stack[mark - 1, 0] == CONTAINER and _append(state, mark)
            else:
                good = False
        elif 0x85 <= op <= 0x87:  # TUPLE1 to TUPLE3
            good = _tuple(state, depth - (op - 0x84))
        elif op == 0x74:  # TUPLE
            mark = _mark(state)
            good = mark >= 0 and _tuple(state, mark + 1)
            if good:
                state.stack[mark, 0], state.stack[mark, 1] = (
                    state.stack[mark + 1, 0],
                    state.stack[mark + 1, 1],
                )
                numbers[DEPTH] = mark + 1
        elif op == 0x94:  # MEMOIZE
            good = _remember(state, numbers[MEMO])
            numbers[MEMO] += 1
        elif op == 0x71 or op == 0x72:  # BINPUT, LONG_BINPUT
            width = 1 if op == 0x71 else 4
            number = _unsigned(text, i, width)
            i += width
            # a memo without gaps: no number asks for more memory than the pickle is long
            good = number <= numbers[MEMO] and _remember(state, number)
            numbers[MEMO] = max(numbers[MEMO], number + 1)
        elif op == 0x68 or op == 0x6A:  # BINGET, LONG_BINGET
            width = 1 if op == 0x68 else 4
            number = _unsigned(text, i, width)
            i += width
            good = number < numbers[MEMO]
            if good:
                _push(state, state.memo[number, 0], state.memo[number, 1])
        elif op == 0x80:  # PROTO
            i += 1
        elif op == 0x95:  # FRAME
            i += 8
        elif op == 0x2E:
            return DONE
        else:
            numbers[OPCODE] = op
            return REFUSED
        if i > size:
            return CUT
        if not good:
            return WRONG
