"""Jobs of several ranks with known culprits: each rank's program, played against those of its partners.

A program is a list of operations. A rank does one after the other; `Send` alone runs beside what follows.
All ranks leave an exchange together, when its last one has arrived and the data is transferred.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path

from hta_widgets.trace.model import Trace
from tests.analysis.multirank import RankFile

US, MS = 1_000, 1_000_000
TRANSFER = 100 * US
_HOST = 5 * US  # from the beginning of a step to its first work
_AHEAD = 2 * US  # a launch is this much earlier than its work
_MESSAGE = 65_536  # elements of a message between two ranks
_LISTED = 30
_AUTOGRAD = 2  # the thread of backward
_NODE = "autograd::engine::evaluate_function: AddmmBackward0"


@dataclass(frozen=True)
class Group:
    """A process group: its name, its ranks, and what it is for."""

    name: str
    ranks: tuple[int, ...]
    description: str = "undefined"


@dataclass(frozen=True)
class Compute:
    """A kernel; `mark` says what it is part of, for the truth, and `backward` that autograd launches it."""

    name: str
    ns: int
    grid: int = 64
    mark: tuple[str, int, int] | None = None
    backward: bool = False


@dataclass(frozen=True)
class Copy:
    ns: int


@dataclass(frozen=True)
class Idle:
    """The host is busy with something else, and the device has nothing to do."""

    ns: int


@dataclass(frozen=True)
class AllReduce:
    ranks: tuple[int, ...]
    transfer_ns: int = TRANSFER


@dataclass(frozen=True)
class Collective:
    """An exchange of a whole group.

    Attributes:
        operation: as PyTorch records it, a key of `KERNELS`.
        sent, received: elements, or of an all-to-all the tokens for and of each rank, of `width` elements.
        caller: the operator that launches it.
    """

    operation: str
    group: Group
    sent: tuple[int, ...] = (4096,)
    received: tuple[int, ...] = (4096,)
    width: int = 1
    transfer_ns: int = TRANSFER
    backward: bool = False
    dtype: str = "BFloat16"
    caller: str = ""


@dataclass(frozen=True)
class Send:
    """`tag` tells messages between the same ranks apart; it is not recorded."""

    to: int
    group: Group | None = None
    tag: tuple[object, ...] = ()


@dataclass(frozen=True)
class Receive:
    source: int
    group: Group | None = None
    tag: tuple[object, ...] = ()


@dataclass(frozen=True)
class Step:
    """`forward` is the annotation of the wrapper's forward, which begins with the step."""

    number: int
    forward: str = ""


Operation = Compute | Copy | Idle | AllReduce | Collective | Send | Receive | Step
Program = list[Operation]

KERNELS = {
    "allreduce": "ncclDevKernel_AllReduce_Sum_bf16_RING_LL",
    "_allgather_base": "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    "_reduce_scatter_base": "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    "all_to_all": "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)",
    "all_to_allv": "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)",
}


@dataclass(frozen=True)
class Computed:
    """When a kernel ran, by the true clock, and in which step."""

    step: int
    mark: tuple[str, int, int]
    start: int
    end: int


@dataclass
class _Player:
    """A rank on its way through its program."""

    file: RankFile
    program: Program
    clock_ns: int = 0
    drift_ppm: int = 0
    now: int = MS
    at: int = 0
    step: tuple[int, int] | None = None
    counts: dict[object, int] = field(default_factory=dict)
    steps: list[tuple[int, int]] = field(default_factory=list)
    computed: list[Computed] = field(default_factory=list)

    def nth(self, operation: object) -> int:
        self.counts[operation] = self.counts.get(operation, 0) + 1
        return self.counts[operation]

    def kernel(
        self,
        start: int,
        end: int,
        name: str,
        stream: int,
        posted: int | None = None,
        backward: bool = False,
        **args: object,
    ) -> None:
        self.file.clock_ns = self.clock_ns + self.drift_ppm * start // 1_000_000
        launched = (start if posted is None else posted) - _AHEAD
        self.file.kernel(start, end, name, stream, launched=launched, **args)
        if backward:
            self.file.events[-2]["tid"] = _AUTOGRAD
            self.file.add("cpu_op", _NODE, launched - 400, 800, tid=_AUTOGRAD)

    def end_step(self) -> None:
        if self.step is not None:
            number, start = self.step
            self.steps.append((start, self.now))
            self.file.clock_ns = self.clock_ns + self.drift_ppm * start // 1_000_000
            self.file.step(number, start, self.now)
        self.step = None


class Play:
    """Plays the programs of all ranks, and writes what each of them would have recorded.

    Attributes:
        partners: how a send or receive tells its partner: "ranks" (Src Rank, Dst Rank), "pairs" (a process
            group of two), or "" (not at all).
    """

    def __init__(
        self,
        programs: dict[int, Program],
        partners: str = "ranks",
        clocks_ns: tuple[int, ...] = (),
        drift_ppm: tuple[int, ...] = (),
    ) -> None:
        self.partners = partners
        clock, drift = dict(enumerate(clocks_ns)), dict(enumerate(drift_ppm))
        self._players = {
            rank: _Player(RankFile(rank), program, clock.get(rank, 0), drift.get(rank, 0))
            for rank, program in programs.items()
        }
        for player in self._players.values():
            player.file.groups = _groups(player.program)
        self._arrived: dict[tuple[object, ...], dict[int, int]] = {}
        self._free: dict[tuple[int, int], int] = {}
        self._run()

    def open(self, folder: Path, without: tuple[int, ...] = ()) -> Trace:
        """The job, without the files of some ranks."""
        self.write(folder, without)
        return Trace.open(folder, cache=False)

    def write(self, folder: Path, without: tuple[int, ...] = ()) -> None:
        """Write the files of the job, without those of some ranks."""
        for rank, player in self._players.items():
            if rank not in without:
                player.file.write(folder, len(self._players))

    def file(self, rank: int) -> RankFile:
        """What a rank has recorded."""
        return self._players[rank].file

    def computed(self, rank: int) -> list[Computed]:
        """When each marked kernel of a rank really ran."""
        return self._players[rank].computed

    def steps(self, rank: int) -> list[tuple[int, int]]:
        """When each step of a rank really began and ended."""
        return self._players[rank].steps

    def _run(self) -> None:
        moved = True
        while moved:
            moved = False
            for rank in self._players:
                moved |= self._advance(rank)
        left = {
            rank: player.program[player.at] for rank, player in self._players.items() if not _done(player)
        }
        assert not left, f"these wait for ever: {left}"
        for player in self._players.values():
            player.end_step()

    def _advance(self, rank: int) -> bool:
        """Go on until the rank is blocked in an exchange; whether it got anywhere."""
        player, begin = self._players[rank], self._players[rank].at
        while not _done(player):
            operation = player.program[player.at]
            if isinstance(operation, AllReduce | Collective | Receive):
                if not self._meets(rank, player, operation):
                    return player.at > begin
            elif isinstance(operation, Send):
                key = (rank, operation.to, operation.tag, player.nth((operation.to, operation.tag)))
                self._arrived.setdefault(key, {})[rank] = player.now
                player.now += 2 * US
            elif isinstance(operation, Step):
                player.end_step()
                player.step = operation.number, player.now
                if operation.forward:
                    player.file.add("user_annotation", operation.forward, player.now + US, US)
                player.now += _HOST
            elif isinstance(operation, Idle):
                player.now += operation.ns
            else:
                end = player.now + operation.ns
                if isinstance(operation, Copy):
                    player.kernel(player.now, end, "Memcpy HtoD (Pageable -> Device)", 7)
                    player.file.events[-1]["cat"] = "gpu_memcpy"
                else:
                    grid = {"grid": [operation.grid, 1, 1], "block": [128, 1, 1]}
                    player.kernel(player.now, end, operation.name, 7, backward=operation.backward, **grid)
                    if operation.mark is not None:
                        at = len(player.steps)
                        player.computed.append(Computed(at, operation.mark, player.now, end))
                player.now = end
            player.at += 1
        return player.at > begin

    def _meets(self, rank: int, player: _Player, operation: AllReduce | Collective | Receive) -> bool:
        """Whether all partners have arrived; then the exchange is recorded, and this rank goes on."""
        if isinstance(operation, Collective):
            return self._meets_group(rank, player, operation)
        number = player.counts.get(_counted(operation), 0) + 1
        if isinstance(operation, AllReduce):
            key: tuple[object, ...] = (operation.ranks, number)
            arrived = self._arrived.setdefault(key, {})
            arrived.setdefault(rank, player.now)
            if len(arrived) < len(operation.ranks):
                return False
            end = max(arrived.values()) + operation.transfer_ns
            args = self._group("allreduce", operation.ranks, f"group {operation.ranks}")
            args |= {"Seq": number, "In msg nelems": 4096}
            player.kernel(arrived[rank], end, "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", 20, **args)
        else:
            arrived = self._arrived.setdefault((operation.source, rank, operation.tag, number), {})
            if operation.source not in arrived:
                return False
            pair = (operation.source, rank)
            posted = arrived[operation.source]
            sent = max(posted, self._free.get(pair, 0))
            end = max(sent, player.now) + TRANSFER
            self._free[pair] = end
            sender = self._players[operation.source]
            stream = 30 + rank
            name = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"
            group = operation.group
            message = self._message("send", pair, "Dst Rank", rank, group)
            sender.kernel(sent, end, name, stream, posted, **message)
            message = self._message("recv", pair, "Src Rank", operation.source, group)
            player.kernel(player.now, end, name, 21, **message)
        player.nth(_counted(operation))
        player.now = end
        return True

    def _meets_group(self, rank: int, player: _Player, operation: Collective) -> bool:
        """The same for a collective, which carries what PyTorch records."""
        group = operation.group
        number = player.counts.get(group.name, 0) + 1
        arrived = self._arrived.setdefault((group, number), {})
        arrived.setdefault(rank, player.now)
        if len(arrived) < len(group.ranks):
            return False
        end = max(arrived.values()) + operation.transfer_ns
        splits = operation.operation == "all_to_allv"
        args = self._group(operation.operation, group.ranks, group.name) | {
            "Process Group Description": group.description,
            "Seq": number,
            "dtype": operation.dtype,
            "In msg nelems": sum(operation.sent) * operation.width,
            "Out msg nelems": sum(operation.received) * operation.width,
            "In split size": _listed(operation.sent) if splits else "[]",
            "Out split size": _listed(operation.received) if splits else "[]",
        }
        name = KERNELS[operation.operation]
        player.kernel(arrived[rank], end, name, 20, backward=operation.backward, **args)
        if operation.caller:
            thread = _AUTOGRAD if operation.backward else 1
            launched = arrived[rank] - _AHEAD
            player.file.add("cpu_op", operation.caller, launched - 300, 600, tid=thread)
        player.nth(group.name)
        player.now = end
        return True

    def _group(self, name: str, ranks: tuple[int, ...], group: str) -> dict[str, object]:
        return {
            "Collective name": name,
            "Group size": len(ranks),
            "Process Group Name": group,
            "Process Group Ranks": list(ranks),
            "dtype": "BFloat16",
        }

    def _message(
        self, name: str, pair: tuple[int, int], side: str, partner: int, group: Group | None
    ) -> dict[str, object]:
        known = {side: partner} if self.partners == "ranks" else {}
        if group is not None and self.partners != "pairs":
            described = {"Process Group Description": group.description, "In msg nelems": _MESSAGE}
            described |= {"Out msg nelems": _MESSAGE}
            return self._group(name, group.ranks, group.name) | described | known
        ranks = pair if self.partners == "pairs" else tuple(self._players)
        return self._group(name, tuple(sorted(ranks)), f"pipeline {sorted(ranks)}") | known


def _counted(operation: AllReduce | Receive) -> object:
    """What exchanges are counted by: the n-th of one rank meets the n-th of another."""
    return (operation.source, operation.tag, "from") if isinstance(operation, Receive) else operation


def _listed(sizes: tuple[int, ...]) -> str:
    """Split sizes as PyTorch writes them, of which it keeps 30."""
    text = ", ".join(map(str, sizes[:_LISTED]))
    return f"[{text}, ...]" if len(sizes) > _LISTED else f"[{text}]"


def _groups(program: Program) -> list[dict[str, object]]:
    """The process groups of a rank, as its file lists them."""
    found = dict.fromkeys(getattr(operation, "group", None) for operation in program)
    return [
        {"pg_name": group.name, "pg_desc": group.description, "pg_size": len(group.ranks),
         "backend_config": "cuda:nccl", "ranks": list(group.ranks)}
        for group in found if group is not None
    ]  # fmt: skip


def _done(player: _Player) -> bool:
    return player.at >= len(player.program)


@dataclass(frozen=True)
class Pace:
    """How one rank's work differs from that of the others.

    Attributes:
        slow: the kernels whose names contain `of` take this many times as long.
        of: part of their names.
        larger: those kernels have this many times the blocks.
        extra: layers beyond those of the others.
        idle_ns: its host is late by this in each microbatch.
        copy_ns: it copies this long in each microbatch.
    """

    slow: float = 1.0
    of: str = ""
    larger: int = 1
    extra: int = 0
    idle_ns: int = 0
    copy_ns: int = 0


LAYER = (
    ("ampere_bf16_s16816gemm_bf16_128x256_tn", 300 * US),
    ("flash_fwd_kernel", 200 * US),
    ("ampere_bf16_s16816gemm_bf16_256x128_nn", 300 * US),
    ("vectorized_layer_norm_kernel", 60 * US),
    ("vectorized_elementwise_kernel", 40 * US),
    ("fused_dropout_kernel", 30 * US),
    ("moe_grouped_gemm_kernel", 70 * US),
)


def work(
    dice: random.Random,
    pace: Pace,
    layers: int = 1,
    times: float = 1.0,
    layer: tuple[tuple[str, int], ...] = LAYER,
) -> Program:
    """A pass through some layers, whose kernels vary by up to 0.3 %."""
    program: Program = [Copy(pace.copy_ns)] if pace.copy_ns else []
    program += [Idle(pace.idle_ns)] if pace.idle_ns else []
    for _ in range(layers + pace.extra):
        for name, ns in layer:
            slow, larger = (pace.slow, pace.larger) if pace.of in name else (1.0, 1)
            jitter = dice.uniform(0.997, 1.003)
            program.append(Compute(name, int(ns * times * slow * jitter), 64 * larger))
    return program


def data_parallel(paces: list[Pace], steps: int = 4, layers: int = 4) -> dict[int, Program]:
    """Every rank the same layers, then one all-reduce of all ranks."""
    ranks = tuple(range(len(paces)))
    programs: dict[int, Program] = {}
    for rank, pace in enumerate(paces):
        dice = random.Random(rank)
        programs[rank] = []
        for step in range(steps):
            programs[rank] += [Step(step), *work(dice, pace, layers), AllReduce(ranks)]
    return programs


def pipeline(
    paces: list[Pace],
    steps: int = 3,
    microbatches: int = 8,
    ranks: tuple[int, ...] | None = None,
    after: tuple[tuple[int, ...], ...] = (),
) -> dict[int, Program]:
    """One forward, one backward: stage s runs on ranks[s], and ends a step with the all-reduce after[s]."""
    stages = len(paces)
    ranks = ranks or tuple(range(stages))
    programs: dict[int, Program] = {}
    for stage, pace in enumerate(paces):
        dice = random.Random(ranks[stage])

        def forward(stage: int = stage, pace: Pace = pace, dice: random.Random = dice) -> Program:
            received: Program = [Receive(ranks[stage - 1])] if stage else []
            sent: Program = [Send(ranks[stage + 1])] if stage + 1 < stages else []
            return [*received, *work(dice, pace), *sent]

        def backward(stage: int = stage, pace: Pace = pace, dice: random.Random = dice) -> Program:
            received: Program = [Receive(ranks[stage + 1])] if stage + 1 < stages else []
            sent: Program = [Send(ranks[stage - 1])] if stage else []
            return [*received, *work(dice, pace, times=2.0), *sent]

        warm = min(stages - stage - 1, microbatches)
        program: Program = []
        for step in range(steps):
            program.append(Step(step))
            for _ in range(warm):
                program += forward()
            for _ in range(microbatches - warm):
                program += forward() + backward()
            for _ in range(warm):
                program += backward()
            program += [AllReduce(after[stage])] if after else []
        programs[ranks[stage]] = program
    return programs
