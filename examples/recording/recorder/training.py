"""The training program: one optimizer step after the other. Needs PyTorch."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor

from recorder.machine import Place
from recorder.setup import Setup
from recorder.strategy import shared
from recorder.tasks import Batch, Images, Text


class Training:
    """A model, its optimizer and its data; `step` runs one step of it."""

    def __init__(self, setup: Setup, here: Place) -> None:
        self.setup, self.here = setup, here
        on_gpu = here.device.type == "cuda"
        torch.manual_seed(0)
        torch.set_float32_matmul_precision("high" if setup.precision == "tf32" else "highest")
        torch.backends.cudnn.allow_tf32 = setup.precision == "tf32"
        self.task = Images(setup, here) if setup.workload == "images" else Text(setup, here)
        self.model = shared(self.task.model(), setup.strategy, here)
        fused = setup.optimizer == "fused"
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(),
            lr=1e-4,
            fused=fused,
            foreach=setup.optimizer == "foreach",
            # For every fused one, not only for the captured step: pairs differ in one thing.
            capturable=on_gpu and fused,
        )
        if setup.compile:
            self.model = torch.compile(self.model)
        self.batches = self.task.batches()
        self.step: Callable[[], None] = self._captured() if setup.cuda_graphs else self._step

    def samples(self, repeats: int, steps: int) -> dict[str, list[int]]:
        """ns per step, one for each of `repeats` runs of `steps`: within a run the host may go ahead."""
        times = []
        for _ in range(repeats):
            self.here.meet()
            start = time.perf_counter_ns()
            for _ in range(steps):
                self.step()
            self.here.synchronize()
            times.append((time.perf_counter_ns() - start) // steps)
        return {"step": times}

    def _step(self) -> None:
        self.optimizer.zero_grad(set_to_none=not self.setup.keep_gradients)
        for index in range(self.setup.micro_batches):
            batch = self._next()
            with self._reduction(last=index == self.setup.micro_batches - 1):
                loss = self._loss(batch)
                loss.backward()
            if self.setup.item:
                loss.item()
        self.optimizer.step()

    def _next(self) -> Batch:
        first, second = next(self.batches)
        ahead = not self.setup.pageable
        return first.to(self.here.device, non_blocking=ahead), second.to(self.here.device, non_blocking=ahead)

    def _loss(self, batch: Batch) -> Tensor:
        if self.setup.precision != "amp":
            return self.task.loss(self.model, batch)
        with torch.autocast(self.here.device.type, torch.bfloat16):
            return self.task.loss(self.model, batch)

    def _reduction(self, last: bool) -> Any:
        """Gradients are exchanged once a step, after its last micro-batch."""
        return nullcontext() if last or self.here.ranks == 1 else self.model.no_sync()

    def _captured(self) -> Callable[[], None]:
        """The step as a replay of one CUDA graph: forward, backward and optimizer."""
        batch = self._next()
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):  # libraries and the optimizer make their state outside of the graph
            for _ in range(3):
                self._step()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        self.optimizer.zero_grad(set_to_none=True)
        with torch.cuda.graph(graph):
            self._loss(batch).backward()
            self.optimizer.step()

        def replay() -> None:
            for here, there in zip(batch, next(self.batches), strict=True):
                here.copy_(there, non_blocking=True)
            graph.replay()

        return replay
