"""Several ranks as programs of their hosts, which run the same loop and meet in collectives."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from hta_widgets.trace.model import Trace
from tests.analysis.kineto_file import job
from tests.verdicts.planted.host_program import GAP, US, Program

ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


class Hosts:
    """The programs of some ranks."""

    def __init__(self, ranks: int) -> None:
        self.ranks = [Program() for _ in range(ranks)]
        self._exchanges = 0

    @contextmanager
    def step(self, number: int) -> Iterator[None]:
        with ExitStack() as steps:
            for program in self.ranks:
                steps.enter_context(program.step(number))
            yield

    def compute(self, kernels: int, ns: int, name: str = "gemm") -> None:
        for program in self.ranks:
            for _ in range(kernels):
                program.operator("aten::mm", 10 * US)
                program.launch(ns, name)

    def all_reduce(self, ns: int, stream: int = 20, waits: bool = True) -> None:
        """Launched behind the work so far, it ends on all ranks together; what follows `waits` for it."""
        self._exchanges += 1
        group = list(range(len(self.ranks)))
        args = {
            "Collective name": "allreduce", "Group size": len(group), "Process Group Name": "0",
            "Process Group Ranks": str(group), "dtype": "BFloat16", "Seq": self._exchanges,
            "In msg nelems": 1 << 20, "Out msg nelems": 1 << 20,
        }  # fmt: skip
        for program in self.ranks:
            program.launch(0, ALL_REDUCE, stream, at=program.free[7] + GAP, **args)
        begins = [program.free[stream] for program in self.ranks]
        for program, begin in zip(self.ranks, begins, strict=True):
            program.free[stream] = max(begins) + ns
            program.events[-1]["dur"] = program.free[stream] - begin
            if waits:
                program.free[7] = program.free[stream]

    def synchronise(self) -> None:
        for program in self.ranks:
            program.synchronise()

    def open(self, folder: Path) -> Trace:
        return job(folder, *(program.events for program in self.ranks))
