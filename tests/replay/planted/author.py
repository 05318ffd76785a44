"""Writes programs as PyTorch runs them: operators that launch, with the noise that hosts and devices have."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from examples.simulator.seeded_rng import SeededRng
from tests.replay.planted.program import (
    DEVICE,
    MAIN,
    Allocate,
    Call,
    Enter,
    HandOver,
    Kind,
    Launch,
    Leave,
    Operation,
    Program,
    Record,
    Spend,
    Synchronise,
    Wait,
    Work,
)

__all__ = ["AUTOGRAD", "COMPUTE", "MS", "US", "Author"]

US, MS = 1_000, 1_000_000
AUTOGRAD = 2
COMPUTE = 7

_HOST_PERMILLE = 250  # how far a time of the host is from its mean, at most
_DEVICE_PERMILLE = 30
_SLOW_CALL_EVERY = 200  # one launch in so many loads code, or the like, and takes ten times as long


class Author:
    """A program as it is written, with a generator of noise of its own."""

    def __init__(self, seed: int) -> None:
        self.operations: list[Operation] = []
        self._rng = SeededRng(seed)
        self._thread = MAIN
        self._events = 0

    def program(self) -> Program:
        return Program(tuple(self.operations))

    # -- the host ----------------------------------------------------------------------------------

    def host(self, ns: int) -> None:
        """About so long, nothing is recorded but what is open."""
        self.operations.append(Spend(self._rng.around(ns, _HOST_PERMILLE)))

    @contextmanager
    def inside(self, category: str, name: str, before: int = 0, after: int = 0) -> Iterator[None]:
        """All that is written meanwhile lies in this operator or annotation."""
        assert category in ("cpu_op", "user_annotation")
        self.operations.append(Enter(category, name))  # type: ignore[arg-type]
        if before:
            self.host(before)
        yield
        if after:
            self.host(after)
        self.operations.append(Leave())

    @contextmanager
    def operator(self, name: str, ns: int = 4 * US) -> Iterator[None]:
        """An operator that takes the host so long besides its calls, and Python as long again before it."""
        self.host(ns)
        with self.inside("cpu_op", name, ns * 3 // 4, ns // 4):
            yield

    @contextmanager
    def annotation(self, name: str) -> Iterator[None]:
        with self.inside("user_annotation", name, 2 * US, 1 * US):
            yield

    def hand_over(self, thread: int, ns: int = 35 * US) -> None:
        self.operations.append(HandOver(thread, self._rng.around(ns, _HOST_PERMILLE)))
        self._thread = thread

    # -- calls -------------------------------------------------------------------------------------

    def launch(
        self,
        name: str,
        ns: int,
        stream: int = COMPUTE,
        kind: Kind = "compute",
        call: str = "cudaLaunchKernel",
        blocking: bool = False,
        elements: int = 0,
    ) -> None:
        """Launch work that takes about so long."""
        own = self._rng.around(4 * US if kind == "compute" else 5 * US, _HOST_PERMILLE)
        latency = self._rng.between(4_600, 7_400)
        if not blocking and self._rng.between(1, _SLOW_CALL_EVERY) == 1:
            own, latency = 10 * own, latency + 9 * own
        work = Work(
            kind,
            name,
            self._rng.around(ns, _DEVICE_PERMILLE),
            stream,
            latency,
            self._rng.between(850, 1_350),
            elements,
        )
        self.operations.append(Launch(call, own, (work,), blocking, self._rng.between(3_000, 6_000)))

    def graph(self, kernels: list[tuple[str, int]]) -> None:
        """Launch a graph of these kernels, one after the other."""
        work = tuple(
            Work(
                "compute",
                name,
                self._rng.around(ns, _DEVICE_PERMILLE),
                COMPUTE,
                self._rng.between(9_000, 12_000),
                self._rng.between(500, 900),
            )
            for name, ns in kernels
        )
        self.operations.append(Launch("cudaGraphLaunch", self._rng.around(45 * US, _HOST_PERMILLE), work))

    def copy(self, kind: str, ns: int, stream: int = COMPUTE, blocking: bool = False) -> None:
        """`kind` is "HtoD" or "DtoH"; a blocking copy is of pageable memory."""
        memory = "Pageable" if blocking else "Pinned"
        ends = f"{memory} -> Device" if kind == "HtoD" else f"Device -> {memory}"
        self.launch(f"Memcpy {kind} ({ends})", ns, stream, "copy", "cudaMemcpyAsync", blocking)

    def fill(self, ns: int) -> None:
        self.launch("Memset (Device)", ns, kind="fill", call="cudaMemsetAsync")

    def record(self, stream: int) -> int:
        """Number of an event for what was launched on the stream so far."""
        self._events += 1
        self.operations.append(Record(self._events, stream, self._rng.around(900, _HOST_PERMILLE)))
        return self._events

    def wait(self, stream: int, event: int) -> None:
        """Let a stream wait for an event."""
        self.operations.append(Wait(event, stream, self._rng.around(900, _HOST_PERMILLE)))

    def synchronise(self, stream: int | None = None, event: int | None = None) -> None:
        """Wait for a stream, for an event or, with neither, for the device."""
        name = "cudaDeviceSynchronize"
        if event is not None:
            name = "cudaEventSynchronize"
        elif stream is not None:
            name = "cudaStreamSynchronize"
        on = DEVICE if stream is None and event is None else stream
        own, tail = self._rng.around(2_500, _HOST_PERMILLE), self._rng.between(3_000, 6_000)
        self.operations.append(Synchronise(name, own, tail, on, event))

    def item(self) -> None:
        """`tensor.item()`: a blocking copy, and a wait for its stream that then has nothing to wait for."""
        with self.operator("aten::item", 2 * US), self.operator("aten::_local_scalar_dense", 2 * US):
            self.copy("DtoH", 1_500, blocking=True)
            self.synchronise(COMPUTE)

    def allocate(self, ns: int, name: str = "cudaMalloc") -> None:
        self.operations.append(Allocate(name, self._rng.around(ns, _HOST_PERMILLE), name == "cudaFree"))

    def call(self, name: str, ns: int) -> None:
        self.operations.append(Call(name, self._rng.around(ns, _HOST_PERMILLE)))
