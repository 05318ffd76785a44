"""A training loop whose every allocation is known: what it is for, when it is made and when it is freed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hta_widgets.trace.model import Trace
from tests.analysis.multirank import RankFile, job

MAIN, AUTOGRAD = 1, 2


class Training:
    """Steps of forward, backward and optimizer, 100 ns between any two events.

    `held` bytes are allocated before the recording; `reserved` follows what is allocated, `slack` above it.
    """

    def __init__(self, held: int = 1000, device_bytes: int = 0, slack: int = 0) -> None:
        self.file = RankFile(0, device_bytes=device_bytes)
        self.now, self.allocated, self.slack = 1000, held, slack
        self._address, self._size = 0, dict[int, int]()
        self.most = 0

    def _tick(self) -> int:
        self.now += 100
        return self.now

    @contextmanager
    def call(self, category: str, name: str, tid: int = MAIN) -> Iterator[None]:
        start = self._tick()
        yield
        self.file.add(category, name, start, self._tick() - start, tid=tid)

    def allocate(self, size: int, tid: int = MAIN) -> int:
        self._address += 1
        self._size[self._address] = size
        self._change(size, self._address, tid)
        return self._address

    def free(self, address: int, tid: int = MAIN) -> None:
        self._change(-self._size.pop(address), address, tid)

    def _change(self, change: int, address: int, tid: int) -> None:
        self.allocated += change
        self.most = max(self.most, self.allocated + self.slack)
        self.file.memory(self._tick(), change, address, self.allocated, reserved=self.most, tid=tid)

    def step(
        self,
        number: int,
        activation: int = 500,
        gradient: int = 100,
        state: int = 0,
        update: int = 0,
        leak: int = 0,
        reduced: int = 0,
    ) -> None:
        """One training step.

        Its blocks: `activation` from forward to backward, `gradient` from backward until it is zeroed,
        `state` that the optimizer keeps, `update` that it frees again, `leak` that the loop keeps, `reduced`
        while a collective runs in backward; and 7 bytes inside an operator of the forward pass.
        """
        with self.call("user_annotation", f"ProfilerStep#{number}"):
            with (
                self.call("python_function", "nn.Module: Net_0"),
                self.call("cpu_op", "aten::linear"),
                self.call("cpu_op", "aten::addmm"),
            ):
                activations = self.allocate(activation)
                self.free(self.allocate(7))
            with self.call("cpu_op", "autograd::engine::evaluate_function: AddmmBackward0", AUTOGRAD):
                with self.call("cpu_op", "aten::mm", AUTOGRAD):
                    gradients = self.allocate(gradient, AUTOGRAD)
                if reduced:
                    with self.call("cpu_op", "c10d::allreduce_", AUTOGRAD):
                        bucket = self.allocate(reduced, AUTOGRAD)
                    self.free(bucket, AUTOGRAD)
                self.free(activations, AUTOGRAD)
            with (
                self.call("user_annotation", "Optimizer.step#Adam.step"),
                self.call("cpu_op", "aten::_foreach_add_"),
            ):
                if state:
                    self.allocate(state)
                if update:
                    self.free(self.allocate(update))
            with self.call("user_annotation", "Optimizer.zero_grad#Adam.zero_grad"):
                self.free(gradients)
            if leak:
                with self.call("cpu_op", "aten::clone"):
                    self.allocate(leak)

    def open(self, folder: Path) -> Trace:
        return job(folder, self.file)
