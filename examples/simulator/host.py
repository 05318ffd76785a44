"""One host thread: a clock that only this thread moves, and a stack of open calls.

Every call costs time before and after its body, so a child always lies strictly inside its parent,
as in a real trace.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from examples.simulator.machine import Machine, Spread
from examples.simulator.records import Recorder, Slice
from examples.simulator.seeded_rng import SeededRng
from examples.simulator.tensor import Input, shape_arguments

# CUPTI's callback ids of the runtime calls the simulator makes.
_CALLBACK_IDS = {
    "cudaLaunchKernel": 211,
    "cudaLaunchKernelExC": 430,
    "cudaMemcpyAsync": 41,
    "cudaMemsetAsync": 51,
    "cudaEventRecordWithFlags": 356,
    "cudaStreamWaitEvent": 147,
    "cudaStreamSynchronize": 131,
    "cudaGraphLaunch": 311,
}


class HostThread:
    def __init__(
        self,
        recorder: Recorder,
        pid: int,
        tid: int,
        name: str,
        rng: SeededRng,
        machine: Machine,
        python_frames: bool,
    ) -> None:
        self.recorder = recorder
        self.pid = pid
        self.tid = tid
        self.now_ns = 0
        self._rng = rng
        self._machine = machine
        self._python_frames = python_frames
        self._python_stack: list[int] = []
        self._external_ids: list[int] = []
        self.annotations: list[Slice] = []
        recorder.thread_names[pid, tid] = name

    @property
    def external_id(self) -> int | None:
        """The id of the innermost open operator or annotation: what the profiler tags launches with."""
        return self._external_ids[-1] if self._external_ids else None

    def spend(self, low_ns: int, high_ns: int) -> None:
        """Let time pass: Python, dispatcher, waiting."""
        self.now_ns += self._rng.between(low_ns, high_ns)

    @contextmanager
    def _call(self, category: str, name: str, args: dict[str, Any], cost: Spread) -> Iterator[Slice]:
        cost_ns = self._rng.within(cost)
        record = Slice(category, name, self.pid, self.tid, self.now_ns, args=args)
        self.recorder.slices.append(record)
        self.spend(cost_ns // 2, cost_ns)
        yield record
        self.spend(cost_ns // 4, cost_ns // 2)
        record.end_ns = self.now_ns
        self.spend(cost_ns // 8, cost_ns // 4)

    @contextmanager
    def op(
        self, name: str, inputs: Sequence[Input] | None = None, args: dict[str, Any] | None = None
    ) -> Iterator[Slice]:
        """An operator (`cpu_op`), with the shapes of its inputs where it has any."""
        numbers = self._numbers()
        shapes = shape_arguments(inputs) if inputs is not None else {}
        with self._call(
            "cpu_op", name, {**numbers, **(args or {}), **shapes}, self._machine.operator
        ) as record:
            self._external_ids.append(numbers["External id"])
            yield record
            self._external_ids.pop()

    @contextmanager
    def annotation(self, name: str) -> Iterator[Slice]:
        """A `record_function` range (`user_annotation`)."""
        numbers = self._numbers()
        with self._call("user_annotation", name, dict(numbers), self._machine.annotation) as record:
            self._external_ids.append(numbers["External id"])
            self.annotations.append(record)
            yield record
            self.annotations.pop()
            self._external_ids.pop()

    @contextmanager
    def frame(self, name: str, module_id: int | None = None) -> Iterator[None]:
        """A Python call (`python_function`); recorded only where the job runs with `with_stack=True`."""
        if not self._python_frames:
            yield
            return
        number = self.recorder.number("python")
        parent = self._python_stack[-1] if self._python_stack else None
        args: dict[str, Any] = {"Python parent id": parent, "Python id": number}
        if module_id is not None:
            args["Python module id"] = module_id
        args["Ev Idx"] = self.recorder.number("event") - 1
        with self._call("python_function", name, args, self._machine.frame):
            self._python_stack.append(number)
            yield
            self._python_stack.pop()

    def runtime(self, name: str) -> Slice:
        """A CUDA runtime call that only costs time. Its correlation id names the device work it causes."""
        start = self.now_ns
        self.now_ns += self._rng.within(self._machine.calls[name])
        args: dict[str, Any] = {} if self.external_id is None else {"External id": self.external_id}
        args |= {"cbid": _CALLBACK_IDS[name], "correlation": self.recorder.number("correlation")}
        record = Slice("cuda_runtime", name, self.pid, self.tid, start, self.now_ns, args)
        self.recorder.slices.append(record)
        self.spend(150, 400)
        return record

    def wait_until(self, call: Slice, moment_ns: int) -> None:
        """Make a blocking runtime call return no earlier than `moment_ns`."""
        call.end_ns = max(call.end_ns, moment_ns)
        self.now_ns = max(self.now_ns, call.end_ns)
        self.spend(150, 400)

    def _numbers(self) -> dict[str, Any]:
        return {
            "External id": self.recorder.number("external"),
            "Record function id": 0,
            "Ev Idx": self.recorder.number("event") - 1,
        }
