"""Programs of one rank that trains a model sharded by FSDP, with planted faults and known truth.

`FsdpJob` says how units gather and what is wrong with it; `play` runs it on the simulator of one rank. What
each unit gathered, computed and reduced is written down as it happens.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hta_widgets.trace.model import Trace
from tests.analysis.kineto_file import Event, job, kernel
from tests.verdicts.planted.host_program import US, Program

GATHER = "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
REDUCE = "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
COPY_IN = "split_with_sizes_copy_kernel"
COMPUTE_STREAM, GATHER_STREAM, REDUCE_STREAM, OTHER_STREAM, COPY_STREAM = 7, 20, 21, 22, 23
ROOT = "(root)"
ELEMENTS = 1 << 20
RANKS = 2


@dataclass(frozen=True)
class Done:
    """What a unit did: times in ns."""

    step: int
    unit: str
    phase: str
    part: str
    issued: int
    start: int
    end: int
    prefetched: bool = False


@dataclass(frozen=True)
class FsdpJob:
    """How units gather, and what is wrong with it.

    Attributes:
        layers, steps: how many.
        compute_ns: of a unit's forward; its backward takes twice as long.
        gather_ns, reduce_ns: of a layer.
        forward_ahead, backward_ahead: units that are sent for ahead, in the turn of the one before.
        sends_after_ns: backward sends for units ahead so long after its compute was launched; 0: before.
        waits: the host waits for the device at the beginning of each unit, so that it never is ahead.
        one_stream: reductions run on the stream of gathers.
        first_ahead: the root sends for these layers ahead, in this order.
        held_ns: a gather starts so much later than it could, as if an event held it back.
        all_reduce_ns: another exchange that begins with each forward turn.
        names_units: as fully_shard does; else as FullyShardedDataParallel, which does not.
        sizes: the sizes of messages are recorded.
        ranges: FSDP records its ranges at all.
        waits_for_ns: so much of each gather is waiting for another rank.
        waits_for_compute: a gather waits for what was computed before its launch. All waits between streams
            are recorded then.
        copy_in_ns: of a kernel that fills the buffer before each gather. copy_stream: where it runs.
        root: the outermost module has parameters of its own; else FSDP records no range of it.
    """

    layers: int = 4
    steps: int = 3
    compute_ns: int = 400 * US
    gather_ns: int = 300 * US
    reduce_ns: int = 300 * US
    forward_ahead: int = 0
    backward_ahead: int = 1
    sends_after_ns: int = 0
    waits: bool = False
    one_stream: bool = False
    first_ahead: tuple[int, ...] = ()
    held_ns: int = 0
    all_reduce_ns: int = 0
    names_units: bool = True
    sizes: bool = True
    ranges: bool = True
    waits_for_ns: int = 0
    waits_for_compute: bool = False
    copy_in_ns: int = 0
    copy_stream: int = COPY_STREAM
    root: bool = True

    def play(self) -> Played:
        return Played(self)

    def open(self, folder: Path) -> Trace:
        return self.play().open(folder)


@dataclass
class Played:
    """A job that has run."""

    job: FsdpJob
    program: Program = field(default_factory=Program)
    done: list[Done] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._whole: dict[str, int] = {}  # when each unit is whole
        self._gathered: dict[str, int] = {}  # the calls that record so
        self._step = self._sequence = self._ready = 0
        for number in range(1, self.job.steps + 1):
            self._step = number
            with self.program.step(number):
                self._forward()
                self._backward()
                self._wait(COMPUTE_STREAM, self._reduces_on)
                self._launch(100 * US, "multi_tensor_apply_kernel", COMPUTE_STREAM, at=self._reduced_ns())
            self._ready = self.program.free[COMPUTE_STREAM]  # gathers need what the optimizer has written
            self._whole.clear()
        self.program.synchronise()

    @property
    def events(self) -> list[Event]:
        return self.program.events

    def open(self, folder: Path, *others: list[Event]) -> Trace:
        return job(folder, self.events, *others)

    def layer(self, at: int) -> str:
        return f"layers.{at}"

    # -- the passes --------------------------------------------------------------------------------

    def _forward(self) -> None:
        layers = [self.layer(at) for at in range(self.job.layers)]
        with self._turn(ROOT, "forward"):
            with self._range("pre_forward", ROOT):
                if self.job.root:
                    self._gather(ROOT, "forward")
                for at in self.job.first_ahead:
                    self._ahead(layers[at], "forward")
            self._compute(ROOT, "forward", self.job.compute_ns // 2)
            for at, name in enumerate(layers):
                if self.job.waits:
                    self.program.synchronise()
                with self._turn(name, "forward"):
                    with self._range("pre_forward", name):
                        self._gather(name, "forward")
                        for following in layers[at + 1 : at + 1 + self.job.forward_ahead]:
                            self._ahead(following, "forward")
                    if self.job.all_reduce_ns:
                        whole = self._whole[name]
                        self._launch(self.job.all_reduce_ns, ALL_REDUCE, OTHER_STREAM, at=whole)
                    self._compute(name, "forward", self.job.compute_ns)
                    with self._range("post_forward", name):
                        self._whole.pop(name)
            self._compute(ROOT, "forward", self.job.compute_ns // 2)
            with self._range("post_forward", ROOT):
                pass

    def _backward(self) -> None:
        layers = [self.layer(at) for at in reversed(range(self.job.layers))]
        with self._range("pre_backward", ROOT):
            self._all_ahead(layers[: self.job.backward_ahead])
        self._compute(ROOT, "backward", self.job.compute_ns)
        for at, name in enumerate(layers):
            if self.job.waits:
                self.program.synchronise()
            following = layers[at + 1 : at + 1 + self.job.backward_ahead]
            with self._range("pre_backward", name):
                self._gather(name, "backward")
                if not self.job.sends_after_ns:
                    self._all_ahead(following)
            self._compute(name, "backward", 2 * self.job.compute_ns)
            if self.job.sends_after_ns:
                self.program.silence(self.job.sends_after_ns)
                self._all_ahead(following)
            self._reduce(name)
        with self._range("root_post_backward_callback", ""):
            if self.job.root:
                self._reduce(ROOT)

    @property
    def _reduces_on(self) -> int:
        return GATHER_STREAM if self.job.one_stream else REDUCE_STREAM

    def _all_ahead(self, names: list[str]) -> None:
        for name in names:
            self._ahead(name, "backward")

    def _reduced_ns(self) -> int:
        return self.program.free[self._reduces_on]

    # -- what units do -----------------------------------------------------------------------------

    def _gather(self, name: str, phase: str, prefetched: bool = False) -> None:
        if name in self._whole:
            return
        with self._range("all_gather", name):
            ns = self.job.gather_ns + self.job.waits_for_ns
            free = self.program.free.get(GATHER_STREAM, 0)
            held = max(free, self.program.now) + self.job.held_ns if self.job.held_ns else 0
            at = max(self._ready, held)
            if self.job.copy_in_ns:
                at = max(at, self._launch(self.job.copy_in_ns, COPY_IN, self.job.copy_stream, at)[2])
            if self.job.waits_for_compute:
                at = max(at, self.program.free.get(COMPUTE_STREAM, 0))
            self._wait(GATHER_STREAM, COMPUTE_STREAM)
            done = self._launch(ns, GATHER, GATHER_STREAM, at, **self._message("_allgather_base"))
            self._gathered[name] = self._record()
        self._whole[name] = done[2]
        self.done.append(Done(self._step, name, phase, "all_gather", *done, prefetched))

    def _ahead(self, name: str, phase: str) -> None:
        if name not in self._whole:
            with self._range(f"{phase}_prefetch", name):
                self._gather(name, phase, prefetched=True)

    def _compute(self, name: str, phase: str, ns: int) -> None:
        self.program.silence(20 * US)
        if name in self._gathered:
            self._wait(COMPUTE_STREAM, GATHER_STREAM, self._gathered[name])
        for part in (ns // 2, ns - ns // 2):
            done = self._launch(part, "gemm", COMPUTE_STREAM, at=self._whole.get(name, 0))
            self.done.append(Done(self._step, name, phase, "compute", *done))

    def _reduce(self, name: str) -> None:
        with self._range("post_backward_reshard", name):
            self._whole.pop(name, None)
        with self._range("post_backward_reduce", name):
            stream = self._reduces_on
            self._wait(stream, COMPUTE_STREAM)
            message = self._message("_reduce_scatter_base")
            at = self.program.free[COMPUTE_STREAM]
            done = self._launch(self.job.reduce_ns, REDUCE, stream, at, **message)
        self.done.append(Done(self._step, name, "backward", "reduce_scatter", *done))

    def _record(self) -> int:
        return self.program.driver("cudaEventRecord", US) if self.job.waits_for_compute else 0

    def _wait(self, stream: int, awaited: int, record: int = 0) -> None:
        """Write down that a stream waits for the work of another one until now, or until it was recorded."""
        if not self.job.waits_for_compute:
            return
        record = record or self._record()
        args = {"wait_on_stream": awaited, "wait_on_cuda_event_record_corr_id": record}
        args["correlation"] = self.program.driver("cudaStreamWaitEvent", US)
        self.events.append(kernel("Stream Wait Event", self.program.now, 0, stream, "cuda_sync", **args))

    def _launch(self, ns: int, name: str, stream: int, at: int, **args: Any) -> tuple[int, int, int]:
        issued = self.program.now
        self.program.launch(ns, name, stream, at=at, **args)
        end = self.program.free[stream]
        return issued, end - ns, end

    def _message(self, operation: str) -> dict[str, Any]:
        self._sequence += 1
        if not self.job.sizes:
            return {}
        whole, part = ("Out", "In") if operation == "_allgather_base" else ("In", "Out")
        return {
            "Collective name": operation, "Process Group Name": "0", "Group size": RANKS, "dtype": "BFloat16",
            "Seq": self._sequence, f"{whole} msg nelems": ELEMENTS, f"{part} msg nelems": ELEMENTS // RANKS,
        }  # fmt: skip

    # -- ranges ------------------------------------------------------------------------------------

    @contextmanager
    def _turn(self, name: str, phase: str) -> Iterator[None]:
        """All of a forward, which only the wrapper records as one range."""
        if self.job.names_units or not self.job.ranges:
            yield
            return
        with self.program.inside("user_annotation", "FullyShardedDataParallel.forward"):
            self.program.silence(US)
            yield

    @contextmanager
    def _range(self, kind: str, name: str) -> Iterator[None]:
        said = _fully_shard(kind, name) if self.job.names_units else _WRAPPER.get(kind, "")
        rootless = name == ROOT and not self.job.root
        if not said or rootless or not self.job.ranges:
            yield
            return
        with self.program.inside("user_annotation", said):
            self.program.silence(US)
            yield
            self.program.silence(US)


def _fully_shard(kind: str, name: str) -> str:
    if kind.endswith("_prefetch"):
        return f"FSDP::{kind} for {name}"
    return f"FSDP::{kind}" if name in (ROOT, "") else f"FSDP::{kind} ({name})"


# The wrapper's ranges for the same; it has none around a single all-gather.
_WRAPPER = {
    "pre_forward": "FullyShardedDataParallel._pre_forward",
    "post_forward": "FullyShardedDataParallel._post_forward",
    "forward_prefetch": "FullyShardedDataParallel._pre_forward_prefetch",
    "pre_backward": "FullyShardedDataParallel._pre_backward_hook",
    "backward_prefetch": "FullyShardedDataParallel._pre_backward_prefetch",
    "post_backward_reduce": "FullyShardedDataParallel._post_backward_hook",
    "root_post_backward_callback": "FullyShardedDataParallel._post_backward_final_callback",
}
