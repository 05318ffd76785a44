"""Writes one rank as Kineto does: the same keys, and times as decimal microseconds with ns digits.

Times are written as text from integers, so no digit is lost on the way.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from examples.simulator import kernels
from examples.simulator.nccl import GROUP
from examples.simulator.rank import Rank
from examples.simulator.records import Flow, Instant, Slice
from examples.simulator.seeded_rng import SeededRng

BASE_TIME_NS = 1_767_225_600_000_000_000  # 2026-01-01 00:00 UTC
EPOCH_NS = 1_036_812_345_678_912  # the simulation begins so long after the base time

_DEVICE = {
    "name": "Simulated H100",
    "totalGlobalMem": 85_018_279_936,
    "computeMajor": 9,
    "computeMinor": 0,
    "maxThreadsPerBlock": 1024,
    "maxThreadsPerMultiprocessor": 2048,
    "regsPerBlock": 65_536,
    "warpSize": 32,
    "sharedMemPerBlock": 49_152,
    "numSms": kernels.SM_COUNT,
    "regsPerMultiprocessor": 65_536,
    "sharedMemPerBlockOptin": 232_448,
    "sharedMemPerMultiprocessor": kernels.SHARED_BYTES_PER_SM,
}
_GPU_SORT_BASE = 16_777_216
_SPANS_SORT_INDEX = 536_870_912


@dataclass(frozen=True)
class FileHeader:
    """What stands beside the events: who ran, and which profiler options were on.

    `by_category` groups the events as Kineto does, which compresses better than one order in time.
    """

    job: str
    world_size: int
    seed: int
    with_stack: bool
    clock_offset_ns: int = 0
    by_category: bool = False


def write(rank: Rank, header: FileHeader, path: Path) -> None:
    """Write `rank` to `path` (gzip, without a time stamp: equal content gives equal bytes)."""
    lines = ",\n".join(_events(rank, header))
    head = json.dumps(_header(rank, header), indent=2).removesuffix("\n}")
    tail = f'"traceName": "simulated/{header.job}/{path.name}"'
    text = f'{head},\n  "traceEvents": [\n{lines}\n  ],\n  {tail}\n}}\n'
    with path.open("wb") as raw, gzip.GzipFile("", "wb", compresslevel=9, fileobj=raw, mtime=0) as file:
        file.write(text.encode())


def _header(rank: Rank, header: FileHeader) -> dict[str, Any]:
    trace_id = SeededRng(header.seed, 77)
    document: dict[str, Any] = {
        "schemaVersion": 1,
        "deviceProperties": [{"id": index, **_DEVICE} for index in range(header.world_size)],
        "cupti_version": 26,
        "cuda_runtime_version": 12_080,
        "cuda_driver_version": 12_090,
        "with_flops": 0,
        "record_shapes": 1,
        "with_modules": 0,
        "profile_memory": 1,
        "with_stack": int(header.with_stack),
        "trace_id": "".join(f"{trace_id.between(0, 0xFFFF):04X}" for _ in range(8)),
        "host_name": "simulated-node-0",
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": BASE_TIME_NS,
    }
    if header.world_size > 1:
        ranks = list(range(header.world_size))
        group = {
            "pg_name": GROUP["name"],
            "pg_desc": GROUP["description"],
            "backend_config": "cuda:nccl",
            "pg_size": header.world_size,
            "ranks": ranks,
        }
        document["distributedInfo"] = {
            "backend": "nccl",
            "rank": rank.index,
            "world_size": header.world_size,
            "pg_count": 1,
            "pg_config": [group],
            "nccl_version": "2.27.7",
        }
    return document


def _events(rank: Rank, header: FileHeader) -> Iterator[str]:
    recorder, clock = rank.recorder, EPOCH_NS + header.clock_offset_ns
    begin = min(record.start_ns for record in recorder.slices) - 40_000
    end = max(record.end_ns for record in recorder.slices) + 60_000
    timed = [
        *((record.category, record.start_ns, _slice(record, clock)) for record in recorder.slices),
        *((record.category, record.at_ns, _instant(record, clock)) for record in recorder.instants),
        *((record.name, record.at_ns, _flow(record, clock)) for record in recorder.flows),
    ]
    # Stable sorts: events of one moment stay in the order in which they were recorded.
    timed.sort(key=lambda event: event[1])
    if header.by_category:
        timed.sort(key=lambda event: event[0])
    for _, _, line in timed:
        yield line
    yield from _names(rank, header, clock + begin)
    span = {
        "ph": "X",
        "cat": "Trace",
        "name": "PyTorch Profiler (0)",
        "pid": "Spans",
        "tid": "PyTorch Profiler",
    }
    yield _line(span, clock + begin, end - begin, {"Op count": 0})
    start = {"name": "Iteration Start: PyTorch Profiler", "pid": "Traces", "tid": "Trace PyTorch Profiler"}
    yield _line({"ph": "i", "s": "g", **start}, clock + begin)
    yield _line({"ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": ""}, clock + end)


def _line(
    fields: Mapping[str, Any], at_ns: int, dur_ns: int | None = None, args: Mapping[str, Any] | None = None
) -> str:
    """One event. The times are written as text of our own making: `json` would go through float64."""
    text = f'{json.dumps(fields)[:-1]}, "ts": {_microseconds(at_ns)}'
    if dur_ns is not None:
        text += f', "dur": {_microseconds(dur_ns)}'
    if args is not None:
        text += f', "args": {json.dumps(args)}'
    return text + "}"


def _microseconds(ns: int) -> str:
    return f"{ns // 1000}.{ns % 1000:03d}"


def _slice(record: Slice, clock: int) -> str:
    fields = {"ph": "X", "cat": record.category, "name": record.name, "pid": record.pid, "tid": record.tid}
    return _line(fields, clock + record.start_ns, record.end_ns - record.start_ns, record.args)


def _instant(record: Instant, clock: int) -> str:
    where = {"name": record.name, "pid": record.pid, "tid": record.tid}
    return _line(
        {"ph": "i", "cat": record.category, "s": "t", **where}, clock + record.at_ns, args=record.args
    )


def _flow(record: Flow, clock: int) -> str:
    fields = {"ph": record.phase, "id": record.flow_id, "pid": record.pid, "tid": record.tid}
    binding = {"bp": "e"} if record.phase == "f" else {}
    return _line({**fields, "cat": record.name, "name": record.name, **binding}, clock + record.at_ns)


def _names(rank: Rank, header: FileHeader, at_ns: int) -> Iterator[str]:
    """The metadata events that name processes and threads and order their rows."""

    def line(event: str, pid: int | str, tid: int, **args: int | str) -> str:
        return _line({"name": event, "ph": "M", "pid": pid, "tid": tid}, at_ns, args=args)

    def process(pid: int, labels: str, sort_index: int) -> Iterator[str]:
        yield line("process_name", pid, 0, name="python3.12")
        yield line("process_labels", pid, 0, labels=labels)
        yield line("process_sort_index", pid, 0, sort_index=sort_index)

    def thread(pid: int, tid: int, name: str) -> Iterator[str]:
        yield line("thread_name", pid, tid, name=name)
        yield line("thread_sort_index", pid, tid, sort_index=tid)

    yield from process(rank.main.pid, "CPU", rank.main.pid)
    for device in range(header.world_size):
        yield from process(device, f"GPU {device}", _GPU_SORT_BASE + device)
    for stream in sorted({work.stream for work in rank.device.work}):
        yield from thread(rank.index, stream, f"stream {stream} ")
    for (pid, tid), name in rank.recorder.thread_names.items():
        yield from thread(pid, tid, f"thread {tid} ({name})")
    yield line("process_sort_index", "Spans", 0, sort_index=_SPANS_SORT_INDEX)
