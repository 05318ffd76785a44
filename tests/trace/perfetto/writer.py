"""Twins of Kineto's JSON: the same events as a Perfetto trace, in the layouts that PyTorch and Kineto write.

`pytorch` follows torch/csrc/profiler/cuspy/cuspy_pftrace.cpp (2.15): slices of the host in groups, all begins
and then all ends, work of devices as stages on queues, names and categories interned.  `kineto` follows
libkineto's PerfettoTraceBuilder: a track for each slice, arguments as one text.  What these leave out (other
arguments than their own, flows, the metadata of the file) the twin has all the same, so that it can be held
to the JSON: `tests/trace/perfetto/test_twins.py`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from tests.trace.perfetto.proto import data, double, fixed64, number, packet

STAGES = {"kernel": 1, "gpu_memcpy": 2, "gpu_memset": 3, "gpu_user_annotation": 4}
STAGE_NAMES = {1: "Kernel", 2: "Memcpy", 3: "Memset", 4: "Annotation"}
BASE = 1_700_000_000_000_000_000

BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4


def annotation(key: str | None, value: Any) -> bytes:
    """A DebugAnnotation, as emitJsonValue writes it."""
    out = data(10, key) if key is not None else b""
    if isinstance(value, dict):
        return out + b"".join(data(11, annotation(name, item)) for name, item in value.items())
    if isinstance(value, list):
        return out + b"".join(data(12, annotation(None, item)) for item in value)
    if isinstance(value, bool):
        return out + number(2, int(value))
    if isinstance(value, float | Decimal):
        return out + double(5, float(value))
    if isinstance(value, int):
        return out + number(4, value)
    return out + data(6, "null" if value is None else value)


def nanoseconds(value: Any) -> int:
    return round(Decimal(str(value)) * 1000)


class Interned:
    """Texts with ids."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}

    def __call__(self, text: str) -> int:
        return self._ids.setdefault(text, len(self._ids) + 1)

    def written(self, field: int) -> bytes:
        return b"".join(data(field, number(1, iid) + data(2, text)) for text, iid in self._ids.items())


class Tracks:
    """A track for each process and thread."""

    def __init__(self, events: Iterable[dict[str, Any]]) -> None:
        self.uuids: dict[tuple[Any, ...], int] = {}
        self.out: list[bytes] = []
        self.numbers: dict[str, int] = {}
        self.stated: dict[tuple[Any, ...], dict[str, Any]] = {}
        for event in events:
            if event.get("ph") == "M":
                arguments = event.get("args") or {}
                of_process = str(event.get("name", "")).startswith("process")
                place = (
                    (str(event.get("pid")),) if of_process else (str(event.get("pid")), str(event.get("tid")))
                )
                self.stated.setdefault(place, {}).setdefault(str(event["name"]), arguments)

    def number(self, text: Any) -> int:
        """An id of 31 bits, negative ones without their sign, as PyTorch makes them."""
        try:
            return int(str(text))
        except ValueError:
            return self.numbers.setdefault(str(text), 900_000 + len(self.numbers))

    def thread(self, pid: Any, tid: Any) -> int:
        place = (str(pid), str(tid))
        if place in self.uuids:
            return self.uuids[place]
        parent = self.process(pid)
        uuid = self.uuids[place] = len(self.uuids) + 1
        stated = self.stated.get(place, {})
        thread = number(1, self.number(pid)) + number(2, self.number(tid))
        if name := stated.get("thread_name", {}).get("name"):
            thread += data(5, str(name))
        if (sort := stated.get("thread_sort_index", {}).get("sort_index")) is not None:
            thread += number(3, int(sort))
        self.out.append(packet(data(60, number(1, uuid) + number(5, parent) + data(4, thread))))
        return uuid

    def process(self, pid: Any) -> int:
        place = (str(pid),)
        if place in self.uuids:
            return self.uuids[place]
        uuid = self.uuids[place] = len(self.uuids) + 1
        stated = self.stated.get(place, {})
        process = number(1, self.number(pid))
        if name := stated.get("process_name", {}).get("name"):
            process += data(6, str(name))
        if labels := stated.get("process_labels", {}).get("labels"):
            process += data(8, str(labels))
        if (sort := stated.get("process_sort_index", {}).get("sort_index")) is not None:
            process += number(3, int(sort))
        self.out.append(packet(data(60, number(1, uuid) + data(3, process))))
        return uuid

    def counter(self, pid: Any, name: str) -> int:
        place = (str(pid), "counter", name)
        if place in self.uuids:
            return self.uuids[place]
        parent = self.process(pid)
        uuid = self.uuids[place] = len(self.uuids) + 1
        self.out.append(packet(data(60, number(1, uuid) + number(5, parent) + data(2, name) + data(8, b""))))
        return uuid


def about(document: dict[str, Any]) -> list[bytes]:
    """What the file states besides its events, as Kineto writes it."""
    out = []
    for key, value in document.items():
        if key == "traceEvents" or key == "baseTimeNanoseconds":
            continue
        name, key = (
            ("device_properties", "properties") if key == "deviceProperties" else ("trace_metadata", key)
        )
        text = (
            value if isinstance(value, str) and not value[:1].isdigit() else json.dumps(value, default=float)
        )
        event = number(9, INSTANT) + data(23, name) + data(4, annotation(key, text))
        out.append(packet(number(10, 1), data(11, event)))
    return out


def pytorch(document: dict[str, Any], group: int = 500) -> bytes:
    """The trace as PyTorch's cuspy backend writes it."""
    events = [event for event in document["traceEvents"] if isinstance(event, dict)]
    base = int(document.get("baseTimeNanoseconds") or 0)
    tracks, names, categories = Tracks(events), Interned(), Interned()
    queues: dict[tuple[Any, Any], int] = {}
    body: list[bytes] = []
    begins: list[bytes] = []
    ends: list[bytes] = []

    def at(ts: Any) -> int:
        return base + nanoseconds(ts)

    def slice_packet(ts: int, event: bytes, needs: bool = True) -> bytes:
        return packet(number(8, ts), number(10, 1), number(13, 2) if needs else b"", data(11, event))

    for event in events:
        phase, arguments = event.get("ph"), event.get("args") or {}
        if phase == "X" and event.get("cat") in STAGES and "stream" in arguments:
            body.append(stage(event, at(event["ts"]), queues, names))
        elif phase in ("X", "i", "I", "B"):
            track = tracks.thread(event.get("pid"), event.get("tid"))
            kind = INSTANT if phase in ("i", "I") else BEGIN
            inner = number(9, kind) + number(11, track) + number(10, names(str(event.get("name", ""))))
            if event.get("cat"):
                inner += number(3, categories(str(event["cat"])))
            inner += b"".join(data(4, annotation(key, value)) for key, value in arguments.items())
            begins.append(slice_packet(at(event.get("ts", 0)), inner))
            if phase == "X":
                end = number(9, END) + number(11, track)
                stop = at(event["ts"]) + nanoseconds(event.get("dur") or 0)
                ends.append(slice_packet(stop, end, needs=False))
            if len(begins) >= group or phase != "X":
                body += begins + ends
                begins, ends = [], []
        elif phase == "C":
            for name, value in arguments.items():
                track = tracks.counter(event.get("pid"), name)
                inner = number(9, COUNTER) + number(11, track) + number(10, names(str(event["name"])))
                inner += number(30, value) if isinstance(value, int) else double(44, float(value or 0))
                body.append(slice_packet(at(event["ts"]), inner))
    body += begins + ends
    for event in events:
        if event.get("ph") == "M":
            of_process = str(event["name"]).startswith("process")
            if of_process:
                tracks.process(event.get("pid"))
            else:
                tracks.thread(event.get("pid"), event.get("tid"))
    interned = number(10, 1) + number(13, 1)
    specifications = b"".join(
        data(24, number(1, iid) + data(2, name) + number(4, 2 if iid == 1 else 0))
        for iid, name in STAGE_NAMES.items()
    )
    specifications += b"".join(
        data(24, number(1, iid) + data(2, f"[{stream}] stream {stream}"))
        for (_, stream), iid in queues.items()
    )
    arguments_of_launches = b"".join(
        data(1001, number(1, iid) + data(2, name))
        for iid, name in ((1, "registers_per_thread"), (2, "shared_mem_dynamic"))
    )
    inner = names.written(2) + categories.written(1) + specifications + arguments_of_launches
    clocks = data(1, number(1, 6) + number(2, base)) + data(1, number(1, 1) + number(2, base))
    snapshot = packet(number(8, base), number(10, 1), data(6, clocks))
    return b"".join([snapshot, *tracks.out, packet(interned, data(12, inner)), *about(document), *body])


def stage(event: dict[str, Any], ts: int, queues: dict[tuple[Any, Any], int], names: Interned) -> bytes:
    """Work of a device."""
    arguments = dict(event["args"])
    device = int(arguments.pop("device", event.get("pid", 0)))
    stream = arguments.pop("stream")
    queue = queues.setdefault((device, stream), 100 + len(queues))
    out = number(1, 1) + number(2, nanoseconds(event.get("dur") or 0)) + number(11, device)
    out += number(13, queue) + number(14, STAGES[event["cat"]]) + number(5, 1)
    out += number(20, names(str(event["name"])))
    extra = {"device id": device, "stream id": stream}
    if "context" in arguments:
        extra["context id"] = arguments.pop("context")
    grid, block = arguments.get("grid"), arguments.get("block")
    if isinstance(grid, list) and isinstance(block, list) and len(grid) == len(block) == 3:
        launch = data(1, b"".join(number(k + 1, value) for k, value in enumerate(grid)))
        launch += data(2, b"".join(number(k + 1, value) for k, value in enumerate(block)))
        for iid, key in ((1, "registers per thread"), (2, "shared memory")):
            if isinstance(arguments.get(key), int):
                launch += data(3, number(1, iid) + number(4, arguments.pop(key)))
        out += data(21, launch)
        del arguments["grid"], arguments["block"]
    for key, value in {**extra, **arguments}.items():
        text = value if isinstance(value, str) else json.dumps(value, default=float)
        out += data(6, data(1, key) + data(2, text))
    return packet(number(8, ts), number(10, 1), number(13, 2), data(53, out))


def kineto(document: dict[str, Any]) -> bytes:
    """The trace as Kineto's upload writes it: no categories, arguments as the inside of a JSON object."""
    events = [event for event in document["traceEvents"] if isinstance(event, dict)]
    base = int(document.get("baseTimeNanoseconds") or 0)
    tracks = Tracks(events)
    body: list[bytes] = []
    uuid = 1 << 32
    for event in events:
        if event.get("ph") != "X" or "ts" not in event:
            continue
        uuid += 1
        parent = tracks.thread(event.get("pid"), event.get("tid"))
        body.append(packet(data(60, number(1, uuid) + number(5, parent) + data(2, "stream"))))
        ts = base + nanoseconds(event["ts"])
        inner = number(9, BEGIN) + data(23, str(event["name"])) + number(11, uuid)
        arguments = dict(event.get("args") or {})
        if arguments:
            inner += data(4, annotation("metadata", json.dumps(arguments, default=float)[1:-1]))
        if arguments.get("correlation"):
            inner += data(4, annotation("correlation_id", arguments["correlation"]))
            inner += fixed64(47, int(arguments["correlation"]))
        body.append(packet(number(8, ts), number(10, 77), data(11, inner)))
        end = ts + nanoseconds(event.get("dur") or 0)
        body.append(packet(number(8, end), number(10, 77), data(11, number(9, END) + number(11, uuid))))
    return b"".join([*tracks.out, *about(document), *body])
