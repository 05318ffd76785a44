"""One rank as a program: what its host does in order, and when its device then runs what it launches.

A launch reaches an idle stream after `LATENCY`; a stream runs its work in order, `GAP` apart. Everything is
recorded as Kineto would, but for what a case leaves out.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hta_widgets.trace.model import Trace
from tests.analysis.kineto_file import Event, event, kernel, write

US, MS = 1_000, 1_000_000
LATENCY, GAP = 5 * US, 1 * US


class Program:
    """The events of one rank, written as they happen."""

    def __init__(self, at: int = 100 * US, queue: int = 0) -> None:
        self.now = at
        self.queue = queue  # so many launches may wait; 0: any number
        self.events: list[Event] = []
        self.free: dict[int, int] = {}
        self._starts: list[int] = []
        self._calls = 0
        self._operators = 0
        self._captured = False

    # -- the host ----------------------------------------------------------------------------------

    @contextmanager
    def inside(self, category: str, name: str, tid: int = 1, **args: Any) -> Iterator[None]:
        """All that happens meanwhile lies in this call."""
        begin = self.now
        if category == "cpu_op":
            self._operators += 1
            args = {"External id": self._operators, **args}
        yield
        self.events.append(event(category, name, begin, self.now - begin, tid, **args))

    @contextmanager
    def step(self, number: int) -> Iterator[None]:
        with self.inside("user_annotation", f"ProfilerStep#{number}"):
            yield

    def silence(self, ns: int) -> None:
        """The host does something that is not recorded."""
        self.now += ns

    def operator(self, name: str, ns: int, **args: Any) -> None:
        with self.inside("cpu_op", name, **args):
            self.now += ns

    def driver(self, name: str, ns: int) -> int:
        """A call of the runtime that launches nothing; its correlation."""
        self._calls += 1
        with self.inside("cuda_runtime", name, correlation=self._calls):
            self.now += ns
        return self._calls

    def load(self, ns: int, iterator: str = "_MultiProcessingDataLoaderIter") -> None:
        with self.inside("user_annotation", f"enumerate(DataLoader)#{iterator}.__next__"):
            self.now += ns

    def synchronise(self, tail: int = 2 * US, name: str = "cudaDeviceSynchronize") -> None:
        """Wait for all device work, and return a little later."""
        self._calls += 1
        with self.inside("cuda_runtime", name, correlation=self._calls):
            self.now = max([self.now, *self.free.values()]) + tail

    # -- the device --------------------------------------------------------------------------------

    def launch(
        self,
        ns: int,
        name: str = "gemm",
        stream: int = 7,
        call: int = 2 * US,
        at: int = 0,
        kind: str = "kernel",
        api: str = "cudaLaunchKernel",
        recorded: tuple[str, ...] = ("call", "work"),
        **args: Any,
    ) -> None:
        """Launch work of this length and with these arguments; it starts no earlier than `at`."""
        self._calls += 1
        if "call" in recorded:
            with self.inside("cuda_runtime", api, correlation=self._calls):
                self._place_in_queue(call)
        else:
            self._place_in_queue(call)
        if self._captured:
            return
        free = self.free.get(stream)
        start = max(self.now + LATENCY if free is None or free + GAP < self.now + LATENCY else free + GAP, at)
        self.free[stream] = start + ns
        self._starts.append(start)
        if "work" in recorded:
            self.events.append(kernel(name, start, ns, stream, kind, correlation=self._calls, **args))

    def _place_in_queue(self, call: int) -> None:
        """A launch returns when it is made, and no earlier than there is a place for it."""
        self.now += call
        if self.queue and len(self._starts) >= self.queue:
            self.now = max(self.now, self._starts[-self.queue])

    def copy(self, ns: int, name: str = "Memcpy HtoD (Pageable -> Device)", **launching: Any) -> None:
        self.launch(ns, name, kind="gpu_memcpy", api="cudaMemcpyAsync", **launching)

    def copy_pageable(self, ns: int, size: int, stream: int = 7, tail: int = 80 * US) -> None:
        """The driver takes piece for piece: the call returns while the device has the last one left."""
        self._calls += 1
        start = max(self.now + 200 * US, self.free.get(stream, 0) + GAP)
        with self.inside("cuda_runtime", "cudaMemcpyAsync", correlation=self._calls):
            self.now = start + ns - tail
        self.free[stream] = start + ns
        self._starts.append(start)
        name = "Memcpy HtoD (Pageable -> Device)"
        work = kernel(name, start, ns, stream, "gpu_memcpy", correlation=self._calls, bytes=size)
        self.events.append(work)

    def replay(
        self,
        kernels: int,
        ns: int,
        call: int = 20 * US,
        recorded: int | None = None,
        grid: int = 64,
        **numbered: int,
    ) -> None:
        """Launch a graph of kernels, of which only some may be recorded."""
        self._calls += 1
        with self.inside("cuda_runtime", "cudaGraphLaunch", correlation=self._calls):
            self.now += call
        start = max(self.now + LATENCY, self.free.get(7, 0) + GAP)
        for node in range(kernels):
            if recorded is None or node < recorded:
                args = {"grid": [grid, 1, 1], "correlation": self._calls, **numbered}
                self.events.append(kernel(f"node_{node % 4}", start, ns, 7, **args))
            start += ns + GAP
        self.free[7] = start - GAP

    @contextmanager
    def capture(self) -> Iterator[None]:
        """What is launched meanwhile is recorded into a graph and does not run."""
        self.driver("cudaStreamBeginCapture_v10000", 2 * US)
        self._captured = True
        yield
        self._captured = False
        self.driver("cudaStreamEndCapture_v10000", 2 * US)

    def earlier(self, ns: int, name: str = "gemm", stream: int = 7) -> None:
        """Work that was launched before the recording began and ends this much later than now."""
        self.events.append(kernel(name, self.now - 50 * US, ns + 50 * US, stream, correlation=10**6))
        self.free[stream] = self.now + ns

    def open(self, folder: Path, **options: Any) -> Trace:
        return Trace.open(write(folder / "trace.json", self.events), cache=False, **options)
