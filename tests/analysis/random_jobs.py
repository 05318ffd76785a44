"""Random jobs as the profiler could have written them: training loops on several ranks, and their defects."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Event = dict[str, Any]
OPERATORS = ["aten::linear", "aten::addmm", "aten::mm", "aten::relu_", "nccl:all_reduce", "é <b>op</b>"]
KERNELS = ["gemm<128, 64>(float*)", "void at::native::elementwise<4>(int)", "SyncBatchNorm_kernel", "relu"]
HOST, DEVICE = 10, 0


@dataclass(frozen=True)
class Job:
    """What a job is made of. Equal jobs make equal files.

    `ties` lets times coincide. `nasty` adds device rows nobody launched, calls that launched nothing, graph
    launches, kernels that overlap on a stream or start before their call, waits, host calls that carry a
    stream, and gaps.
    """

    seed: int
    ranks: int = 2
    steps: int = 2
    operators: int = 4
    ties: bool = True
    nasty: bool = True

    def events(self, rank: int) -> list[Event]:
        return _Writer(self, rank).events

    def write(self, folder: Path, shuffled: int | None = None) -> tuple[Path, dict[int, list[int]]]:
        """The files, and for each rank which original event each written one is."""
        folder.mkdir(parents=True, exist_ok=True)
        order: dict[int, list[int]] = {}
        for rank in range(self.ranks):
            events = self.events(rank)
            order[rank] = list(range(len(events)))
            if shuffled is not None:
                random.Random(shuffled + rank).shuffle(order[rank])
            document = {
                "schemaVersion": 1,
                "distributedInfo": {"rank": rank, "world_size": self.ranks, "backend": "nccl"},
                "deviceProperties": [{"id": 0, "name": "GPU"}],
                "traceEvents": [events[at] for at in order[rank]],
            }
            (folder / f"rank-{rank}.json").write_text(json.dumps(document), encoding="utf-8")
        return folder, order


class _Writer:
    """Plays one rank: a host that calls and launches, and a device that follows."""

    def __init__(self, job: Job, rank: int) -> None:
        self.job = job
        self.common = random.Random(job.seed)  # what all ranks do alike
        self.dice = random.Random(job.seed * 1000 + rank + 1)
        self.events: list[Event] = [
            {"ph": "M", "name": "process_name", "pid": HOST, "tid": 0, "ts": 0, "args": {"name": "python"}}
        ]
        self.now_ns = 10**15 + self.dice.randrange(2000)
        self.free = {7: self.now_ns, 20: self.now_ns}
        self.correlation = 0
        self.steps(rank)

    def tick(self, most: int = 9000) -> None:
        self.now_ns += (
            self.dice.choice((0, 1, 999, 1000, 3500)) if self.job.ties else self.dice.randrange(1, most)
        )

    def slice(
        self, name: str, category: str, begin: int, end: int, pid: int, tid: int, **arguments: Any
    ) -> None:
        times = {"ts": begin / 1000, "dur": (end - begin) / 1000}
        self.events.append(
            {"ph": "X", "name": name, "cat": category, "pid": pid, "tid": tid, **times, "args": arguments}
        )

    def steps(self, rank: int) -> None:
        for step in range(self.job.steps):
            begin = self.now_ns
            self.tick()
            stepless = self.job.nasty and self.dice.random() < 0.1
            for at in range(self.common.randrange(self.job.operators + 1)):
                self.operator(depth=0)
                if at % 2:
                    self.collective(step * 100 + at)
                self.memory(at)
            self.tick()
            self.now_ns += 1
            if not stepless:
                self.slice(f"ProfilerStep#{step + 5}", "user_annotation", begin, self.now_ns, HOST, HOST)
            if self.job.nasty and self.dice.random() < 0.4:
                self.oddity()
            self.now_ns += self.dice.randrange(1, 5000)

    def operator(self, depth: int) -> None:
        begin = self.now_ns
        name = self.common.choice(OPERATORS)
        for _ in range(self.common.randrange(3)):
            self.tick()
            if depth < 3 and self.common.random() < 0.5:
                self.operator(depth + 1)
            else:
                self.launch(self.common.choice(KERNELS), "kernel", "cudaLaunchKernel", 7)
        self.tick()
        self.now_ns += 0 if self.job.ties else 1
        arguments = {"External id": self.correlation, "Input Dims": [[4, 8], []], "Input type": ["float", ""]}
        self.slice(name, "cpu_op", begin, self.now_ns, HOST, HOST, **arguments)

    def launch(self, kernel: str, category: str, call: str, stream: int, **arguments: Any) -> None:
        self.correlation += 1
        begin = self.now_ns
        self.tick()
        self.now_ns += 1
        copies = 3 if self.job.nasty and self.dice.random() < 0.1 else 1
        call = "cudaGraphLaunch" if copies > 1 else call
        if not (self.job.nasty and self.dice.random() < 0.1):
            self.slice(call, "cuda_runtime", begin, self.now_ns, HOST, HOST, correlation=self.correlation)
        for _ in range(copies):
            start = max(self.free[stream], self.now_ns) + self.dice.randrange(1, 4000)
            if self.job.nasty and self.dice.random() < 0.1:
                start = begin - self.dice.randrange(1, 500)
            end = start + self.dice.randrange(0 if self.job.nasty else 1, 20_000)
            self.free[stream] = max(end, self.free[stream]) if self.dice.random() < 0.9 else start + 1
            self.slice(
                kernel, category, start, end, DEVICE, stream,
                correlation=self.correlation, stream=stream, device=DEVICE, **arguments,
            )  # fmt: skip

    def collective(self, sequence: int) -> None:
        args = {"Collective name": "allreduce", "Process Group Name": "0", "Group size": self.job.ranks,
                "In msg nelems": 64, "Out msg nelems": 64, "dtype": "Float", "Seq": sequence}  # fmt: skip
        self.launch("ncclDevKernel_AllReduce_Sum_f32_RING_LL()", "kernel", "cudaLaunchKernelExC", 20, **args)

    def memory(self, at: int) -> None:
        kind = self.common.choice(("Memcpy HtoD (Pinned -> Device)", "Memset (Device)"))
        call, category = (
            ("cudaMemcpyAsync", "gpu_memcpy") if "cpy" in kind else ("cudaMemsetAsync", "gpu_memset")
        )
        self.launch(kind, category, call, 7, bytes=256 * at, **{"memory bandwidth (GB/s)": at / 3})
        self.events.append({
            "ph": "i", "s": "t", "name": "[memory]", "cat": "cpu_instant_event", "pid": HOST, "tid": HOST,
            "ts": self.now_ns / 1000,
            "args": {"Bytes": 512, "Total Allocated": 512 * at, "Device Type": 1, "Device Id": 0, "Addr": at},
        })  # fmt: skip

    def oddity(self) -> None:
        begin, end = self.now_ns - self.dice.randrange(1, 3000), self.now_ns
        match self.dice.randrange(6):
            case 0:
                self.slice("cudaDeviceSynchronize", "cuda_runtime", begin, end, HOST, HOST, correlation=0)
            case 1:
                self.slice(
                    "Stream Sync", "cuda_sync", begin, end, DEVICE, 7, stream=7, correlation=self.correlation
                )
            case 2:
                self.slice(
                    "triton_poi_fused", "cpu_op", begin, end, HOST, HOST, stream=7, kernel_backend="triton"
                )
            case 3:
                self.slice("## forward ##", "gpu_user_annotation", begin, end, DEVICE, 7)
                self.slice("## forward ##", "user_annotation", begin, end, HOST, HOST)
            case 4:
                self.slice(
                    "train.py(1): step", "python_function", begin, end, HOST, HOST + 1, **{"Python id": 1}
                )
            case _:
                self.slice(
                    "orphan", "kernel", begin, end, DEVICE, 0, stream=0, device=DEVICE, correlation=10**6
                )
