"""The training program: one optimizer step after the other. Needs PyTorch."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.utils.data import DataLoader, IterableDataset

from recorder.gpt import Gpt
from recorder.machine import Place
from recorder.setup import Setup
from recorder.strategy import shared

DTYPES = {"bf16": torch.bfloat16, "fp32": torch.float32}


class Batches(IterableDataset[Tensor]):
    """Random tokens without end, each batch after the stall that the setup plants."""

    def __init__(self, setup: Setup, seed: int) -> None:
        self.setup, self.seed = setup, seed

    def __iter__(self) -> Iterator[Tensor]:
        dice = torch.Generator().manual_seed(self.seed)
        size = (self.setup.batch, self.setup.model.sequence + 1)
        while True:
            if self.setup.data_stall_ms:
                time.sleep(self.setup.data_stall_ms / 1000)
            yield torch.randint(self.setup.model.vocabulary, size, generator=dice)


class Training:
    """A model, its optimizer and its data; `step` runs one step of it."""

    def __init__(self, setup: Setup, here: Place) -> None:
        self.setup, self.here = setup, here
        on_gpu = here.device.type == "cuda"
        torch.manual_seed(0)
        model = Gpt(setup.model).to(here.device, DTYPES[setup.precision])
        self.model = shared(model, setup.strategy, here)
        # Capturable for all, not only for the captured step: pairs differ in one thing.
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4, fused=True, capturable=on_gpu)
        if setup.compile:
            self.model = torch.compile(self.model)
        self.positions = torch.arange(setup.model.sequence, device=here.device)
        loader = DataLoader(Batches(setup, here.rank), batch_size=None, pin_memory=on_gpu)
        self.batches = iter(loader)
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
        self.optimizer.zero_grad(set_to_none=True)
        for index in range(self.setup.micro_batches):
            tokens = self._next()
            with self._reduction(last=index == self.setup.micro_batches - 1):
                loss = self._loss(tokens)
                loss.backward()
            if self.setup.item:
                loss.item()
        self.optimizer.step()

    def _next(self) -> Tensor:
        return next(self.batches).to(self.here.device, non_blocking=True)

    def _loss(self, tokens: Tensor) -> Tensor:
        logits = self.model(tokens[:, :-1], self.positions)
        return functional.cross_entropy(logits.flatten(0, 1).float(), tokens[:, 1:].flatten())

    def _reduction(self, last: bool) -> Any:
        """Gradients are exchanged once a step, after its last micro-batch."""
        return nullcontext() if last or self.here.ranks == 1 else self.model.no_sync()

    def _captured(self) -> Callable[[], None]:
        """The step as a replay of one CUDA graph: forward, backward and optimizer."""
        tokens = self._next()
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):  # libraries and the optimizer make their state outside of the graph
            for _ in range(3):
                self._step()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        self.optimizer.zero_grad(set_to_none=True)
        with torch.cuda.graph(graph):
            self._loss(tokens).backward()
            self.optimizer.step()

        def replay() -> None:
            tokens.copy_(next(self.batches), non_blocking=True)
            graph.replay()

        return replay
