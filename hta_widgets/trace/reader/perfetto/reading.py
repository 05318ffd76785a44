"""Reads one Perfetto trace block by block: packets, and what they say together (`table`)."""

from __future__ import annotations

import zlib
from copy import deepcopy
from functools import lru_cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from hta_widgets.errors import ForeignFileError, TraceFormatError
from hta_widgets.trace.reader import event_scan
from hta_widgets.trace.reader.blocks import Block
from hta_widgets.trace.reader.bytes import PADDING, Text
from hta_widgets.trace.reader.columns import _KIND
from hta_widgets.trace.reader.dictionary import Dictionary
from hta_widgets.trace.reader.expansion import check_expansion, most_expansion
from hta_widgets.trace.reader.perfetto import layout
from hta_widgets.trace.reader.perfetto.ids import State
from hta_widgets.trace.reader.perfetto.packets import next_packet, scan_packets
from hta_widgets.trace.reader.perfetto.unread import held_packets
from hta_widgets.trace.reader.schema import argument_columns
from hta_widgets.trace.reader.table import EventTable, Problem, cut_short

METADATA_NAMES: Final = ("trace_metadata", "device_properties")
"""Instants under which Kineto writes what is about the whole trace; the first codes of the names."""

LONGEST_PACKET: Final = 64 << 20
_LOOK_BACK: Final = 1 << 16
_ROWS, _NOTES, _PLACES = 1 << 14, 1 << 14, 1 << 10  # to begin with
_TEXTS, _TEXT_BYTES = 1 << 14, 1 << 20
_ALIASES: Final = {
    "device id": "device",
    "stream id": "stream",
    "context id": "context",
    "correlation_id": "correlation",
    "registers_per_thread": "registers_per_thread",
    "shared_mem_dynamic": "shared_memory",
    "shared_mem_static": "shared_memory",
}


class Piece:
    """The rows of some packets."""

    def __init__(self, state: State, before: int) -> None:
        numbers = state.numbers
        self.events = state.events[: int(numbers[layout.ROWS])].T.copy()  # by column
        notes = state.notes[: int(numbers[layout.NOTES])].copy()
        notes[:, layout.NOTE_ROW] += before
        of_flows = notes[:, layout.NOTE] == layout.A_FLOW
        self.flows, self.deferred = notes[of_flows, 1:], notes[~of_flows, 1:]
        counts = numbers[layout.COUNTS : layout.COUNTS + int(numbers[layout.COLUMNS])]
        self.cells: dict[int, tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]] = {}
        for j in np.flatnonzero(counts).tolist():
            cells = state.cells[j, : int(counts[j])]
            self.cells[j] = (cells[:, 0] + before).astype(np.int32), cells[:, 1].copy()
        counts[:] = 0
        numbers[[layout.ROWS, layout.NOTES]] = 0


class PacketReading:
    """The state between two blocks of one file."""

    def __init__(self, path: str, extra_args: tuple[str, ...]) -> None:
        self.path = path
        self.extra_args = extra_args
        self.columns = argument_columns(extra_args)
        texts, self._marks = _keys(extra_args)
        self.texts = deepcopy(texts)
        self.pieces: list[Piece] = []
        self.rows = 0
        self.state = self._first_state()
        self._carry = b""
        self._lost = False
        self._lost_at: int | None = None
        self._losses = 0
        self._unfinished_at: int | None = None
        self._inflated = 0

    @property
    def events(self) -> int:
        """How many rows were read so far."""
        return self.rows

    @property
    def seen(self) -> npt.NDArray[np.int64]:
        """How many packets there are with each field."""
        return self.state.numbers[layout.SEEN : layout.SEEN + layout.MOST_FIELDS]

    def feed(self, block: Block) -> None:
        """Read one block."""
        if self._carry:
            block.prepend(self._carry)
            self._carry = b""
        if self._lost and not self._found(block):
            return
        while True:
            block.start, status = self._scan(block.text, block.start, block.stop, block.offset)
            if status == layout.COMPRESSED:
                self._unpack(block)
                continue
            wanted = int(self.state.numbers[layout.WANTED])
            if status == layout.ALL and block.start < block.stop:
                whole = not block.last and wanted <= LONGEST_PACKET
                if whole:
                    self._carry = block.text[block.start : block.stop].tobytes()
                    return
                if block.last and next_packet(block.text, block.start + 1, block.stop) < 0:
                    self._unfinished_at = block.offset + block.start
                    return
                status = layout.BROKEN
            if status != layout.BROKEN:
                return
            if self._lost_at is None:
                self._lost_at = block.offset + block.start
            self._losses += 1
            block.start += 1
            if not self._found(block):
                return

    def finish(self, damage: str | None) -> EventTable:
        """Join columns, metadata and problems."""
        problems = self._problems(damage)
        if not self.rows:
            raise self._without_events()
        from hta_widgets.trace.reader.perfetto.table import made

        return made(self, problems)

    # ---- packets

    def _scan(self, text: Text, start: int, stop: int, offset: int) -> tuple[int, int]:
        while True:
            start, status = scan_packets(text, start, stop, offset, self.state)
            self._flush()
            if status != layout.NO_ROOM:
                return start, status
            self._reserve(int(self.state.numbers[layout.WANTED]))

    def _flush(self) -> None:
        if self.state.numbers[layout.ROWS]:
            piece = Piece(self.state, self.rows)
            self.rows += piece.events.shape[1]
            self.pieces.append(piece)

    def _found(self, block: Block) -> bool:
        """Move the block's start to the next packets, after damage; False if they are in no block so far."""
        at = next_packet(block.text, block.start, block.stop)
        self._lost = at < 0
        if at >= 0:
            block.start = at
        elif not block.last:
            self._carry = block.text[max(block.start, block.stop - _LOOK_BACK) : block.stop].tobytes()
        return at >= 0

    def _unpack(self, block: Block) -> None:
        """Read packets that were packed (zlib) into one."""
        numbers = self.state.numbers
        packed = block.text[int(numbers[layout.PACKED_AT]) : int(numbers[layout.PACKED_END])].tobytes()
        at = block.offset + int(numbers[layout.PACKED_AT])
        most = most_expansion()
        inflater = zlib.decompressobj()
        limit = (100 << 20) + int((most or 1e4) * len(packed))
        try:
            text = inflater.decompress(packed, limit)
        except zlib.error:
            self._note_malformed(at)
            return
        self._inflated += len(text)
        check_expansion(
            self.path, block.done, self._inflated + len(inflater.unconsumed_tail), self.rows, most
        )
        padded = np.zeros(len(text) + PADDING, np.uint8)
        padded[: len(text)] = np.frombuffer(text, np.uint8)
        start, status = self._scan(padded, 0, len(text), at)
        if status != layout.ALL or start < len(text):
            self._note_malformed(at)

    def _note_malformed(self, at: int) -> None:
        numbers = self.state.numbers
        if not numbers[layout.MALFORMED]:
            numbers[layout.MALFORMED_AT] = at
        numbers[layout.MALFORMED] += 1

    # ---- room

    def _first_state(self) -> State:
        place = {column.name: j for j, column in enumerate(self.columns)}
        columns = len(self.columns)
        numbers = np.zeros(layout.COUNTS + 2 * columns, np.int64)
        numbers[layout.COUNTS + columns :] = [_KIND[column.kind] for column in self.columns]
        numbers[layout.COLUMNS] = columns
        numbers[[layout.LAST_SEQUENCE, layout.LAST_TRACK]] = layout.NONE
        names = ("grid", "block", "shared_memory", "device")
        numbers[[layout.GRID, layout.BLOCK, layout.SHARED, layout.DEVICE]] = [place[name] for name in names]
        cells = np.empty((columns, _ROWS, 2), np.int64)
        words = np.zeros(1 << 13, np.int64)
        return State(
            texts=self.texts.entries,
            marks=self._marks.copy(),
            events=np.empty((_ROWS, layout.EVENT_COLUMNS), np.int64),
            cells=cells,
            floats=cells.view(np.float64),
            notes=np.empty((_NOTES, 4), np.int64),
            places=np.zeros((_PLACES, layout.PLACE_COLUMNS), np.int64),
            numbers=numbers,
            words=words,
            scratch=words.view(np.uint8),
        )

    def _reserve(self, n: int) -> None:
        """Make room for a packet of n bytes; rows were flushed."""
        state = self.state
        self.texts.reserve(n + 514, layout.TEXT_PER_BYTE * n + layout.TEXT_ROOM)
        marks = state.marks
        if len(marks) < self.texts.entries.offset.size:
            marks = np.full((self.texts.entries.offset.size, layout.MARKS), layout.NONE, np.int64)
            marks[: len(state.marks)] = state.marks
        rows = max(len(state.events), 2 + n // 2)
        cells = state.cells
        if rows > len(state.events):
            cells = np.empty((cells.shape[0], rows, 2), np.int64)
        places = state.places
        if state.numbers[layout.PLACES] + 8 > len(places):
            places = np.concatenate([places, np.zeros_like(places)])
        words = _at_least(state.words, (2 * n + 64 + PADDING) // 8 + 1)
        self.state = state._replace(
            texts=self.texts.entries,
            marks=marks,
            events=_at_least(state.events, rows),
            cells=cells,
            floats=cells.view(np.float64),
            notes=_at_least(state.notes, n // 2 + 4),
            places=places,
            words=words,
            scratch=words.view(np.uint8),
        )

    # ---- the end

    def _problems(self, damage: str | None) -> list[Problem]:
        problems = cut_short(damage, self._unfinished_at, "a packet", "packets")
        numbers = self.state.numbers
        if self._losses:
            text = "no packet begins here; reading went on at the next ones"
            problems.append(Problem("malformed_event", "error", self._losses, self._lost_at, text))
        if count := int(numbers[layout.MALFORMED]):
            text = "packets that are not readable; left out"
            problems.append(
                Problem("malformed_event", "error", count, int(numbers[layout.MALFORMED_AT]), text)
            )
        if count := int(numbers[layout.UNKNOWN_CLOCK]):
            text = "events on clocks that no snapshot ties to the others; their times may be wrong"
            problems.append(Problem("clocks", "warning", count, None, text))
        if count := int(numbers[layout.UNRESOLVED]):
            text = "names and categories that the file refers to and does not hold; left out"
            problems.append(Problem("unresolved_name", "warning", count, None, text))
        return problems

    def _without_events(self) -> TraceFormatError:
        numbers = self.state.numbers
        if not numbers[layout.PACKETS] or (self._unfinished_at is not None and numbers[layout.PACKETS] < 2):
            at = self._lost_at if self._unfinished_at is None else self._unfinished_at
            return TraceFormatError(self.path, "a Perfetto trace in which no packet is complete", at)
        held = held_packets(self.seen)
        what = f"a Perfetto trace without slices, kernels or counters{f' (it holds {held})' if held else ''}"
        remedy = "record with torch.profiler.profile(...) and export_chrome_trace('trace.json')"
        return ForeignFileError(self.path, f"{what}: {remedy}", None)


@lru_cache(maxsize=4)
def _keys(extra_args: tuple[str, ...]) -> tuple[Dictionary, npt.NDArray[np.int64]]:
    """The texts that mean something from the start, and what to do with each as a key; neither is changed."""
    texts = Dictionary(_TEXTS, _TEXT_BYTES)
    for name in METADATA_NAMES:
        texts.add(name)
    marks = np.full((_TEXTS, layout.MARKS), layout.NONE, np.int64)
    columns = argument_columns(extra_args)
    place = {column.name: j for j, column in enumerate(columns)}
    for j, column in enumerate(columns):
        if j not in (event_scan.FLOW_ID, event_scan.BINDING, event_scan.COUNTER_ARGS):
            for key in (column.key, *column.aliases):
                marks[texts.add(key), layout.ACTION] = j
    for key, name in _ALIASES.items():
        marks[texts.add(key), layout.ACTION] = place[name]
    marks[texts.add("metadata"), layout.ACTION] = layout.IS_METADATA
    return texts, marks


def _at_least(array: npt.NDArray[Any], n: int) -> npt.NDArray[Any]:
    """The array, or one of n rows in its place."""
    return array if len(array) >= n else np.zeros((n, *array.shape[1:]), array.dtype)
