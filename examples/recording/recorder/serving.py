"""The inference program: read the prompts, then decode a token for each of them at a time. Needs PyTorch."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
from torch import Tensor
from torch.profiler import record_function

from recorder.gpt import Cache, Gpt, GrowingCache
from recorder.machine import Place
from recorder.setup import Setup
from recorder.tasks import DTYPES

DECODE_STEPS = 12


class Serving:
    """A model and its caches; `step` reads a batch of prompts and decodes `DECODE_STEPS` tokens for each.

    Steps are announced as SGLang's scheduler does: `step[EXTEND bs=4 toks=1024]`, `step[DECODE bs=4]`. The
    scheduler needs every token, so the host waits at the end of each step.
    """

    def __init__(self, setup: Setup, here: Place) -> None:
        self.setup, self.here = setup, here
        self.prompt = setup.model.sequence // 2
        torch.manual_seed(0)
        self.model = Gpt(setup.model, setup.attention).to(here.device, DTYPES[setup.precision]).eval()
        with torch.inference_mode():
            like = self.model.norm.weight
            self.caches = [
                GrowingCache() if setup.cache == "growing" else Cache(setup.batch, setup.model, like)
                for _ in range(setup.model.layers)
            ]
            # At fixed addresses, for the graph.
            self.token = torch.zeros((setup.batch, 1), dtype=torch.long, device=here.device)
            self.position = torch.zeros(1, dtype=torch.long, device=here.device)
            self.decode: Callable[[], Tensor] = self._captured() if setup.cuda_graphs else self._decode
        self._times: dict[str, list[int]] = {}

    @torch.inference_mode()
    def step(self) -> None:
        """Serve one batch of requests from prompt to last token."""
        prompts = torch.randint(self.setup.model.vocabulary, (self.setup.batch, self.prompt))
        self._times = {"prefill": [], "decode": []}
        start = time.perf_counter_ns()
        with record_function(f"step[EXTEND bs={self.setup.batch} toks={prompts.numel()}]"):
            positions = torch.arange(self.prompt, device=self.here.device)
            token = self._sample(prompts.to(self.here.device), positions).cpu()
        self._times["prefill"].append(time.perf_counter_ns() - start)
        for position in range(self.prompt, self.prompt + DECODE_STEPS):
            start = time.perf_counter_ns()
            with record_function(f"step[DECODE bs={self.setup.batch}]"):
                self.token.copy_(token)
                self.position.fill_(position)
                token = self.decode().cpu()
            self._times["decode"].append(time.perf_counter_ns() - start)

    def samples(self, repeats: int, steps: int) -> dict[str, list[int]]:
        """ns of every prefill and every decode step of `repeats` * `steps` batches of requests."""
        times: dict[str, list[int]] = {"prefill": [], "decode": []}
        for _ in range(repeats * steps):
            self.step()
            for phase, found in self._times.items():
                times[phase] += found
        return times

    def _decode(self) -> Tensor:
        return self._sample(self.token, self.position)

    def _sample(self, tokens: Tensor, positions: Tensor) -> Tensor:
        return self.model(tokens, positions, self.caches)[:, -1:].argmax(-1)

    def _captured(self) -> Callable[[], Tensor]:
        """Decoding as a replay of one CUDA graph."""
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self._decode()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            token = self._decode()

        def replay() -> Tensor:
            graph.replay()
            return token

        return replay
