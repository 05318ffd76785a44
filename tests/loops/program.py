"""A training loop, run step by step on hosts and devices, and what a profiler records of it.

Times are whole microseconds. The loop runs for longer than the profiler looks, so that what is recorded is
its steady state, and its truth is known from steps that nothing cuts.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

Event = dict[str, Any]
Where = Literal["top", "bottom", "before_sync", "before_loss"]
Between = Literal["nothing", "loader", "maths", "sleep", "item"]
Ahead = Literal["none", "half", "more", "full"]
Schedule = Literal["once", "repeat", "unfinished"]

_KERNEL, _KERNELS, _LAUNCH, _LATENCY = 200, 4, 5, 20
_COLLECTIVE = 100
_BETWEEN, _LATE = 300, 250
_WARM, _AFTER = 8, 4
_QUEUE = 6  # kernels that a full queue holds
_STEADY = 4  # steps that must be equal for a steady state
_LOADER = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"


@dataclass(frozen=True)
class Loop:
    """A program.

    Attributes:
        where: where `prof.step()` stands: at the top of the loop, at the bottom behind the synchronisation,
            before the synchronisation, or before the loss is read.
        between: what the host does before it launches a step.
        ahead: by how much the host runs ahead: it waits for each step; for the one before; for the second
            before; until the queue has room.
        ranks: how many; the last one is late if there are several.
        streams: 1, or 3, of which one holds copies of batches ahead.
        schedule: the profiler looks once, twice with a pause, or the recording ends inside a step.
        steps: how many it records each time.
    """

    where: Where = "bottom"
    between: Between = "nothing"
    ahead: Ahead = "none"
    ranks: int = 1
    streams: int = 1
    schedule: Schedule = "once"
    steps: int = 3

    def without(self) -> Loop:
        """The program without what the host does between steps."""
        return replace(self, between="nothing")


@dataclass
class Run:
    """One rank as it ran: host and device events with their step, and when each step is marked."""

    host: list[tuple[int, str, str, int, int, int]] = field(default_factory=list)  # step, ..., correlation
    device: list[tuple[int, str, int, int, int, int]] = field(default_factory=list)  # step, ..., stream, id
    marks: list[int] = field(default_factory=list)
    now: int = 0
    free: dict[int, int] = field(default_factory=dict)
    ended: list[int] = field(default_factory=list)  # of each step, when its device work is over

    def call(self, step: int, name: str, category: str, took: int, correlation: int = 0) -> None:
        self.host.append((step, name, category, self.now, self.now + took, correlation))
        self.now += took

    def wait(self, step: int, until: int, name: str = "cudaDeviceSynchronize") -> None:
        self.call(step, name, "cuda_runtime", max(until - self.now, 0) + 5)

    def launch(
        self,
        step: int,
        name: str,
        took: int,
        stream: int = 7,
        call: str = "cudaLaunchKernel",
        room_at: int = 0,
    ) -> int:
        """Launch work once the queue has room; returns its place among the device's events."""
        correlation = len(self.device) + 1
        self.call(step, call, "cuda_runtime", max(room_at - self.now, 0) + _LAUNCH, correlation)
        begin = max(self.now + _LATENCY - _LAUNCH, self.free.get(stream, 0))
        self.free[stream] = begin + took
        self.device.append((step, name, begin, begin + took, stream, correlation))
        return len(self.device) - 1


def simulated(loop: Loop) -> list[Run]:
    """Each rank of a program as it ran."""
    runs = [Run() for _ in range(loop.ranks)]
    count = _WARM + (2 if loop.schedule == "repeat" else 1) * loop.steps + 2 * _AFTER
    for step in range(count):
        for rank, run in enumerate(runs):
            _until_collective(loop, run, step, rank == loop.ranks - 1 and loop.ranks > 1)
        if loop.ranks > 1:
            _collective(runs, step)
        for run in runs:
            run.ended.append(max(run.free.values()))
            _end_of_step(loop, run, step)
    return runs


def _until_collective(loop: Loop, run: Run, step: int, late: bool) -> None:
    if loop.where == "top":
        run.marks.append(run.now)
    if loop.ahead in ("half", "more") and (back := step - (1 if loop.ahead == "half" else 2)) >= 0:
        run.wait(step, run.ended[back], "cudaEventSynchronize")
    took = _BETWEEN + (_LATE if late else 0)
    if loop.between == "loader":
        run.call(step, _LOADER, "user_annotation", took)
    elif loop.between == "maths":
        run.call(step, "aten::normal_", "cpu_op", took)
    elif loop.between == "sleep":
        run.now += took
    elif late:
        run.call(step, "aten::normal_", "cpu_op", _LATE)
    if loop.streams == 3:
        run.launch(step, "Memcpy HtoD (Pinned -> Device)", 60, 20, "cudaMemcpyAsync")
    for number in range(_KERNELS):
        queued = [end for *_, end, stream, _ in run.device if stream == 7][-_QUEUE:]
        room_at = queued[0] if loop.ahead == "full" and len(queued) == _QUEUE else 0
        at = run.launch(step, "gemm_tile_64", _KERNEL, room_at=room_at)
        if loop.streams == 3 and number == 1:  # beside the second one
            run.free[21] = max(run.free.get(21, 0), run.device[at][2])
            run.launch(step, "side_kernel", 50, 21)


def _collective(runs: list[Run], step: int) -> None:
    """An all-reduce of all ranks, which ends together."""
    places = [run.launch(step, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", _COLLECTIVE) for run in runs]
    end = max(run.device[at][3] for run, at in zip(runs, places, strict=True))
    for run, at in zip(runs, places, strict=True):
        number, name, begin, _, stream, correlation = run.device[at]
        run.device[at] = (number, name, begin, end, stream, correlation)
        run.free[stream] = end


def _end_of_step(loop: Loop, run: Run, step: int) -> None:
    if loop.where == "before_sync":
        run.marks.append(run.now)
    if loop.where == "before_loss" or loop.between == "item":
        if loop.where == "before_loss":
            run.marks.append(run.now)
        _read_loss(run, step)
    elif loop.ahead == "none":
        run.wait(step, run.ended[step])
    if loop.where == "bottom":
        run.marks.append(run.now)
    run.call(step, "aten::detach", "cpu_op", 10)


def _read_loss(run: Run, step: int) -> None:
    begin = run.now
    run.launch(step, "Memcpy DtoH (Device -> Pageable)", 2, 7, "cudaMemcpyAsync")
    run.wait(step, run.free[7], "cudaStreamSynchronize")
    run.host.append((step, "aten::item", "cpu_op", begin, run.now, 0))


# -- what a profiler records ---------------------------------------------------------------------------


def recorded(loop: Loop, run: Run, rank: int) -> dict[str, Any]:
    """The file of a rank: the marks, what the host does within them, and the work that it launches."""
    events: list[Event] = []
    # a mark at the bottom of step n begins step n + 1 of the profiler
    for first in _begins(loop):
        last = first + loop.steps
        begin, end = run.marks[first], run.marks[last]
        for number in range(first, last):
            until = run.marks[number + 1]
            events.append(_slice(f"ProfilerStep#{number}", "user_annotation", run.marks[number], until))
        if loop.schedule == "unfinished":
            end = (run.marks[last] + run.marks[last + 1]) // 2
            events.append(_slice(f"ProfilerStep#{last}", "user_annotation", run.marks[last], run.marks[last]))
        launched = set()
        for _, name, category, start, until, correlation in run.host:
            if begin <= start < end:
                args = {"correlation": correlation} if correlation else {}
                launched.add(correlation)
                events.append(_slice(name, category, start, until, **args))
        for _, name, start, until, stream, correlation in run.device:
            if correlation in launched or begin <= start < end:
                category = "gpu_memcpy" if name.startswith("Memcpy") else "kernel"
                args = {"stream": stream, "device": 0, "correlation": correlation}
                events.append({**_slice(name, category, start, until, **args), "pid": 0, "tid": stream})
    told = {"rank": rank, "world_size": loop.ranks, "backend": "nccl"}
    return {"baseTimeNanoseconds": 0, "distributedInfo": told, "traceEvents": events}


def _begins(loop: Loop) -> list[int]:
    """The first step of each time that the profiler looks."""
    again = [_WARM + loop.steps + _AFTER] if loop.schedule == "repeat" else []
    return [_WARM, *again]


def _slice(name: str, category: str, start: int, end: int, **args: Any) -> Event:
    return {
        "ph": "X", "name": name, "cat": category, "pid": 1, "tid": 1, "ts": start, "dur": end - start,
        "args": args,
    }  # fmt: skip


def write(loop: Loop, runs: list[Run], folder: Path) -> Path:
    """The files of all ranks in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for rank, run in enumerate(runs):
        (folder / f"rank{rank}.json").write_text(json.dumps(recorded(loop, run, rank)))
    return folder


# -- the truth -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Truth:
    """What a steady step of a rank takes, us, and in it the shares (%) of the device."""

    period: int
    compute_pct: float
    exposed_communication_pct: float
    exposed_memory_pct: float
    idle_pct: float


def truth(run: Run) -> Truth | None:
    """The steady state of a rank, from first kernel to first kernel of its steps; None if it has none."""
    first: dict[int, int] = {}
    for step, name, begin, _, _, _ in run.device:
        if name == "gemm_tile_64":
            first.setdefault(step, begin)
    begins = [first[step] for step in sorted(first)]
    found = {_of_period(run, begin, end) for begin, end in pairwise(begins[_WARM - 1 : _WARM + _STEADY])}
    return found.pop() if len(found) == 1 else None


def _of_period(run: Run, begin: int, end: int) -> Truth:
    covered: set[int] = set()
    shares: list[float] = []
    for part in range(3):
        ticks = {
            tick
            for _, name, start, until, _, _ in run.device
            if (2 if name.startswith("Memcpy") else 1 if "nccl" in name else 0) == part
            for tick in range(max(start, begin), min(until, end))
        }
        shares.append(100 * len(ticks - covered) / (end - begin))
        covered |= ticks
    return Truth(end - begin, *shares, 100 * (1 - len(covered) / (end - begin)))
