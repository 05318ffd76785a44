"""Rows of packets -> an `EventTable` with the columns of Kineto's JSON.

Slices get their durations, tracks become processes and threads, stages of devices the categories of kernels
and copies, flows and the names of processes events of their own.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections import Counter
from collections.abc import Sequence
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import orjson

from hta_widgets.arrays import Int32, Int64
from hta_widgets.trace.reader import values
from hta_widgets.trace.reader.bytes import PADDING
from hta_widgets.trace.reader.columns import ColumnScanner, _merge
from hta_widgets.trace.reader.dialects import as_kineto
from hta_widgets.trace.reader.dictionary import Dictionary
from hta_widgets.trace.reader.perfetto import layout
from hta_widgets.trace.reader.perfetto.annotations import NAME_IID, STRING_IID, as_json, decoded
from hta_widgets.trace.reader.perfetto.categories import with_categories
from hta_widgets.trace.reader.perfetto.layout import (
    A_KEY,
    A_STRING,
    BEGIN,
    CATEGORY,
    COMPLETE,
    COUNTER,
    DURATION,
    END,
    INSTANT,
    KIND,
    LANE,
    METADATA,
    NAME,
    STAGE,
    STAGE_COUNTER,
    TIME,
    TRACK,
)
from hta_widgets.trace.reader.perfetto.rendered import as_json_texts
from hta_widgets.trace.reader.perfetto.slices import ends_of
from hta_widgets.trace.reader.perfetto.tracks import metadata_events, places
from hta_widgets.trace.reader.perfetto.wire import fields
from hta_widgets.trace.reader.schema import COUNTER_ARGS, DENSE_COLUMNS, NULL, Column
from hta_widgets.trace.reader.stated import in_words, unusable
from hta_widgets.trace.reader.table import EventTable, Problem

if TYPE_CHECKING:
    from hta_widgets.trace.reader.perfetto.reading import PacketReading

Sparse = tuple[Int32, npt.NDArray[Any]]

_STAGES: Final = {
    "Kernel": "kernel",
    "Memcpy": "gpu_memcpy",
    "Memset": "gpu_memset",
    "Annotation": "gpu_user_annotation",
    "EventRecord": "graph_event_node",
    "HostNode": "graph_host_node",
}
_LAST_NUMBER: Final = re.compile(r"(\d+)\D*$")
_BYTES_OF_ID: Final = 24
_ANNOTATIONS: Final = 4  # the field of a TrackEvent
_LONGEST_METADATA: Final = 1 << 20


def made(reading: PacketReading, problems: list[Problem]) -> EventTable:
    """The table of what was read."""
    return _Making(reading, problems).table()


class _Names(Sequence[str]):
    """The texts by their codes, decoded when they are asked for."""

    def __init__(self, texts: Dictionary) -> None:
        self._texts = texts

    def __len__(self) -> int:
        return len(self._texts)

    def __getitem__(self, code: Any) -> Any:
        return self._texts.raw(code).decode("utf-8", "replace")


class _Texts:
    """The texts of a column and their codes."""

    def __init__(self) -> None:
        self._code: dict[str, int] = {}

    def code(self, text: str) -> int:
        return self._code.setdefault(text, len(self._code))

    def recode(self, codes: Int64, texts: Sequence[str]) -> Int32:
        """Codes of another dictionary as codes of this one; negative ones stay -1."""
        used = np.zeros(len(texts) + 1, np.bool_)
        used[codes] = True
        own = np.full(len(texts) + 1, -1, np.int32)
        for code in np.flatnonzero(used[:-1]).tolist():
            own[code] = self.code(texts[code])
        return own[codes]

    def each(self, texts: list[str]) -> Int32:
        return np.array([self.code(text) for text in texts], np.int32)

    @property
    def dictionary(self) -> list[str]:
        return list(self._code)


class _Making:
    def __init__(self, reading: PacketReading, problems: list[Problem]) -> None:
        self.reading = reading
        self.state = reading.state
        self.problems = problems
        self.events: Int64 = np.concatenate([piece.events for piece in reading.pieces], axis=1)
        self.kind = self.events[KIND]
        self.names = _Names(reading.texts)
        self.unreadable: Counter[str] = Counter()
        self.columns = {column.name: column for column in reading.columns}
        self.metadata = self._metadata()

    def table(self) -> EventTable:
        tracks = self.state.places[: int(self.state.numbers[layout.PLACES])]
        self.tracks = places(tracks, self.names)
        ends = ends_of(self.kind, self.events[TIME], self.events[TRACK], len(tracks))
        place = self._places(ends)
        chosen = np.flatnonzero(~self._is_end & (place >= 0))
        cells = self._cells(place)
        texts = {column.name: _Texts() for column in DENSE_COLUMNS[:5]}
        dense = self._dense(chosen, ends, cells, texts)
        self._add_counters(chosen)
        sparse, dictionaries = self._sparse(cells)
        self._spread(place, sparse, dictionaries)
        n = self._append(len(chosen), place, dense, texts, sparse, dictionaries, tracks)
        for name, text in texts.items():
            dictionaries[name] = text.dictionary
        self._note(ends)
        table = EventTable(self.reading.path, n, dense, sparse, dictionaries, self.metadata, self.problems)
        return as_kineto(with_categories(table, bool((self.kind == STAGE).any()), self.reading.seen))

    # ---- rows

    def _places(self, ends: Int64) -> Int32:
        """The row of the table for each row that was read: that of its begin for an end, -1 for none."""
        kept = ~self._is_end & ~self._about_trace
        place = np.where(kept, np.cumsum(kept, dtype=np.int32) - 1, -1)
        begins = np.flatnonzero(ends >= 0)
        place[ends[begins]] = place[begins]
        return place

    @cached_property
    def _is_end(self) -> npt.NDArray[np.bool_]:
        return self.kind == END

    @cached_property
    def _about_trace(self) -> npt.NDArray[np.bool_]:
        """Which rows are about the whole trace, and no events."""
        return (self.kind == INSTANT) & (self.events[METADATA] <= -2)

    def _dense(
        self, chosen: Int64, ends: Int64, cells: dict[str, Sparse], texts: dict[str, _Texts]
    ) -> dict[str, Any]:
        events, kind = np.take(self.events, chosen, axis=1), self.kind[chosen]
        end = ends[chosen]
        start = events[TIME]
        dur = np.where((kind == STAGE) | (kind == COMPLETE), np.maximum(events[DURATION], 0), NULL)
        paired = end >= 0
        dur[paired] = np.maximum(self.events[TIME, end[paired]] - start[paired], 0)
        if self.state.numbers[layout.HAS_ANCHOR]:
            start -= int(self.state.numbers[layout.ANCHOR])
            self.metadata.setdefault("baseTimeNanoseconds", int(self.state.numbers[layout.REALTIME]))
        letters = np.full(layout.COMPLETE + 1, "X", object)
        letters[[BEGIN, INSTANT, COUNTER, STAGE_COUNTER]] = ["B", "i", "C", "C"]
        phases = [str(letter) for letter in letters]
        phase_of_kind = kind.copy()
        phase_of_kind[paired] = COMPLETE
        track = events[TRACK]
        on_track = (kind != STAGE) & (kind != STAGE_COUNTER)
        at = np.where(on_track, track, 0)
        pids = texts["pid"].each([track.pid for track in self.tracks] or [""])
        tids = texts["tid"].each([track.tid for track in self.tracks] or [""])
        pid, tid = pids[np.minimum(at, len(pids) - 1)], tids[np.minimum(at, len(tids) - 1)]
        name = texts["name"].recode(events[NAME], self.names)
        counter = np.flatnonzero((kind == COUNTER) & (name < 0))
        if len(counter):
            own = texts["name"].each([track.name or track.tid for track in self.tracks])
            name[counter] = own[track[counter]]
        category = texts["category"].recode(np.where(on_track, events[CATEGORY], -1), self.names)
        self._place_stages(events, kind, cells, texts, (pid, tid, category))
        return {
            "phase": texts["phase"].recode(phase_of_kind, phases),
            "category": category,
            "name": name,
            "pid": pid,
            "tid": tid,
            "start_ns": start,
            "dur_ns": dur,
        }

    def _place_stages(
        self,
        events: Int64,
        kind: Int64,
        cells: dict[str, Sparse],
        texts: dict[str, _Texts],
        codes: tuple[Int32, Int32, Int32],
    ) -> None:
        """Put the work of devices where JSON has it: the device is the process, the stream the thread."""
        pid, tid, category = codes
        stages = np.flatnonzero(kind == STAGE)
        for device in np.unique(events[TRACK, stages]).tolist():
            pid[stages[events[TRACK, stages] == device]] = texts["pid"].code(str(device))
        lanes = events[LANE, stages]
        stream = np.full(len(kind), NULL, np.int64)
        if "stream" in cells:
            rows, found = cells["stream"]
            stream[rows] = found
        for lane in np.unique(lanes).tolist():
            text = self.names[lane] if lane >= 0 else ""
            number = _LAST_NUMBER.search(text)
            tid[stages[lanes == lane]] = texts["tid"].code(number[1] if number else text)
        known = stages[stream[stages] != NULL]
        for number in np.unique(stream[known]).tolist():
            tid[known[stream[known] == number]] = texts["tid"].code(str(number))
        for stage in np.unique(events[CATEGORY, stages]).tolist():
            text = self.names[stage] if stage >= 0 else "gpu_stage"
            category[stages[events[CATEGORY, stages] == stage]] = texts["category"].code(
                _STAGES.get(text, text)
            )
        counters = np.flatnonzero(kind == STAGE_COUNTER)
        for device in np.unique(events[TRACK, counters]).tolist():
            of_device = counters[events[TRACK, counters] == device]
            pid[of_device] = texts["pid"].code(f"GPU {device} Counters")
            tid[of_device] = -1

    # ---- cells

    def _cells(self, place: Int32) -> dict[str, Sparse]:
        """The sparse cells of each column by row; of a slice's end those that its begin lacks."""
        found: dict[str, Sparse] = {}
        late = self._late()
        for j, column in enumerate(self.reading.columns):
            parts = [piece.cells[j] for piece in self.reading.pieces if j in piece.cells]
            cells: Sparse | None = None
            if parts:
                integers = np.concatenate([part[1] for part in parts])
                is_float = column.kind == "float"
                cells = (
                    np.concatenate([part[0] for part in parts]),
                    integers.view(np.float64) if is_float else integers,
                )
            if column.name in late:
                cells = _merge(cells, late[column.name], column.kind == "float")
            if cells is not None:
                cells = self._moved(cells, place)
                if len(cells[0]):
                    found[column.name] = cells
        return found

    def _moved(self, cells: Sparse, place: Int32) -> Sparse:
        at, found = cells
        of_end = self._is_end[at]
        rows = place[at]
        kept = rows >= 0
        if of_end.any():
            order = np.lexsort((of_end, rows))
            ordered = rows[order]
            kept = kept[order] & np.append(True, ordered[1:] != ordered[:-1])
            rows, found = ordered, found[order]
        return (rows, found) if kept.all() else (rows[kept], found[kept])

    def _late(self) -> dict[str, dict[int, int | float]]:
        """Numbers that are written as texts, or are of another kind than their column."""
        late: dict[str, dict[int, int | float]] = {}
        number_of = cache(self._number)  # a recording has few different ones
        for piece in self.reading.pieces:
            for row, j, code in piece.deferred.tolist():
                name = self.reading.columns[j].name
                try:
                    number = number_of(j, code)
                except ValueError:
                    self.unreadable[name] += 1
                    continue
                if number is not None:
                    late.setdefault(name, {})[row] = number
        return late

    def _number(self, j: int, code: int) -> int | float | None:
        """The number of a text or message in column j, None for null; ValueError where it is none."""
        if code <= -2:
            raw = self.reading.texts.raw(-2 - code)
        else:
            value = self._decoded(code)
            raw = (value if isinstance(value, str) else as_json(value)).encode("utf-8", "replace")
        number = values.resolve(raw, self.reading.columns[j].kind, False)
        if number is None and not values.is_null(raw):
            raise ValueError("no number")
        return number

    def _decoded(self, code: int) -> Any:
        raw = self.reading.texts.raw(code)
        generation = int.from_bytes(raw[-8:], "little")
        return decoded(raw[:-8], lambda kind, number: self._interned.get((kind, generation, number), ""))

    @cached_property
    def _interned(self) -> dict[tuple[int, int, int], str]:
        """Names and texts that arguments refer to, by generation and id."""
        found = {}
        for code in np.flatnonzero(self.state.marks[: len(self.reading.texts), layout.MEANING] >= 0).tolist():
            raw = self.reading.texts.raw(code)
            if len(raw) != _BYTES_OF_ID:
                continue
            what, generation, number = np.frombuffer(raw, np.int64).tolist()
            if what in (A_KEY, A_STRING):
                kind = NAME_IID if what == A_KEY else STRING_IID
                found[kind, generation, number] = self.names[int(self.state.marks[code, layout.MEANING])]
        return found

    def _sparse(self, cells: dict[str, Sparse]) -> tuple[dict[str, Sparse], dict[str, list[str]]]:
        sparse: dict[str, Sparse] = {}
        dictionaries: dict[str, list[str]] = {}
        for name, (rows, found) in cells.items():
            column = self.columns[name]
            if column.kind in ("text", "json"):
                codes, dictionaries[name] = self._texts_of(column, found)
                kept = codes >= 0
                sparse[name] = rows[kept], codes[kept]
            else:
                sparse[name] = rows, found
        return sparse, dictionaries

    def _texts_of(self, column: Column, codes: Int64) -> tuple[Int32, list[str]]:
        """Codes of texts and messages as those of the column's own dictionary."""
        below = len(self.names) + 2
        used = np.zeros(below + len(self.names), np.bool_)
        used[codes + below] = True
        recode = np.full(len(used), -1, np.int32)
        own = _Texts()
        places = np.flatnonzero(used)
        messages = -2 - (places[places < below] - below)
        plain = dict(zip(messages.tolist(), as_json_texts(self.reading.texts, messages), strict=True))
        for at in places.tolist():
            code = at - below
            if code >= 0:
                text = self.names[code]
                recode[at] = own.code(json.dumps(text, ensure_ascii=False) if column.kind == "json" else text)
                continue
            json_text = plain[-2 - code] if column.kind == "json" else None
            if json_text is not None:
                recode[at] = own.code(json_text)
                continue
            try:
                value = self._decoded(-2 - code)
            except ValueError:
                self.unreadable[column.name] += 1
                continue
            is_text = column.kind == "text" and isinstance(value, str)
            recode[at] = own.code(value if is_text else as_json(value))
        return recode[codes + below], own.dictionary

    def _add_counters(self, chosen: Int64) -> None:
        """The values of counters as the arguments that they are in JSON."""
        rows = np.flatnonzero((self.kind[chosen] == COUNTER) | (self.kind[chosen] == STAGE_COUNTER))
        self._counters: tuple[Int32, list[str]] = (rows.astype(np.int32), [])
        if not len(rows):
            return
        events = self.events[:, chosen[rows]]
        texts = []
        floats = events[DURATION].copy().view(np.float64)
        for kind, name, track, value, number, is_float in zip(
            events[KIND].tolist(), events[NAME].tolist(), events[TRACK].tolist(),
            events[DURATION].tolist(), floats.tolist(), events[LANE].tolist(), strict=True,
        ):  # fmt: skip
            key = ""
            if kind == COUNTER:
                key = self.names[name] if name >= 0 else self.tracks[track].name
            texts.append(as_json({key: number if is_float == 1 else value}))
        self._counters = (rows.astype(np.int32), texts)

    # ---- more events

    def _append(
        self,
        n: int,
        place: Int32,
        dense: dict[str, Any],
        texts: dict[str, _Texts],
        sparse: dict[str, Sparse],
        dictionaries: dict[str, list[str]],
        tracks: Int64,
    ) -> int:
        """Add counters' arguments, flows and the names of processes and threads. The number of events."""
        rows, found = self._counters
        if found:
            own = _Texts()
            codes = own.each(found)
            sparse[COUNTER_ARGS.name] = rows, codes
            dictionaries[COUNTER_ARGS.name] = own.dictionary
        n = self._append_flows(n, place, dense, texts, sparse)
        stated = metadata_events(tracks, self.names)
        if stated:
            nulls = np.full(len(stated), NULL, np.int64)
            _extend(
                dense,
                phase=texts["phase"].each(["M"] * len(stated)),
                category=np.full(len(stated), -1, np.int32),
                name=texts["name"].each([event for event, *_ in stated]),
                pid=texts["pid"].each([pid for _, pid, *_ in stated]),
                tid=texts["tid"].each([tid for _, _, tid, *_ in stated]),
                start_ns=nulls,
                dur_ns=nulls,
            )
            for column in ("args_name", "args_labels", "args_sort_index"):
                at = [k for k, event in enumerate(stated) if event[3] == column]
                if not at:
                    continue
                cells = np.array([n + k for k in at], np.int32)
                if column == "args_sort_index":
                    sparse[column] = cells, np.array([stated[k][4] for k in at], np.int64)
                    continue
                own = _Texts()
                new = own.each([stated[k][4] for k in at])
                if column in sparse:  # arguments of this name that events have
                    before = dictionaries[column]
                    merged = _Texts()
                    old = merged.recode(sparse[column][1].astype(np.int64), before)
                    new = merged.each([stated[k][4] for k in at])
                    sparse[column] = np.append(sparse[column][0], cells), np.append(old, new)
                    dictionaries[column] = merged.dictionary
                else:
                    sparse[column] = cells, new
                    dictionaries[column] = own.dictionary
        return n + len(stated)

    def _append_flows(
        self, n: int, place: Int32, dense: dict[str, Any], texts: dict[str, _Texts], sparse: dict[str, Sparse]
    ) -> int:
        flows = np.concatenate([piece.flows for piece in self.reading.pieces])
        rows = place[flows[:, 0]]
        flows, rows = flows[rows >= 0], rows[rows >= 0]
        if not len(flows):
            return n
        start = dense["start_ns"][rows]
        order = np.lexsort((start, flows[:, 1]))
        flows, rows, start = flows[order], rows[order], start[order]
        first = np.append(True, flows[1:, 1] != flows[:-1, 1])
        last = np.append(first[1:], True)
        alone = first & last
        flows, rows, start, first, last = (values[~alone] for values in (flows, rows, start, first, last))
        letters = texts["phase"].each(["s", "t", "f"])
        name = texts["name"].code("ac2g")
        _extend(
            dense,
            phase=letters[np.where(first, 0, np.where(last, 2, 1))],
            category=np.full(len(rows), texts["category"].code("ac2g"), np.int32),
            name=np.full(len(rows), name, np.int32),
            pid=dense["pid"][rows],
            tid=dense["tid"][rows],
            start_ns=start,
            dur_ns=np.full(len(rows), NULL, np.int64),
        )
        sparse["flow_id"] = np.arange(n, n + len(rows), dtype=np.int32), flows[:, 1].copy()
        return n + len(rows)

    # ---- what Kineto writes as JSON within

    def _metadata(self) -> dict[str, Any]:
        """What Kineto states about the whole trace."""
        found: dict[str, Any] = {}
        for row in np.flatnonzero(self._about_trace).tolist():
            name = self.names[self.events[NAME, row]]
            raw = self.reading.texts.raw(-2 - int(self.events[METADATA, row]))
            with contextlib.suppress(ValueError):
                for number, _, message in fields(raw[:-8]):
                    if number != _ANNOTATIONS or not isinstance(message, bytes):
                        continue
                    key = next(
                        (
                            value.decode("utf-8", "replace")
                            for inner, _, value in fields(message)
                            if inner == 10 and isinstance(value, bytes)
                        ),
                        "",
                    )
                    value = decoded(message, lambda *_: "")
                    if name == "device_properties":
                        key = "deviceProperties"
                    if key and key != "traceEvents":
                        found[key] = _parsed(value)
        if left_out := unusable(found):
            self.problems.append(Problem("metadata", "warning", len(left_out), None, in_words(left_out)))
        return found

    def _spread(self, place: Int32, sparse: dict[str, Sparse], dictionaries: dict[str, list[str]]) -> None:
        """Arguments that Kineto writes as one text: the members of a JSON object."""
        rows = np.flatnonzero((self.events[METADATA] >= 0) & (place >= 0))
        if not len(rows):
            return
        texts = {code: self._object(code) for code in np.unique(self.events[METADATA, rows]).tolist()}
        readable = np.array([texts[code] is not None for code in self.events[METADATA, rows].tolist()])
        self.unreadable["metadata"] += int((~readable).sum())
        rows = rows[readable]
        parts = [b'{"args":%b}' % (texts[code] or b"") for code in self.events[METADATA, rows].tolist()]
        whole = np.frombuffer(b",".join(parts) + b"]" + bytes(PADDING), np.uint8).copy()
        scanner = ColumnScanner(self.reading.extra_args, 1 << 20)
        scanner.scan(whole, 0, len(whole) - PADDING, 1, _LONGEST_METADATA)
        if scanner.n != len(rows):
            return
        table = scanner.table("", {}, [])
        target = place[rows]
        for name in table.sparse_columns:
            cells, found = table.sparse(name)
            new_rows = target[cells].astype(np.int32)
            _fill(name, (new_rows, found), table.dictionary(name), sparse, dictionaries)

    def _object(self, code: int) -> bytes | None:
        """The members of an object, as one; None if they are none."""
        text = self.reading.texts.raw(code).strip()
        text = text if text.startswith(b"{") else b"{%b}" % text
        try:
            return text if len(text) < _LONGEST_METADATA and isinstance(orjson.loads(text), dict) else None
        except orjson.JSONDecodeError:
            return None

    # ---- what to say

    def _note(self, ends: Int64) -> None:
        unfinished = int(((self.kind == BEGIN) & (ends < 0)).sum())
        if unfinished:
            text = "slices whose end is not in the file; their durations are unknown"
            self.problems.append(Problem("unfinished_slice", "warning", unfinished, None, text))
        for name, count in (+self.unreadable).items():
            text = f"{name} holds a value that cannot be read"
            self.problems.append(Problem("unreadable_value", "warning", count, None, text))


def _parsed(value: Any) -> Any:
    """A text that is JSON as its value."""
    if isinstance(value, str):
        with contextlib.suppress(ValueError, RecursionError):
            return json.loads(value)
    return value


def _extend(dense: dict[str, Any], **more: npt.NDArray[Any]) -> None:
    for name, found in more.items():
        dense[name] = np.concatenate([dense[name], found])


def _fill(
    name: str,
    cells: Sparse,
    texts: list[str],
    sparse: dict[str, Sparse],
    dictionaries: dict[str, list[str]],
) -> None:
    """Add cells to a column where it has none."""
    rows, found = cells
    old_rows, old = sparse.get(name, (np.empty(0, np.int32), np.empty(0, found.dtype)))
    if texts or name in dictionaries:
        own = _Texts()
        old = own.recode(old.astype(np.int64), dictionaries.get(name, []))
        found = own.recode(found.astype(np.int64), texts)
        dictionaries[name] = own.dictionary
    new = ~np.isin(rows, old_rows)
    rows, found = np.append(old_rows, rows[new]), np.append(old, found[new])
    order = np.argsort(rows, kind="stable")
    sparse[name] = rows[order], found[order]
