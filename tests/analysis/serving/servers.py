"""Servers as programs: a host that schedules, launches and reads back, and what is true of their steps.

The truth is written down as the program runs: when the device begins and ends the work of each step. Nothing
of it is read from the events.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from hta_widgets.trace.model import Trace
from tests.analysis.kineto_file import Event, job
from tests.verdicts.planted.host_program import GAP, LATENCY, MS, US, Program

SCHEDULER = "/srv/engine/core/scheduler.py(88): schedule"
DETOKENIZER = "/srv/engine/detokenizer.py(31): update"


@dataclass(frozen=True)
class Batch:
    """What one step computes: tokens of prompts, requests that decode, the drafts that each verifies.

    word: SGLang's for a forward pass of speculation, such as TARGET_VERIFY; "" for any other.
    """

    prompt_tokens: int = 0
    prompts: int = 0
    decodes: int = 0
    drafts: int = 0
    kv: int = 0
    word: str = ""

    @property
    def phase(self) -> str:
        if self.word:
            return "verify" if self.word == "TARGET_VERIFY" else "draft"
        return "mixed" if self.prompts and self.decodes else "prefill" if self.prompts else "decode"

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.decodes * (1 + self.drafts)

    @property
    def sglang(self) -> str:
        if self.phase == "prefill":
            return f"step[EXTEND bs={self.prompts} toks={self.tokens}]"
        g_sq = self.decodes * (1 + self.drafts)
        if self.word:
            return f"step[{self.word} bs={self.decodes} g_sq={g_sq} g_sqsq=1 g_sqsk=2 g_sk={self.kv}]"
        if self.phase == "decode":
            return f"step[DECODE bs={self.decodes} g_sq={g_sq} g_sqsq=1 g_sqsk=2 g_sk={self.kv}]"
        return (
            f"step[MIXED bs={self.prompts + self.decodes} c={self.prompts} g={self.decodes} "
            f"c_sq={self.prompt_tokens} c_sk={self.prompt_tokens} c_sqsq=1 c_sqsk=1 "
            f"g_sq={g_sq} g_sk={self.kv} g_sqsq=1 g_sqsk=1]"
        )

    @property
    def vllm(self) -> str:
        g_sq = self.decodes * (1 + self.drafts)
        return (
            f"execute_{self.tokens}_context_{self.prompts}(sq{self.prompt_tokens}sk{self.prompt_tokens}"
            f"sqsq1sqsk1)_generation_{self.decodes}(sq{g_sq}sk{self.kv}sqsq1sqsk1)"
        )

    @property
    def tensorrt_llm(self) -> str:
        read = f"{self.prompts} ctx reqs, {self.prompt_tokens} ctx tokens"
        return f"[Executor] _forward_step 7: {read}, {self.decodes} gen reqs"

    @property
    def atom(self) -> str:
        """The batch is padded to the size of a captured graph where all requests decode."""
        size, tokens = self.prompts + self.decodes, f"tok={self.tokens}"
        if self.phase == "prefill":
            return f"prefill[bs={size} {tokens} ctx=[{self.prompt_tokens}]... sk={self.prompt_tokens}]"
        if self.phase == "mixed":
            return f"decode[bs={size} {tokens} p={self.prompts} d={self.decodes} sk={self.kv}]"
        return f"decode[bs={size}/{self.padded} {tokens} d={size} sk={self.kv}]"

    @property
    def padded(self) -> int:
        return 1 << (self.decodes - 1).bit_length()


@dataclass
class Server:
    """One rank of a server; `serve` runs a step.

    Attributes:
        schedule_ns: what the scheduler takes before each step. read_ns: what handling the tokens takes after.
        overlapped: the scheduler works while the device does (asynchronous scheduling).
        tail: names and ns of kernels that end each step.
        starts, ends: of the device work of each step, ns.
    """

    schedule_ns: int = 3 * MS
    read_ns: int = 1 * MS
    engine: str = "sglang"
    overlapped: bool = False
    tail: tuple[tuple[str, int], ...] = ()
    program: Program = field(default_factory=Program)
    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)

    def serve(self, batch: Batch, token_ns: int = 2 * US, base_ns: int = 4 * MS, kernels: int = 8) -> None:
        program = self.program
        if not self.overlapped:
            self._frame(SCHEDULER, self.schedule_ns)
        each = (base_ns + token_ns * batch.tokens) // kernels
        with program.inside("user_annotation", getattr(batch, self.engine)):
            for place in range(kernels):
                free = program.free.get(7)
                program.launch(each, f"gemm_{place % 3}")
                if place == 0:
                    arrives = program.now + LATENCY
                    self.starts.append(max(arrives, (free or 0) + GAP) if free is not None else arrives)
            for name, ns in self.tail:
                program.launch(ns, name)
            self.ends.append(program.free[7])
            if self.overlapped:
                self._frame(SCHEDULER, self.schedule_ns)
            else:
                program.synchronise()
        if not self.overlapped:
            self._frame(DETOKENIZER, self.read_ns)

    def _frame(self, name: str, ns: int) -> None:
        self.program._calls += 1
        with self.program.inside("python_function", name, **{"Python id": self.program._calls}):
            self.program.silence(ns)

    @property
    def periods(self) -> list[int]:
        return [after - start for start, after in zip(self.starts, self.starts[1:], strict=False)]

    @property
    def bubbles(self) -> list[int]:
        return [max(0, after - end) for end, after in zip(self.ends, self.starts[1:], strict=False)]

    @property
    def events(self) -> list[Event]:
        return self.program.events

    def open(self, folder: Path) -> Trace:
        return job(folder, self.events)


ACCEPTED = (40, 64, 16, 50, 33)
"""How many tokens each turn of `speculating` makes."""


def speculating(around: bool, prompt_before: tuple[int, ...] = ()) -> Server:
    """A model that drafts runs before each step that verifies, and once after it.

    around: the scheduler names the whole turn, as decoding of a token per request. prompt_before: the turns
    before which a prompt is read.
    """
    server, kv = Server(), 40_000
    for turn, new in enumerate((*ACCEPTED, 0)):
        if turn in prompt_before:
            server.serve(Batch(prompt_tokens=4096, prompts=1))
        outer = server.program.inside("user_annotation", Batch(decodes=16, kv=kv).vllm)
        with outer if around else nullcontext():
            for _ in range(2):
                server.serve(Batch(decodes=16, kv=kv, word="DECODE"), base_ns=MS, kernels=2)
            server.serve(Batch(decodes=16, drafts=3, kv=kv, word="TARGET_VERIFY"))
            server.serve(Batch(decodes=16, drafts=3, kv=kv, word="DRAFT_EXTEND_V2"), base_ns=MS, kernels=2)
        kv += new
    return server
