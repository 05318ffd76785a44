"""Reads one trace file: head, events, tail; `perfetto` reads those that are not JSON.

The head (everything up to the `traceEvents` bracket) and the tail (everything after it) are metadata; the
events between them go through `ColumnScanner` block by block.  If an event is not JSON, the scanner looks for
the start of the next one, counts what it left out and goes on; if the file ends early, it keeps the complete
events.  `EventTable.problems` lists all of this.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from hta_widgets.errors import ForeignFileError, TraceFormatError, out_of_memory
from hta_widgets.jit import compiled
from hta_widgets.trace.reader.blocks import Block, BlockReader
from hta_widgets.trace.reader.columns import ColumnScanner
from hta_widgets.trace.reader.damage import (
    LONGEST_EVENT,
    LONGEST_EVENT_AFTER_DAMAGE,
    LOOK_BACK,
    SPACE,
    next_head,
)
from hta_widgets.trace.reader.dialects import as_kineto
from hta_widgets.trace.reader.event_scan import DONE, MALFORMED, scan_block
from hta_widgets.trace.reader.expansion import check_expansion, most_expansion
from hta_widgets.trace.reader.foreign import HEAD_BYTES, foreign, foreign_json
from hta_widgets.trace.reader.head import HeadSearch, second_key
from hta_widgets.trace.reader.metadata import find_tail, read_metadata
from hta_widgets.trace.reader.perfetto.head import is_perfetto
from hta_widgets.trace.reader.source import Source, TraceSource, describe
from hta_widgets.trace.reader.stated import in_words, unusable
from hta_widgets.trace.reader.table import EventTable, Problem, cut_short

if TYPE_CHECKING:
    from hta_widgets.trace.reader.perfetto.reading import PacketReading

Progress = Callable[[int, int | None], None]

_BOM = b"\xef\xbb\xbf"
_LONGEST_HEAD = 256 << 20
_LONGEST_TAIL = 64 << 20
_KEPT_WHEN_LOST = 1 << 20


def scan(
    source: TraceSource,
    *,
    extra_args: Sequence[str] = (),
    progress: Progress | None = None,
    block_bytes: int | None = None,
) -> EventTable:
    """Read every event of a trace file.

    `source` is a path, URL, fsspec OpenFile or binary stream, plain or gzip.  `extra_args` are further
    argument keys to keep, as JSON text columns under their own names.  `progress(bytes_done, bytes_total)` is
    called after each block, in bytes of the file itself (`bytes_total` is None if unknown); an exception that
    it raises stops the scan and propagates. `block_bytes` is the text read at once, by
    default as much as suits the size of the file.

    Raises TraceNotFoundError if there is no file, TraceFormatError if it holds no trace, or far more text
    than a recording of its size (`expansion`), OutOfMemoryError if the memory is too small for it.
    """
    most = most_expansion()
    with (
        out_of_memory(f"reading {describe(source)}"),
        Source(source) as opened,
        BlockReader(opened, block_bytes) as blocks,
    ):
        reading: _Reading | PacketReading | None = None
        try:
            for block in blocks:
                if reading is None:
                    reading = _reading(opened.path, block, blocks, tuple(extra_args))
                text = block.offset + block.stop
                reading.feed(block)
                if progress is not None:
                    progress(block.done, opened.total)
                if opened.compressed:
                    check_expansion(opened.path, block.done, text, reading.events, most)
        except TraceFormatError as error:
            if opened.damage is None:
                raise
            # it looks foreign or empty because decompression stopped at the damage
            raise TraceFormatError(
                error.path, f"{opened.damage}; nothing before it is a trace", None
            ) from error
        assert reading is not None  # even an empty file is a block
        return reading.finish(opened.damage)


def _reading(
    path: str, first: Block, blocks: BlockReader, extra_args: tuple[str, ...]
) -> _Reading | PacketReading:
    """What reads a file that begins with this block."""
    if is_perfetto(first.text[first.start : min(first.stop, first.start + HEAD_BYTES)].tobytes()):
        from hta_widgets.trace.reader.perfetto.reading import PacketReading

        return PacketReading(path, extra_args)
    return _Reading(path, ColumnScanner(extra_args, blocks.block_bytes, blocks.text_bytes))


def is_compiled() -> bool:
    """Whether the scanner has been compiled. The first scan compiles it."""
    return compiled(scan_block)


class _Reading:
    """The state between two blocks of one file."""

    def __init__(self, path: str, columns: ColumnScanner) -> None:
        self._path = path
        self._columns = columns
        self._head = b""
        self._search = HeadSearch()
        self._tail: list[bytes] = []
        self._tail_bytes = 0
        self._tail_at = 0
        self._carry = b""
        self._phase = self._read_head
        self._longest_event = LONGEST_EVENT
        self._malformed = 0
        self._malformed_at = 0
        self._lost = b""
        self._unfinished_at: int | None = None
        self._is_array = False
        self._begins = b""

    @property
    def events(self) -> int:
        """How many events were read so far."""
        return self._columns.n

    def feed(self, block: Block) -> None:
        """Read one block."""
        if self._carry:
            block.prepend(self._carry)
            self._carry = b""
        self._phase(block)

    # ---- head

    def _read_head(self, block: Block) -> None:
        text = block.text[block.start : block.stop].tobytes()
        start = len(self._search.text)
        if start == 0:
            body = text.removeprefix(_BOM).lstrip(SPACE)
            self._refuse_foreign(text, body, block.last)
            if body.startswith(b"["):
                self._is_array = True
                self._begins = body[:HEAD_BYTES]
                self._search.text += text
                self._begin_events(block, len(text) - len(body) + 1, 0)
                return
        events = self._search.feed(text, block.last)
        if events is not None:
            if not events.is_array:
                raise TraceFormatError(self._path, "traceEvents is not an array", events.value)
            self._begin_events(block, events.value + 1, start)
        elif block.last or len(self._search.text) > _LONGEST_HEAD:
            kind = foreign_json(bytes(self._search.text[:HEAD_BYTES]))
            raise ForeignFileError(self._path, str(kind), None, kind.known)

    def _refuse_foreign(self, text: bytes, body: bytes, last: bool) -> None:
        if not body and last:
            raise TraceFormatError(self._path, "the file is empty", 0)
        if body and body[:1] not in b"{[":
            if kind := foreign(text[:HEAD_BYTES], self._path):
                raise ForeignFileError(self._path, str(kind), 0)
            what = "HTML or XML" if body.startswith(b"<") else "not JSON"
            raise TraceFormatError(self._path, f"{what}: it starts with {body[:12]!r}", 0)

    def _begin_events(self, block: Block, end_of_head: int, start_of_block: int) -> None:
        read = self._search.text
        self._head = bytes(read[:end_of_head])
        if end_of_head < start_of_block:  # an earlier block had the key of a damaged head
            block.prepend(bytes(read[end_of_head:start_of_block]))
        else:
            block.start += end_of_head - start_of_block
        self._search = HeadSearch()  # frees the text
        self._phase = self._read_events
        self._read_events(block)

    # ---- events

    def _read_events(self, block: Block) -> None:
        while True:
            cursor, status = self._columns.scan(
                block.text, block.start, block.stop, block.offset, self._longest_event
            )
            block.start = cursor
            if status == DONE:
                self._phase = self._read_tail
                self._read_tail(block)
                return
            left = block.stop - cursor
            if status != MALFORMED and not block.last and left <= self._longest_event:
                self._carry = block.text[cursor : block.stop].tobytes()
                return
            if left == 0:
                self._unfinished_at = block.offset + cursor
                return
            if status != MALFORMED and next_head(block.text, block.start, block.stop) is None:
                self._unfinished_at = block.offset + cursor
                return
            self._note_malformed(block.offset + cursor, left)
            self._phase = self._find_event
            if not self._resume(block):
                return

    def _note_malformed(self, offset: int, left: int) -> None:
        if self._malformed == 0:
            self._malformed_at = offset
        self._malformed += 1
        self._columns.forget_separators()
        if left > self._longest_event:
            self._longest_event = max(LONGEST_EVENT_AFTER_DAMAGE, self._longest_event // 2)

    def _find_event(self, block: Block) -> None:
        """Look for the head of an event, after damage."""
        if self._resume(block):
            self._read_events(block)

    def _resume(self, block: Block) -> bool:
        """Move the block's start to the next event's start; if there is none, keep the text and wait for
        more.
        """
        head = next_head(block.text, block.start, block.stop)
        if head is not None:
            block.start = head
            self._phase = self._read_events
            self._lost = b""
            return True
        text = block.text[block.start : block.stop].tobytes()
        self._lost = (
            (self._lost[:-LOOK_BACK] + text)[-_KEPT_WHEN_LOST:] if self._lost else text[-_KEPT_WHEN_LOST:]
        )
        if not block.last:
            self._carry = text[-LOOK_BACK:]
        return False

    # ---- tail

    def _read_tail(self, block: Block) -> None:
        if not self._tail:
            self._tail_at = block.offset + block.start
        if self._tail_bytes < _LONGEST_TAIL:
            self._tail.append(block.text[block.start : block.stop].tobytes())
            self._tail_bytes += len(self._tail[-1])

    # ---- the end

    def finish(self, damage: str | None) -> EventTable:
        """Join columns, metadata and problems."""
        problems = self._problems(damage)
        metadata = {}
        tail = b"".join(self._tail) if self._tail else find_tail(self._lost)
        if not self._is_array:
            found = read_metadata(self._head, tail)
            metadata = found.values
            if self._tail and (second := second_key(tail)) is not None:
                text = "a second traceEvents; its events are not read"
                problems.append(Problem("second_events", "warning", 1, self._tail_at + second, text))
            if left_out := unusable(metadata):
                problems.append(Problem("metadata", "warning", len(left_out), None, in_words(left_out)))
            if found.damaged_at is not None and self._unfinished_at is None:
                problems.append(
                    Problem("metadata", "warning", 1, found.damaged_at, "part of the metadata is unreadable")
                )
        table = self._columns.table(self._path, metadata, problems)
        if self._is_array and not table.has("phase") and (kind := foreign_json(self._begins)).known:
            raise ForeignFileError(self._path, str(kind), None)
        if table.n == 0 and (self._malformed or self._unfinished_at is not None):
            at = self._malformed_at if self._malformed else self._unfinished_at
            raise TraceFormatError(self._path, "none of its events is complete", at)
        if table.n and not table.has("phase") and not table.has("start_ns"):
            what = "a list of objects, but not of trace events"
            raise ForeignFileError(self._path, what, len(self._head), known=False)
        return as_kineto(table)

    def _problems(self, damage: str | None) -> list[Problem]:
        problems = cut_short(damage, self._unfinished_at, "traceEvents", "events")
        if self._malformed:
            text = "not readable as JSON; left out"
            problems.append(Problem("malformed_event", "error", self._malformed, self._malformed_at, text))
        return problems + self._columns.problems()
