"""The simulated job: what to run, and running it.

Each rank's program is a generator that runs on until its host would block on the device. Then the work of
all ranks is resolved together, and every program goes on with its answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Literal

from examples.simulator import kineto
from examples.simulator.autograd import GradientListener
from examples.simulator.collective import Collective, resolve
from examples.simulator.ddp import DistributedDataParallel
from examples.simulator.fsdp import FullyShardedDataParallel
from examples.simulator.gpt import Gpt, GptShape
from examples.simulator.machine import MACHINES
from examples.simulator.nccl import ProcessGroup
from examples.simulator.rank import Pace, Rank
from examples.simulator.seeded_rng import SeededRng
from examples.simulator.serving import serve, serve_continuously
from examples.simulator.training import train
from examples.simulator.truth import JobTruth, rank_truth

Strategy = Literal["single", "ddp", "fsdp_full_shard", "fsdp_shard_grad_op", "serving"]


@dataclass(frozen=True)
class SimulatedJob:
    """A GPT-2-like job. Equal fields give equal traces.

    `straggler` computes `slowdown_permille` / 1000 times as long as the others. `clock_offsets_ns` is what
    each rank's clock shows beyond the true time (missing ranks: 0). `dataloader_stall_ns` is how long the
    host waits for each batch, give or take a tenth. `decode_batches`: the batch sizes a server goes through;
    `plan`: or its steps, each of so many prompts and so many requests that decode.
    `events_by_category` orders the file as Kineto does, for smaller files than the order in time gives.
    `bus_gbps` is NCCL's "bus bandwidth" and `bucket_mb` the size of DDP's buckets.

    To compare two runs of one job, give them different seeds, and differences to find: `slow_kernel`, part of
    the names of compute kernels and how long those take in thousandths of the usual, and `extra_op`, an
    operator that every block runs besides. Steps differ by up to `drift_permille` in the speed of a rank's
    kernels. `machine` is one of `machine.MACHINES`.
    """

    name: str
    strategy: Strategy
    ranks: int = 1
    steps: int = 3
    first_step: int = 10
    layers: int = 4
    batch: int = 8
    sequence: int = 1024
    straggler: int | None = None
    slowdown_permille: int = 1000
    dataloader_stall_ns: int = 0
    decode_batches: tuple[int, ...] = (16, 8)
    plan: tuple[tuple[int, int], ...] = ()
    python_frames: bool = False
    events_by_category: bool = False
    clock_offsets_ns: tuple[int, ...] = ()
    bus_gbps: int = 160
    bucket_mb: int = 25  # PyTorch's default `bucket_cap_mb`
    slow_kernel: tuple[str, int] = ("", 1000)
    extra_op: str | None = None
    drift_permille: int = 0
    seed: int = 2026
    machine: str = "example"

    def __post_init__(self) -> None:
        if self.strategy in ("single", "serving") and self.ranks != 1:
            raise ValueError(f"strategy {self.strategy!r} runs on one rank, not {self.ranks}")
        if self.strategy.startswith("fsdp") and self.ranks == 1:
            raise ValueError(f"strategy {self.strategy!r} has nothing to shard on one rank")
        if min(self.ranks, self.steps, self.layers) < 1:
            raise ValueError("ranks, steps and layers start at 1")

    @property
    def shape(self) -> GptShape:
        return GptShape(self.layers, self.batch, self.sequence)


class Simulation:
    """A job that has run: its ranks' records, and what is true about them."""

    def __init__(self, job: SimulatedJob) -> None:
        self.job = job
        self.ranks = [_rank(job, index) for index in range(job.ranks)]
        programs = [_program(job, rank) for rank in self.ranks]
        held_bytes = self.ranks[0].memory.allocated
        collectives = _run(self.ranks, programs, SeededRng(job.seed, 99))
        for rank in self.ranks:
            rank.finish()
        self.truth = JobTruth(
            {rank.index: rank_truth(rank.device.work, self._steps(rank)) for rank in self.ranks},
            tuple(collectives),
            job.straggler,
            tuple(sum(weight.numel for weight in unit) for unit in job.shape.units()),
            held_bytes,
        )

    def write(self, folder: Path) -> list[Path]:
        """Write one `rank-<n>.pt.trace.json.gz` per rank into `folder`, which is made if it is missing."""
        folder.mkdir(parents=True, exist_ok=True)
        paths = []
        for rank in self.ranks:
            path = folder / f"rank-{rank.index}.pt.trace.json.gz"
            kineto.write(rank, self._header(rank), path)
            paths.append(path)
        return paths

    def _header(self, rank: Rank) -> kineto.FileHeader:
        job = self.job
        offsets = dict(enumerate(job.clock_offsets_ns))
        offset = offsets.get(rank.index, 0)
        return kineto.FileHeader(
            job.name, job.ranks, job.seed, job.python_frames, offset, job.events_by_category
        )

    def _steps(self, rank: Rank) -> dict[int, tuple[int, int]]:
        """Windows of the steps: by their number in training, counted from 0 in serving."""
        prefix = "step[" if self.job.strategy == "serving" else "ProfilerStep#"
        first = 0 if self.job.strategy == "serving" else self.job.first_step
        found = [
            (record.start_ns, record.end_ns)
            for record in rank.recorder.slices
            if record.category == "user_annotation" and record.name.startswith(prefix)
        ]
        return dict(enumerate(found, first))


def simulate(job: SimulatedJob) -> Simulation:
    """Run `job`. The same job always gives the same simulation."""
    return Simulation(job)


def _rank(job: SimulatedJob, index: int) -> Rank:
    slowdown = job.slowdown_permille if index == job.straggler else 1000
    pace = Pace(slowdown, job.slow_kernel, job.drift_permille)
    return Rank(index, job.seed, pace, MACHINES[job.machine], job.python_frames)


def _program(job: SimulatedJob, rank: Rank) -> Iterator[None]:
    shape = job.shape
    if job.strategy == "serving":
        model = Gpt(rank, shape, training=False, extra_op=job.extra_op)
        if job.plan:
            return serve_continuously(rank, model, job.plan)
        return serve(rank, model, job.steps, job.decode_batches)
    group = ProcessGroup(rank, job.ranks, job.bus_gbps)
    sharding: FullyShardedDataParallel | None = None
    listener: GradientListener | None = None
    if job.strategy == "ddp":
        listener = DistributedDataParallel(rank, group, job.bucket_mb)
    elif job.strategy != "single":
        reshards = job.strategy == "fsdp_full_shard"
        listener = sharding = FullyShardedDataParallel(rank, group, shape.units(), reshards)
    model = Gpt(rank, shape, training=True, sharding=sharding, extra_op=job.extra_op)
    return train(rank, model, listener, job.first_step, job.steps, job.dataloader_stall_ns)


def _run(ranks: list[Rank], programs: list[Iterator[None]], rng: SeededRng) -> list[Collective]:
    devices = [rank.device for rank in ranks]
    collectives: list[Collective] = []
    # All ranks run the same program, so all block, and at last all end, at the same place.
    for _ in zip_longest(*programs):
        collectives += resolve(devices, rng)
    return collectives + resolve(devices, rng)
