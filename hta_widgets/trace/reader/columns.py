"""From blocks of text to an `EventTable`: runs the scanner's kernels and adds what they find to columns."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from hta_widgets.trace.reader import event_scan, json_text, values
from hta_widgets.trace.reader.bytes import PADDING, Text
from hta_widgets.trace.reader.dictionary import COUNT, FULL, Dictionary, intern_text
from hta_widgets.trace.reader.event_scan import ARGUMENTS, DEFERRED, FIRST_SPARSE, NO_ROOM, ROWS, SKIP, START
from hta_widgets.trace.reader.schema import DENSE_COLUMNS, NULL, Column, argument_columns
from hta_widgets.trace.reader.table import EventTable, Problem

_TEXTS = DENSE_COLUMNS[:START]
_TIMES = DENSE_COLUMNS[START:]
_KEYS = 1024
_BYTES_PER_EVENT = 192  # a guess: most have 220 to 540; a fuller block is scanned in two goes
_LEAST_ROOM = 1024  # for events
_NAMES, _NAME_BYTES = 1 << 13, 1 << 19  # to begin with
_KIND = {"int": event_scan.INT, "float": event_scan.FLOAT, "text": event_scan.TEXT, "json": event_scan.JSON}

_ODD = {
    event_scan.ODD_SEPARATORS: "events with a comma missing or too many; read all the same",
    event_scan.ODD_SCALARS: "events with numbers that are none in JSON, such as 01 or .5; read all the same",
    event_scan.ODD_NESTING: "events with lists or objects that are no JSON, such as [1, 2}; read as text",
}

Sparse = tuple[npt.NDArray[np.int32], npt.NDArray[Any]]


_GROWTH = 1.125
_PIECE = 1 << 16  # values recoded at once: as indices they take twice the memory


@dataclass
class _Piece:
    """The events of one block, in the arrays that the next block uses again."""

    n: int
    texts: npt.NDArray[np.int32]
    times: npt.NDArray[np.int64]
    sparse: dict[int, Sparse]


class _Growing:
    """A column to which blocks are added. It grows where it lies: long ones are never in memory twice.

    Its first block tells how long it may become: room takes no memory until it is written to, and what a
    column grows by is, with zeros.
    """

    def __init__(self, dtype: npt.DTypeLike) -> None:
        self._values = np.empty(0, dtype)
        self._n = 0

    def add(self, values: npt.NDArray[Any], whole: float) -> None:
        end = self._n + len(values)
        if not self._n:
            self._values = np.empty(int(_GROWTH * whole * end), self._values.dtype)
        if end > len(self._values):
            self._values.resize(max(end, int(_GROWTH * len(self._values))), refcheck=False)
        self._values[self._n : end] = values
        self._n = end

    def take(self) -> npt.NDArray[Any]:
        """The whole column, which is held here no longer."""
        values, self._values = self._values, np.empty(0, self._values.dtype)
        values.resize(self._n, refcheck=False)
        return values


class ColumnScanner:
    """Scans the blocks of one file and collects their columns."""

    def __init__(self, extra_args: tuple[str, ...], block_bytes: int, text_bytes: int | None = None) -> None:
        self.columns = argument_columns(extra_args)
        self.n = 0
        self._text_bytes = text_bytes or 0  # of the whole file, a guess; 0 where there is none
        self._names = Dictionary(_NAMES, _NAME_BYTES)
        self._names.add("C")
        self._plan = _plan(extra_args)
        self._keys = int(self._plan.keys.used[COUNT])
        self._found = _output(
            len(self.columns),
            max(_LEAST_ROOM, block_bytes // _BYTES_PER_EVENT),
            max(_LEAST_ROOM, block_bytes // 256),
        )
        self._texts = [_Growing(np.int32) for _ in _TEXTS]
        self._times = [_Growing(np.int64) for _ in _TIMES]
        self._sparse: dict[int, tuple[_Growing, _Growing]] = {}
        self._unreadable: Counter[str] = Counter()
        self._first_unreadable: dict[str, int] = {}
        self._odd: Counter[int] = Counter()
        self._first_odd: dict[int, int] = {}

    def scan(self, text: Text, start: int, stop: int, offset: int, longest: int) -> tuple[int, int]:
        """Read events of text[start : stop]; `offset` is the file offset of text[0].  (cursor, status) as
        `scan_block`.

        The PADDING bytes behind `stop` are overwritten.
        """
        text[stop : stop + PADDING] = json_text.QUOTE
        while True:
            commas = self._found.filled[event_scan.COMMAS]
            after, status = event_scan.scan_block(
                text, start, stop, longest, self._names.entries, self._plan, self._found
            )
            if self._plan.keys.used[COUNT] > self._keys and self._learn_spellings():
                self._empty()
                self._found.filled[event_scan.COMMAS] = commas
                continue
            start = after
            n = int(self._found.filled[ROWS])
            self._keep(text, offset, n, max(1.0, self._text_bytes / (offset + start)))
            if status != NO_ROOM:
                return start, status
            self._names.grow()
            if n == 0:
                self._found = self._found._replace(
                    deferred=np.empty((2 * len(self._found.deferred), 4), np.int64)
                )

    def _learn_spellings(self) -> bool:
        """Whether keys that were new are known ones, spelt with escapes: what they hold was passed over."""
        keys = self._plan.keys
        first, self._keys = self._keys, int(keys.used[COUNT])
        learnt = False
        for code in range(first, self._keys):
            at = int(keys.offset[code])
            raw = keys.text[at : at + int(keys.length[code])].tobytes()
            if b"\\" not in raw:
                continue
            known = np.frombuffer(
                decode_text(raw).encode("utf-8", "replace") + bytes(PADDING), np.uint8
            ).copy()
            same = intern_text(keys, known, 0, len(known) - PADDING)
            self._keys = int(keys.used[COUNT])
            if same != FULL and (self._plan.action[:, same] != SKIP).any():
                self._plan.action[:, code] = self._plan.action[:, same]
                learnt = True
        return learnt

    def forget_separators(self) -> None:
        """Expect no comma before the next event: text before it was left out."""
        self._found.filled[event_scan.COMMAS] = event_scan.NO_EVENT_YET

    def _keep(self, text: Text, offset: int, n: int, whole: float) -> None:
        """Add the block's events to the columns and empty the arrays that blocks share.

        `whole`: how many times as much the file has as what is read.
        """
        found = self._found
        sparse: dict[int, Sparse] = {}
        for j in np.flatnonzero(found.counts).tolist():
            cells = found.floats if self.columns[j].kind == "float" else found.integers
            sparse[j] = found.rows[j, : found.counts[j]], cells[j, : found.counts[j]]
        piece = _Piece(n, found.texts[:, :n], found.times[:, :n], sparse)
        self._resolve(text, offset, piece, found.deferred[: int(found.filled[DEFERRED])].tolist())
        for odd, (count, first, _) in enumerate(found.odd.tolist()):
            self._odd[odd] += count
            if count:
                self._first_odd.setdefault(odd, offset + first)
        if n:
            self._add(piece, whole)
        self._empty()

    def _empty(self) -> None:
        """Empty the arrays that blocks share."""
        self._found.odd[:] = [0, -1, -1]
        self._found.counts[:] = 0
        self._found.filled[[ROWS, DEFERRED]] = 0

    def _add(self, piece: _Piece, whole: float) -> None:
        for column, codes in zip(self._texts, piece.texts, strict=True):
            column.add(codes, whole)
        for column, times in zip(self._times, piece.times, strict=True):
            column.add(times, whole)
        for j, (rows, cells) in piece.sparse.items():
            if j not in self._sparse:
                kind = self.columns[j].kind
                dtype = np.int32 if kind in ("text", "json") else cells.dtype
                self._sparse[j] = _Growing(np.int32), _Growing(dtype)
            self._sparse[j][0].add(rows + np.int32(self.n), whole)
            self._sparse[j][1].add(cells, whole)
        self.n += piece.n

    def _resolve(self, text: Text, offset: int, piece: _Piece, deferred: list[list[int]]) -> None:
        """Read the deferred values, in file order, so that the last of duplicate keys counts."""
        late: dict[int, dict[int, int | float]] = {}
        for row, action, start, stop in deferred:
            is_time = action < FIRST_SPARSE
            column = _TIMES[action - START] if is_time else self.columns[action - FIRST_SPARSE]
            raw = text[start:stop].tobytes()
            value = values.resolve(raw, column.kind, is_time)
            if value is None:
                if not values.is_null(raw):
                    self._unreadable[column.name] += 1
                    self._first_unreadable.setdefault(column.name, offset + start)
            elif not is_time:
                late.setdefault(action - FIRST_SPARSE, {})[row] = value
            elif piece.times[action - START, row] == NULL:
                piece.times[action - START, row] = value
        for j, cells in late.items():
            piece.sparse[j] = _merge(piece.sparse.get(j), cells, self.columns[j].kind == "float")

    def problems(self) -> list[Problem]:
        """Values that could not be read; they are null.  Text that was read though it is not JSON."""
        odd = [
            Problem("not_json", "warning", self._odd[kind], self._first_odd[kind], _ODD[kind])
            for kind in sorted(self._first_odd)
        ]
        return odd + [
            Problem(
                "unreadable_value",
                "warning",
                count,
                self._first_unreadable[name],
                f"{name} holds no {_kind_of(name)}",
            )
            for name, count in self._unreadable.items()
        ]

    def table(self, path: str, metadata: dict[str, Any], problems: list[Problem]) -> EventTable:
        """The events so far."""
        dense: dict[str, npt.NDArray[Any]] = {}
        sparse: dict[str, Sparse] = {}
        dictionaries: dict[str, list[str]] = {}
        raw = [self._names.raw(code) for code in range(len(self._names))]
        odd: set[int] = set()
        for column, codes in zip(_TEXTS, self._texts, strict=True):
            dense[column.name], dictionaries[column.name] = _own_dictionary(codes.take(), raw, column, odd)
        for column, times in zip(_TIMES, self._times, strict=True):
            dense[column.name] = times.take()
        for j, (rows, cells) in sorted(self._sparse.items()):
            column, found = self.columns[j], cells.take()
            if column.kind in ("text", "json"):
                found, dictionaries[column.name] = _own_dictionary(found, raw, column, odd)
            sparse[column.name] = rows.take(), found
        if odd:
            text = "texts with characters or escapes that JSON does not allow; read all the same"
            problems.append(Problem("not_json", "warning", len(odd), None, text))
        return EventTable(path, self.n, dense, sparse, dictionaries, metadata, problems)


def _plan(extra_args: tuple[str, ...]) -> event_scan.Plan:
    """A plan of its own for each file: the scanner adds the file's keys to it."""
    plan = _known_keys(extra_args)
    keys = plan.keys._replace(**{name: array.copy() for name, array in plan.keys._asdict().items()})
    return plan._replace(keys=keys, action=plan.action.copy(), following=plan.following.copy())


@lru_cache(maxsize=16)
def _known_keys(extra_args: tuple[str, ...]) -> event_scan.Plan:
    columns = argument_columns(extra_args)
    keys = Dictionary(_KEYS, _KEYS * 64)
    for _ in range(event_scan.UNKNOWN_KEY + 1):
        keys.add_blank()
    action = np.full((2, _KEYS), SKIP, np.int32)
    for k, column in enumerate(DENSE_COLUMNS):
        action[0, keys.add(column.key)] = k
    action[0, keys.add("args")] = ARGUMENTS
    for j, column in enumerate(columns):
        of_event = j in (event_scan.FLOW_ID, event_scan.BINDING)
        if j != event_scan.COUNTER_ARGS:
            for key in (column.key, *column.aliases):
                action[0 if of_event else 1, keys.add(key)] = FIRST_SPARSE + j
    kind = np.array([_KIND[column.kind] for column in columns], np.int32)
    following = np.full(_KEYS * event_scan.CATEGORIES_TOLD_APART, event_scan.UNKNOWN_KEY, np.int32)
    return event_scan.Plan(keys.entries, action, kind, following)


def _output(columns: int, rows: int, deferred: int) -> event_scan.Columns:
    integers = np.empty((columns, rows), np.int64)
    return event_scan.Columns(
        texts=np.empty((len(_TEXTS), rows), np.int32),
        times=np.empty((len(_TIMES), rows), np.int64),
        counts=np.zeros(columns, np.int64),
        rows=np.empty((columns, rows), np.int32),
        integers=integers,
        floats=integers.view(np.float64),
        deferred=np.empty((deferred, 4), np.int64),
        filled=np.array([0, 0, event_scan.NO_EVENT_YET, 0], np.int64),
        odd=np.array([[0, -1, -1]] * event_scan.ODD_KINDS, np.int64),
    )


def _merge(cells: Sparse | None, late: dict[int, int | float], is_float: bool) -> Sparse:
    """Add late values to a column's cells; a row that has a value keeps it, for it was read after the late
    one.
    """
    dtype = np.float64 if is_float else np.int64
    if cells is not None:
        have = set(cells[0].tolist()) & late.keys()
        late = {row: value for row, value in late.items() if row not in have}
    rows = np.fromiter(late.keys(), np.int32, len(late))
    found = np.array(list(late.values()), dtype)
    if cells is not None:
        rows, found = np.concatenate([cells[0], rows]), np.concatenate([cells[1], found])
    order = np.argsort(rows, kind="stable")
    return rows[order], found[order]


def _own_dictionary(
    codes: npt.NDArray[np.int32], raw: list[bytes], column: Column, odd: set[int]
) -> tuple[npt.NDArray[np.int32], list[str]]:
    """Recode a column, where it lies, from the file's dictionary to its own; texts that differ only in their
    escapes become one. Codes of texts that are no JSON are added to `odd`.
    """
    used = np.zeros(len(raw) + 1, bool)
    pieces = [codes[at : at + _PIECE] for at in range(0, len(codes), _PIECE)]
    for piece in pieces:
        used[piece] = True  # -1 falls on the last, unused place
    decode = decode_json if column.kind == "json" else decode_text
    own: dict[str, int] = {}
    recode = np.full(len(raw) + 1, -1, np.int32)
    for code in np.flatnonzero(used[:-1]).tolist():
        recode[code] = own.setdefault(decode(raw[code]), len(own))
        if _is_odd(raw[code]):
            odd.add(code)
    for piece in pieces:
        piece[:] = recode[piece]
    return codes, list(own)


_CONTROL = re.compile(rb"[\x00-\x1f]")
_CONTROL_NO_SPACE = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]")  # within lists and objects
_BAD_ESCAPE = re.compile(r'\\(?:(["\\/bfnrt]|u[0-9a-fA-F]{4})|)')


def _is_odd(raw: bytes) -> bool:
    """Whether JSON does not allow what a text, or a list or object of texts, holds."""
    if raw.isascii() and raw.isalnum():
        return False
    try:
        raw.decode()
    except UnicodeDecodeError:
        return True
    control = _CONTROL_NO_SPACE if raw[:1] in (b"[", b"{") else _CONTROL
    return bool(control.search(raw)) or any(not found[1] for found in _BAD_ESCAPE.finditer(raw.decode()))


def decode_json(raw: bytes) -> str:
    """Text as it stands; invalid UTF-8 becomes U+FFFD."""
    return raw.decode("utf-8", "replace")


def decode_text(raw: bytes) -> str:
    """The inside of a JSON string as text.  Unknown escapes stay as they are; lone surrogates become '?'."""
    text = raw.decode("utf-8", "replace")
    if "\\" not in text:
        return text
    repaired = _BAD_ESCAPE.sub(lambda match: match[0] if match[1] else "\\\\", text)
    try:
        unescaped = json.loads(f'"{repaired}"', strict=False)
    except ValueError:
        return text
    return (
        unescaped.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        if isinstance(unescaped, str)
        else text
    )


def _kind_of(name: str) -> str:
    return "time" if name in ("start_ns", "dur_ns") else "number that fits the column"
