"""One rank: a process with two threads and a GPU, and the CUDA calls between them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from examples.simulator.device import COMPUTE_STREAM, Device, Work
from examples.simulator.host import HostThread
from examples.simulator.kernels import Kernel
from examples.simulator.machine import Machine
from examples.simulator.memory import CachingAllocator
from examples.simulator.records import Flow, Recorder, Slice
from examples.simulator.seeded_rng import SeededRng

_CONTEXT = 1
_FIRST_PID = 41_000
_COPY_KINDS = {"HtoD": "Pinned -> Device", "DtoH": "Device -> Pinned", "DtoD": "Device -> Device"}


@dataclass(frozen=True)
class CudaEvent:
    """A recorded event: it stands for the last work of a stream at the time of recording."""

    number: int
    stream: int
    correlation: int
    work: Work | None


@dataclass(frozen=True)
class Pace:
    """How long a rank's kernels take, in thousandths of what the cost model says.

    `slow_kernel` is part of the names of the kernels that differ, and by how much they do. The clock of the
    device drifts from step to step by at most `drift`.
    """

    kernels: int = 1000
    slow_kernel: tuple[str, int] = ("", 1000)
    drift: int = 0


class Rank:
    def __init__(self, index: int, seed: int, pace: Pace, machine: Machine, python_frames: bool) -> None:
        self.index = index
        self.machine = machine
        self.recorder = Recorder()
        self.rng = SeededRng(seed, index)
        self.device = Device(index)
        self.memory = CachingAllocator(index)
        self._seed = seed
        self._pace = pace
        self._drift_permille = 1000
        pid = _FIRST_PID + 97 * index
        self.main = HostThread(
            self.recorder, pid, pid, "pt_main_thread", SeededRng(seed, index, 1), machine, python_frames
        )
        self.autograd = HostThread(
            self.recorder,
            pid,
            pid + 31,
            f"pt_autograd_{index}",
            SeededRng(seed, index, 2),
            machine,
            python_frames=False,
        )
        self.main.now_ns = 2_000_000 + self.rng.between(0, 60_000)

    def begin_step(self, step: int) -> None:
        self._drift_permille = SeededRng(self._seed, self.index, 3, step).around(1000, self._pace.drift)

    def launch(self, thread: HostThread, kernel: Kernel, stream: int = COMPUTE_STREAM) -> Work:
        """Launch a compute kernel. A slow rank takes longer for exactly these."""
        duration = self._duration(kernel)
        call = thread.runtime("cudaLaunchKernel")
        return self._submit(thread, call, "kernel", kernel.name, stream, duration, kernel.arguments())

    def launch_collective(
        self, thread: HostThread, kernel: Kernel, stream: int, sequence: int, arguments: Mapping[str, Any]
    ) -> Work:
        call = thread.runtime("cudaLaunchKernelExC")
        args = {**kernel.arguments(), **arguments}
        work = self._submit(thread, call, "kernel", kernel.name, stream, kernel.duration_ns, args)
        work.collective = sequence
        return work

    def launch_graph(self, thread: HostThread, graph_id: int, kernels: Sequence[Kernel]) -> None:
        """One call, many kernels: all carry the call's correlation id, each its own node id."""
        call = thread.runtime("cudaGraphLaunch")
        for node, kernel in enumerate(kernels):
            args = {**kernel.arguments(), "graph id": graph_id, "graph node id": (graph_id << 32) + node}
            self._submit(thread, call, "kernel", kernel.name, COMPUTE_STREAM, self._duration(kernel), args)

    def copy(self, thread: HostThread, kind: str, nbytes: int, stream: int = COMPUTE_STREAM) -> Work:
        """cudaMemcpyAsync; `kind` is HtoD, DtoH or DtoD."""
        per_ns = self.machine.memory // 2 if kind == "DtoD" else self.machine.bus
        duration = 1_100 + self.rng.around(nbytes // per_ns, 40)
        call = thread.runtime("cudaMemcpyAsync")
        name = f"Memcpy {kind} ({_COPY_KINDS[kind]})"
        return self._submit(thread, call, "gpu_memcpy", name, stream, duration, _traffic(nbytes, duration))

    def fill(self, thread: HostThread, nbytes: int) -> Work:
        """cudaMemsetAsync."""
        duration = 900 + self.rng.around(nbytes // self.machine.fill, 40)
        call = thread.runtime("cudaMemsetAsync")
        traffic = _traffic(nbytes, duration)
        return self._submit(thread, call, "gpu_memset", "Memset (Device)", COMPUTE_STREAM, duration, traffic)

    def record_event(self, thread: HostThread, stream: int) -> CudaEvent:
        call = thread.runtime("cudaEventRecordWithFlags")
        number = self.recorder.number("cuda event")
        return CudaEvent(number, stream, call.args["correlation"], self.device.last(stream))

    def wait_event(self, thread: HostThread, stream: int, event: CudaEvent) -> None:
        """Work submitted to `stream` from now on waits for the event; the host does not."""
        call = thread.runtime("cudaStreamWaitEvent")
        self.device.wait(stream, event.work)
        waited = {
            "wait_on_stream": event.stream,
            "wait_on_cuda_event_record_corr_id": event.correlation,
            "wait_on_cuda_event_id": event.number,
        }
        self._synchronisation("Stream Wait Event", stream, call, waited)

    def synchronize(self, thread: HostThread, stream: int) -> Iterator[None]:
        """Block the host until the stream is empty. Yields once: the ranks must be resolved to know when."""
        call = thread.runtime("cudaStreamSynchronize")
        last = self.device.last(stream)
        yield
        if last is not None:
            thread.wait_until(call, last.end_ns + self.rng.within(self.machine.sync_return))
        self._synchronisation("Stream Sync", stream, call, {})

    def finish(self) -> None:
        """Write the device's side into the recorder, once everything has its times."""
        launches: set[int] = set()
        for work in self.device.work:
            where = {"device": self.index, "context": _CONTEXT, "stream": work.stream}
            args = {
                **({"External id": work.args["External id"]} if "External id" in work.args else {}),
                **({"queued": 0} if work.category == "kernel" else {}),
                **where,
                "correlation": work.launch.args["correlation"],
                **work.args,
            }
            self.recorder.slices.append(
                Slice(work.category, work.name, self.index, work.stream, work.start_ns, work.end_ns, args)
            )
            self._arrow(work, begins=work.launch.args["correlation"] not in launches)
            launches.add(work.launch.args["correlation"])
        self._device_annotations()

    def _duration(self, kernel: Kernel) -> int:
        part, slow_permille = self._pace.slow_kernel
        permille = slow_permille if part in kernel.name else 1000
        of_machine = next(share for named, share in self.machine.kernels if named in kernel.name)
        duration = self.rng.around(kernel.duration_ns, 25) * permille // 1000 * of_machine // 1000
        return duration * self._pace.kernels * self._drift_permille // 1_000_000

    def _submit(
        self,
        thread: HostThread,
        call: Slice,
        category: str,
        name: str,
        stream: int,
        duration_ns: int,
        args: dict[str, Any],
    ) -> Work:
        if thread.external_id is not None:
            args = {"External id": thread.external_id, **args}
        ready = call.end_ns + self.rng.within(self.machine.latency)
        gap = self.rng.within(self.machine.graph_gap if "graph id" in args else self.machine.gap)
        work = Work(category, name, stream, ready, duration_ns, gap, args, call, tuple(thread.annotations))
        self.device.submit(work)
        return work

    def _synchronisation(self, kind: str, stream: int, call: Slice, waited: Mapping[str, int]) -> None:
        args = {
            **({"External id": call.args["External id"]} if "External id" in call.args else {}),
            "cuda_sync_kind": kind,
            **waited,
            "stream": stream,
            "correlation": call.args["correlation"],
            "device": self.index,
            "context": _CONTEXT,
        }
        self.recorder.slices.append(
            Slice("cuda_sync", kind, self.index, stream, call.start_ns, call.end_ns, args)
        )

    def _arrow(self, work: Work, begins: bool) -> None:
        """ac2g: from the launching call to the work it caused. A graph launch has one start and many ends."""
        number = work.launch.args["correlation"]
        flows = self.recorder.flows
        if begins:
            flows.append(Flow("s", "ac2g", number, work.launch.pid, work.launch.tid, work.launch.start_ns))
        flows.append(Flow("f", "ac2g", number, self.index, work.stream, work.start_ns))

    def _device_annotations(self) -> None:
        """gpu_user_annotation: per host range and stream, from the first to the last work launched inside."""
        ranges: dict[tuple[int, int], Slice] = {}
        for work in self.device.work:
            for annotation in work.annotations:
                external_id = annotation.args["External id"]
                found = ranges.setdefault(
                    (external_id, work.stream),
                    Slice(
                        "gpu_user_annotation",
                        annotation.name,
                        self.index,
                        work.stream,
                        work.start_ns,
                        work.end_ns,
                        {"External id": external_id},
                    ),
                )
                found.end_ns = max(found.end_ns, work.end_ns)
        self.recorder.slices.extend(ranges.values())


def _traffic(nbytes: int, duration_ns: int) -> dict[str, Any]:
    return {"bytes": nbytes, "memory bandwidth (GB/s)": nbytes / duration_ns}
