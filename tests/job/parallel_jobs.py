"""Simulated jobs that split a model in all the usual ways, with planted faults and known truth.

`ParallelJob` says how the job is split and what is wrong with it, and `play` runs it on the simulator of
programs of ranks (`tests.verdicts.planted.rank_programs`).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import product
from pathlib import Path

from hta_widgets.trace.model import Trace
from tests.job.schedules import SCHEDULES, Slot
from tests.support import with_its_files
from tests.verdicts.planted.rank_programs import (
    TRANSFER,
    US,
    Collective,
    Compute,
    Group,
    Pace,
    Play,
    Program,
    Receive,
    Send,
    Step,
    work,
)

LAYER = (
    ("ampere_bf16_s16816gemm_bf16_128x256_tn", 300 * US),
    ("flash_fwd_kernel", 200 * US),
    ("ampere_bf16_s16816gemm_bf16_256x128_nn", 300 * US),
)
WIDTH, TOKENS = 16, 4096
PARAMETERS = (96_000, 48_000)  # of the units that a sharded rank gathers
NS_PER_TOKEN = 100
DDP = "DistributedDataParallel.forward"
ACCUMULATES = "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad"
# How frameworks describe the groups of a dimension.
MEGATRON = {
    "tensor": "TENSOR_MODEL_PARALLEL_GROUP", "context": "CONTEXT_PARALLEL_GROUP",
    "data": "DATA_PARALLEL_GROUP", "pipeline": "PIPELINE_MODEL_PARALLEL_GROUP",
    "expert": "EXPERT_MODEL_PARALLEL_GROUP", "shard": "INTRA_PARTIAL_DATA_PARALLEL_GROUP",
    "replicate": "INTER_PARTIAL_DATA_PARALLEL_GROUP",
}  # fmt: skip
MESH = {
    "tensor": "mesh_tp", "context": "mesh_cp", "data": "mesh_dp", "pipeline": "mesh_pp",
    "expert": "mesh_ep", "shard": "mesh_dp_shard", "replicate": "mesh_dp_replicate",
}  # fmt: skip
UNDEFINED = dict.fromkeys(MESH, "undefined")

Tokens = Callable[[int, int, int, int], int]
"""Tokens of (step, layer) that a rank sends to another: (step, exchange, source, destination)."""


def balanced(step: int, exchange: int, source: int, destination: int) -> int:
    """All but equal."""
    return TOKENS + random.Random(f"{step} {exchange} {source} {destination}").randrange(8)


def towards(*heavy: int, times: float) -> Tokens:
    """The experts of these ranks get more."""
    return lambda step, exchange, source, destination: round(
        balanced(step, exchange, source, destination) * (times if destination in heavy else 1.0)
    )


@dataclass(frozen=True)
class ParallelJob:
    """How a job is split, and what is wrong with it.

    Attributes:
        tensor, context, data, pipeline: ranks along each dimension; the first is that of neighbouring ranks.
        expert: ranks, of those along data, that share the experts.
        shard: ranks, of those along data, that share the parameters (hybrid sharding); 0: all have them.
        schedule, microbatches, chunks: of the pipeline; chunks are parts of the model that a rank has.
        layers: of each chunk, a number for all stages or one for each.
        described: how the groups of a dimension are described.
        tokens: what each rank sends to the experts of another. padded: to one capacity, in equal splits.
        paces: what is wrong with ranks. links: dimension -> times that its collectives take longer, or
            (dimension, lowest rank) -> the same for one group. clocks_ns: what the ranks' clocks are ahead.
    """

    tensor: int = 1
    context: int = 1
    data: int = 1
    pipeline: int = 1
    expert: int = 1
    shard: int = 0
    schedule: str = "1F1B"
    microbatches: int = 1
    chunks: int = 1
    layers: int | tuple[int, ...] = 1
    steps: int = 2
    described: Mapping[str, str] = field(default_factory=lambda: MEGATRON)
    tokens: Tokens = balanced
    padded: bool = False
    paces: Mapping[int, Pace] = field(default_factory=dict)
    links: Mapping[str | tuple[str, int], float] = field(default_factory=dict)
    clocks_ns: tuple[int, ...] = ()
    partners: str = "ranks"

    @property
    def size(self) -> int:
        return self.tensor * self.context * self.data * self.pipeline

    @cached_property
    def coordinates(self) -> dict[int, dict[str, int]]:
        """Each rank's place along each dimension."""
        sizes = (range(self.pipeline), range(self.data), range(self.context), range(self.tensor))
        return {
            rank: {"tensor": t, "context": c, "data": d, "pipeline": p}
            for rank, (p, d, c, t) in enumerate(product(*sizes))
        }

    @cached_property
    def groups(self) -> dict[int, dict[str, Group]]:
        """The groups of each rank, by dimension, those of one rank left out."""
        found: dict[int, dict[str, Group]] = {rank: {} for rank in range(self.size)}
        numbers: dict[tuple[str, tuple[int, ...]], int] = {}
        for rank, own in self.coordinates.items():
            for dimension in ("tensor", "context", "data", "pipeline"):
                along = [
                    other for other, place in self.coordinates.items()
                    if all(place[name] == own[name] for name in own if name != dimension)
                ]  # fmt: skip
                parts = {dimension: along}
                if dimension == "data":
                    at = along.index(rank)
                    if self.expert > 1:
                        parts["expert"] = along[at // self.expert * self.expert :][: self.expert]
                    if self.shard:
                        parts |= {
                            "shard": along[at // self.shard * self.shard :][: self.shard],
                            "replicate": along[at % self.shard :: self.shard],
                        }
                        del parts["data"]
                for name, ranks in parts.items():
                    if len(ranks) > 1:
                        number = numbers.setdefault((name, tuple(ranks)), len(numbers) + 1)
                        found[rank][name] = Group(str(number), tuple(ranks), self.described[name])
        return found

    def play(self) -> Play:
        return Play(
            {rank: _Rank(self, rank).program() for rank in range(self.size)},
            partners=self.partners,
            clocks_ns=self.clocks_ns,
        )

    def __hash__(self) -> int:
        return hash((self.size, self.schedule, self.microbatches, self.layers, self.steps))

    def open(self, folder: Path, without: tuple[int, ...] = ()) -> Trace:
        return self.play().open(folder, without)


@lru_cache(maxsize=64)
def played(job: ParallelJob, without: tuple[int, ...] = ()) -> tuple[Play, Trace]:
    """A job and its recording, played and read once for all tests of a file."""
    play = job.play()
    return play, with_its_files(lambda folder: play.open(folder, without))


def opened(job: ParallelJob, without: tuple[int, ...] = ()) -> Trace:
    return played(job, without)[1]


class _Rank:
    """Writes the program of one rank."""

    def __init__(self, job: ParallelJob, rank: int) -> None:
        self._job, self._rank = job, rank
        self._groups = job.groups[rank]
        self._pace = job.paces.get(rank, Pace())
        self._dice = random.Random(rank)
        self._step = self._exchanges = self._rounds = 0

    def program(self) -> Program:
        job = self._job
        stage = job.coordinates[self._rank]["pipeline"]
        order = SCHEDULES[job.schedule](stage, job.pipeline, job.microbatches, job.chunks)
        program: Program = []
        for step in range(job.steps):
            self._step = step
            self._exchanges = 0
            program += [Step(step, DDP if "data" in self._groups else ""), *self._gathered()]
            for slot in order:
                program += self._slot(stage, slot)
            program += [*self._reduced(), Compute("multi_tensor_apply_kernel", 150 * US)]
        return program

    def _slot(self, stage: int, slot: Slot) -> Program:
        """One pass through a chunk, between what it receives and what it sends."""
        kind, microbatch, chunk = slot
        if kind == "W":
            return self._layers(stage, slot)
        job, group = self._job, self._groups.get("pipeline")
        # Where the pass is on the way of its microbatch, and the stage of each place on it.
        way = [at % job.pipeline for at in range(job.chunks * job.pipeline)]
        here, step = chunk * job.pipeline + stage, 1 if kind == "F" else -1
        if job.schedule == "DualPipe":
            way = list(range(job.pipeline))[:: -1 if chunk else 1]
            here = way.index(stage)
        before: Program = []
        after: Program = []
        message = "F" if kind == "F" else "B", microbatch, chunk if job.schedule == "DualPipe" else 0
        if group is not None and 0 <= here - step < len(way):
            before = [Receive(group.ranks[way[here - step]], group, (*message, here))]
        if group is not None and 0 <= here + step < len(way):
            after = [Send(group.ranks[way[here + step]], group, (*message, here + step))]
        return [*before, *self._layers(stage, slot), *after]

    def _layers(self, stage: int, slot: Slot) -> Program:
        job = self._job
        layers = job.layers if isinstance(job.layers, int) else job.layers[stage]
        whole = 2.0 if slot[0] == "B" else 1.0
        program: Program = []
        for _ in range(layers):
            passed = work(self._dice, self._pace, 1, whole, LAYER)
            program += self._ring(slot) if slot[0] != "W" else []
            program += [self._marked(each, slot) for each in passed]
            if slot[0] != "W":
                program += [*self._summed(slot), *self._experts(slot)]
        return program

    def _marked(self, operation: object, slot: Slot) -> object:
        is_kernel = isinstance(operation, Compute)
        return replace(operation, mark=slot, backward=slot[0] != "F") if is_kernel else operation

    def _transfer(self, dimension: str) -> int:
        links, lowest = self._job.links, self._groups[dimension].ranks[0]
        return round(TRANSFER * links.get((dimension, lowest), links.get(dimension, 1.0)))

    def _summed(self, slot: Slot) -> Program:
        """Ranks that share a layer sum its activations."""
        if "tensor" not in self._groups:
            return []
        size, takes = (65_536,), self._transfer("tensor")
        return [Collective("allreduce", self._groups["tensor"], size, size, 1, takes, slot[0] != "F")]

    def _ring(self, slot: Slot) -> Program:
        """Ranks that share a sequence pass keys and values around (ring attention)."""
        if "context" not in self._groups:
            return []
        group = self._groups["context"]
        at = group.ranks.index(self._rank)
        program: Program = []
        for _ in range(len(group.ranks) - 1):
            self._rounds += 1
            program += [
                Send(group.ranks[(at + 1) % len(group.ranks)], group, ("ring", self._rounds)),
                Receive(group.ranks[at - 1], group, ("ring", self._rounds)),
            ]
        return program

    def _experts(self, slot: Slot) -> Program:
        """Tokens go to the ranks of their experts, and come back."""
        if "expert" not in self._groups:
            return []
        group, backward = self._groups["expert"], slot[0] != "F"
        exchange, self._exchanges = self._exchanges, self._exchanges + 1
        key = self._step, exchange
        sent = tuple(self._job.tokens(*key, self._rank, other) for other in group.ranks)
        received = tuple(self._job.tokens(*key, other, self._rank) for other in group.ranks)
        kind = "all_to_all" if self._job.padded else "all_to_allv"
        takes, one = self._transfer("expert"), (1,) * len(group.ranks)
        computing = Compute(
            "moe_grouped_gemm_kernel",
            round(sum(received) * NS_PER_TOKEN * self._pace.slow),
            64,
            slot,
            backward,
        )
        return [
            Collective("all_to_all", group, one, one, 1, 20 * US, backward, "Long"),
            Collective(kind, group, sent, received, WIDTH, takes, backward),
            computing,
            Collective(kind, group, received, sent, WIDTH, takes, backward),
        ]

    def _gathered(self) -> Program:
        """Ranks that share parameters gather them."""
        if "shard" not in self._groups:
            return []
        group, takes = self._groups["shard"], self._transfer("shard")
        return [
            Collective(
                "_allgather_base", group, (whole // len(group.ranks),), (whole,), 1, takes,
                caller="FSDP::all_gather",
            )
            for whole in PARAMETERS
        ]  # fmt: skip

    def _reduced(self) -> Program:
        """Ranks with the same parameters reduce their gradients."""
        if "data" in self._groups:
            takes, size = self._transfer("data"), (sum(PARAMETERS),)
            group = self._groups["data"]
            return [Collective("allreduce", group, size, size, 1, takes, True, caller=ACCUMULATES)]
        program: Program = []
        for whole in PARAMETERS if "shard" in self._groups else ():
            group = self._groups["shard"]
            part, takes = (whole // len(group.ranks),), self._transfer("shard")
            program.append(Collective("_reduce_scatter_base", group, (whole,), part, 1, takes, True))
            if "replicate" in self._groups:
                takes = self._transfer("replicate")
                program.append(Collective("allreduce", self._groups["replicate"], part, part, 1, takes, True))
        return program
