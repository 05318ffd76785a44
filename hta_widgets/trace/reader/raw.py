"""A trace file as text, event by event: writes copies that change some events and nothing else.

Viewers and other tools read Kineto JSON, so what an analysis adds (counters, overlays, filtered traces) goes
into a new file. Times have 16 digits or more there, which a float cannot hold: events are therefore copied as
bytes, and an edited event keeps the text of its numbers.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
import orjson
from isal import igzip

from hta_widgets.arrays import Bool, Int64
from hta_widgets.errors import TraceFormatError
from hta_widgets.trace.reader.bytes import PADDING, Text
from hta_widgets.trace.reader.head import HeadSearch
from hta_widgets.trace.reader.metadata import find_tail, read_metadata
from hta_widgets.trace.reader.perfetto.head import is_perfetto
from hta_widgets.trace.reader.raw_scan import find_spans, find_values, joined, padded_text, spliced
from hta_widgets.trace.reader.source import Source
from hta_widgets.whole_files import replacing

_GzipFile: Any = igzip.IGzipFile
_BLOCK = 4 << 20
_BOM = b"\xef\xbb\xbf"
_SPACE = b" \t\r\n"
_LARGEST_INT = (1 << 64) - 1


class RawTrace:
    """The text of one trace file. Made by `RawTrace.read`.

    Attributes:
        path: the file it was read from.
        n: number of events; event ``i`` is row ``i`` of the `EventTable` (`event_id`).
    """

    def __init__(self, path: str, text: Text, start: Int64, stop: Int64, head: int, tail: bytes) -> None:
        self.path = path
        self.n = len(start)
        self._text = text
        self._start, self._stop = start, stop
        self._head, self._tail = head, tail

    @classmethod
    def read(cls, path: str | Path) -> RawTrace:
        """Read a file, plain or gzip. Of a damaged file, the events that the scanner reads, too.

        Raises:
            TraceNotFoundError: there is no file.
            TraceFormatError: it holds no trace.
        """
        with Source(path) as source:
            text = padded_text(source)
        first, is_array = _first_event(str(path), text)
        start, stop, end = find_spans(text, first)
        last = int(stop[-1]) if len(stop) else first
        rest = text[last:-PADDING].tobytes()
        if end is None:  # cut short, or the end is hidden behind a damaged event
            tail = b"]" if is_array else b"]" + (find_tail(rest) or b"}")
        else:
            closing, after = rest[: end - last], rest[end - last :]
            if not is_array:
                after = _whole(after)
            tail = (closing if closing.strip(_SPACE) == b"]" else b"]") + after
        return cls(str(path), text, start, stop, first, tail)

    def event(self, i: int) -> dict[str, Any]:
        """Event ``i``. Numbers with a fraction are `orjson.Fragment`, which `write` puts back unchanged."""
        text = str(self._between(int(self._start[i]), int(self._stop[i])), "utf-8", "replace")
        found = _DECODER.decode(text)
        assert isinstance(found, dict)
        return found

    def values(self, key: str) -> tuple[Int64, Int64]:
        """Where in the text each event's value of a key (at most 8 bytes) starts and stops; -1: none."""
        return find_values(self._text, self._start, self._stop, key)

    def begins_with(self, letter: str, at: Int64) -> Bool:
        """Whether the text has this letter at each place, that is, which kind of value starts there."""
        return self._text[at] == ord(letter)

    def replaced(self, pieces: Sequence[tuple[Int64, Int64, Sequence[bytes], Int64]]) -> RawTrace:
        """The trace with parts of events replaced: for many events at once, where `write` takes a few.

        Args:
            pieces: (first, last, texts, which) each: texts[which[k]] replaces the text from first[k] to
                last[k]. No two pieces overlap, and none extends beyond its event.
        """
        texts = [text for _, _, of_piece, _ in pieces for text in of_piece]
        before = np.cumsum([0, *(len(of_piece) for _, _, of_piece, _ in pieces)])
        which = np.concatenate([piece[3] + at for piece, at in zip(pieces, before.tolist(), strict=False)])
        first, last = (np.concatenate([piece[side] for piece in pieces]) for side in (0, 1))
        order = np.argsort(first, kind="stable")
        first, last, which = first[order], last[order], which[order]
        length = np.array([len(text) for text in texts], np.int64)
        moved = np.cumsum(np.append(0, length[which] - (last - first)))
        start, stop = (at + moved[np.searchsorted(first, at)] for at in (self._start, self._stop))
        text = spliced(self._text, first, last, texts, which)
        return RawTrace(self.path, text, start, stop, self._head, self._tail)

    def write(
        self,
        target: str | Path,
        *,
        edits: Mapping[int, dict[str, Any]] | None = None,
        keep: Bool | None = None,
        append: Iterable[dict[str, Any]] = (),
    ) -> None:
        """Write the trace to another file, atomically.

        Args:
            target: gzip if its name ends in ``.gz``. An existing file is replaced.
            edits: event -> its replacement; all other events are copied byte for byte.
            keep: which events to write, default all.
            append: events to add after the last one.

        Raises:
            ValueError: ``target`` is the file the trace was read from.
            IndexError: an edit names an event that does not exist.
        """
        target = Path(target)
        if _same_file(target, self.path):
            raise ValueError(f"{target} is the trace itself, which is never overwritten")
        edits = edits or {}
        wrong = [i for i in edits if not 0 <= i < self.n]
        if wrong:
            raise IndexError(f"no event {wrong[0]}: {self.path} has {self.n}")
        with replacing(target) as file:
            if target.name.endswith(".gz"):
                with _GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed:
                    self._write_to(packed, edits, keep, append)
            else:
                self._write_to(file, edits, keep, append)

    def _write_to(
        self,
        file: IO[bytes] | Any,
        edits: Mapping[int, dict[str, Any]],
        keep: Bool | None,
        append: Iterable[dict[str, Any]],
    ) -> None:
        separator = self._separator()
        waiting: list[bytes | memoryview] = [self._between(0, int(self._start[0]) if self.n else self._head)]
        size, begun = 0, False
        for piece in self._pieces(edits, keep, append):
            waiting += [separator] if begun else []
            begun = True
            size += len(piece)
            if size > _BLOCK:
                file.write(b"".join(waiting))
                file.write(piece)
                waiting, size = [], 0
            else:
                waiting.append(piece)
        file.write(b"".join([*waiting, self._tail]))

    def _between(self, start: int, stop: int) -> memoryview:
        return self._text.data[start:stop]

    def _separator(self) -> bytes:
        """The text between the first two events, so that appended events keep the file's layout."""
        between = bytes(self._between(int(self._stop[0]), int(self._start[1]))) if self.n > 1 else b""
        return between if between.strip(_SPACE) == b"," else b",\n"

    def _pieces(
        self,
        edits: Mapping[int, dict[str, Any]],
        keep: Bool | None,
        append: Iterable[dict[str, Any]],
    ) -> Iterator[bytes | memoryview]:
        """The events to write, unchanged neighbours in one piece."""
        kept = np.ones(self.n, np.bool_) if keep is None else np.asarray(keep, np.bool_)
        if len(kept) != self.n:
            raise ValueError(f"keep marks {len(kept)} events of {self.n}")
        edited = np.zeros(self.n, np.bool_)
        edited[list(edits)] = True
        parted = ~joined(self._text, self._start, self._stop)
        state = np.where(kept, np.where(edited, 2, 1), 0)
        breaks = np.flatnonzero((state[1:] != state[:-1]) | (state[1:] == 2) | parted) + 1
        bounds = [0, *breaks.tolist(), self.n] if self.n else []
        for first, stop in itertools.pairwise(bounds):
            if state[first] == 1:
                yield self._between(int(self._start[first]), int(self._stop[stop - 1]))
            elif state[first] == 2:
                yield _dumps(edits[first])
        for event in append:
            yield _dumps(event)


def _first_event(path: str, text: Text) -> tuple[int, bool]:
    """(where the events begin, just past the bracket; whether the file is a bare array)."""
    size = len(text) - PADDING
    opening = text[: min(_BLOCK, size)].tobytes()
    if is_perfetto(opening):
        needs = "CUPTI's counters, and copies with changes, need JSON: export_chrome_trace('trace.json')"
        raise TraceFormatError(path, f"a Perfetto trace; {needs}", 0)
    if opening.removeprefix(_BOM).lstrip(_SPACE).startswith(b"["):
        return opening.index(b"[") + 1, True
    search = HeadSearch()
    for start in range(0, size, _BLOCK):
        stop = min(size, start + _BLOCK)
        events = search.feed(text[start:stop].tobytes(), last=stop == size)
        if events is not None:
            if not events.is_array:
                raise TraceFormatError(path, "traceEvents is not an array", events.value)
            return events.value + 1, False
    raise TraceFormatError(path, "no traceEvents array: JSON, but not a trace", None)


def _whole(tail: bytes) -> bytes:
    """What follows the array; if that is cut or damaged, its readable keys and a closing brace."""
    found = read_metadata(b'{"traceEvents"', tail)
    if found.damaged_at is None and tail.rstrip(_SPACE).endswith(b"}"):
        return tail
    keys = b"".join(b", %b: %b" % (_dumps(key), _dumps(value)) for key, value in found.values.items())
    return keys + b"}"


def _integer(text: str) -> int | orjson.Fragment:
    value = int(text) if len(text) < 21 else None
    if value is None or abs(value) > _LARGEST_INT or value < -(1 << 63) or str(value) != text:
        return orjson.Fragment(text)
    return value


_DECODER = json.JSONDecoder(
    strict=False, parse_float=orjson.Fragment, parse_int=_integer, parse_constant=orjson.Fragment
)


def _dumps(event: Any) -> bytes:
    try:
        return orjson.dumps(event, option=orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS)
    except TypeError:
        # Half a surrogate pair, as broken names have, is text to Python and none to UTF-8.
        return orjson.dumps(_readable(event), option=orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS)


def _readable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, dict):
        return {_readable(key): _readable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_readable(item) for item in value]
    return value


def _same_file(target: Path, path: str) -> bool:
    try:
        return target.exists() and target.samefile(path)
    except OSError:
        return False
