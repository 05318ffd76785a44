"""Random programs with one planted cause each: it leads what is said of them, and no false cause ever does.

Each kind runs once by default; `HTA_WIDGETS_EVERY_CASE=1` takes 200, and prints how often each leads.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from hta_widgets.analysis import overview
from hta_widgets.trace.model import Trace
from tests.analysis.kineto_file import event, job
from tests.loops.program import Loop, simulated, truth, write
from tests.support import EVERY_CASE
from tests.verdicts.planted import rank_programs
from tests.verdicts.planted.host_program import US, Program
from tests.verdicts.planted.rank_programs import AllReduce, Compute, Idle, Play, Step

LEAST_LEADING = 0.95
STEPS = range(1, 8)


class Planted(NamedTuple):
    """A program, and the topics that name what was planted in it; none where nothing was."""

    trace: Trace
    topics: frozenset[str]


Kind = Callable[[random.Random, Path], Planted]
KINDS: dict[str, Kind] = {}


def kind(*topics: str) -> Callable[[Callable[[random.Random, Path], Trace]], Kind]:
    def register(make: Callable[[random.Random, Path], Trace]) -> Kind:
        def planted(dice: random.Random, folder: Path) -> Planted:
            return Planted(make(dice, folder), frozenset(topics))

        KINDS[make.__name__] = planted
        return planted

    return register


# -- one device ----------------------------------------------------------------------------------------


def on_device(
    dice: random.Random, folder: Path, cause: Callable[[Program, int], None], share: tuple[float, float]
) -> Trace:
    """Steps of some kernels; before them, for a random share of the step, what `cause` does for so long."""
    program = Program()
    kernels, ns = dice.randint(4, 20), dice.randint(100, 400) * US
    for number in STEPS:
        with program.step(number):
            part = dice.uniform(*share)
            cause(program, round(kernels * ns * part / (1 - part)))
            for at in range(kernels):
                with program.inside("cpu_op", "aten::mm"):
                    program.silence(dice.randint(2, 8) * US)
                    program.launch(round(ns * dice.uniform(0.9, 1.1)), f"gemm_{at % 3}")
            program.synchronise()
    return program.open(folder)


@kind("data_stall")
def loader(dice: random.Random, folder: Path) -> Trace:
    return on_device(dice, folder, lambda program, ns: program.load(ns), (0.15, 0.7))


@kind("idle_host", "host_stall")
def work_of_the_host(dice: random.Random, folder: Path) -> Trace:
    name = dice.choice(["aten::normal_", "aten::sort", "aten::topk"])
    return on_device(dice, folder, lambda program, ns: program.operator(name, ns), (0.15, 0.7))


@kind("idle_host", "host_stall", "unmarked_host")
def silence_of_the_host(dice: random.Random, folder: Path) -> Trace:
    return on_device(dice, folder, lambda program, ns: program.silence(ns), (0.15, 0.7))


@kind("memory_copies", "pageable_copies", "slow_copies")
def copies(dice: random.Random, folder: Path) -> Trace:
    return on_device(dice, folder, lambda program, ns: program.copy(ns), (0.15, 0.7))


@kind("sync_calls")
def reading_back(dice: random.Random, folder: Path) -> Trace:
    def wait(program: Program, ns: int) -> None:
        program.launch(50 * US, "before")
        program.synchronise(tail=ns, name=dice.choice(["cudaStreamSynchronize", "hipDeviceSynchronize"]))

    return on_device(dice, folder, wait, (0.15, 0.6))


@kind()
def nothing_on_a_device(dice: random.Random, folder: Path) -> Trace:
    return on_device(dice, folder, lambda program, ns: None, (0.0, 0.0))


# -- loops with a steady state that is known -----------------------------------------------------------


def of_loop(dice: random.Random, folder: Path, between: str) -> Trace:
    while True:
        loop = Loop(
            dice.choice(["top", "bottom"]), between, dice.choice(["none", "half"]),  # type: ignore[arg-type]
            streams=dice.choice([1, 3]), steps=dice.choice([3, 6, 10]),
        )  # fmt: skip
        runs = simulated(loop)
        true, without = truth(runs[0]), truth(simulated(loop.without())[0])
        if true and without and without.period < 0.95 * true.period:
            return Trace.open(write(loop, runs, folder / "loop"), cache=False)


@kind("data_stall")
def loader_of_a_loop(dice: random.Random, folder: Path) -> Trace:
    return of_loop(dice, folder, "loader")


@kind("idle_host", "host_stall", "unmarked_host")
def host_of_a_loop(dice: random.Random, folder: Path) -> Trace:
    return of_loop(dice, folder, dice.choice(["maths", "sleep"]))


# -- ranks with devices --------------------------------------------------------------------------------


def of_ranks(
    dice: random.Random,
    folder: Path,
    more: Callable[[int, int], list[rank_programs.Operation]],
    transfer: int,
) -> Trace:
    """Each rank computes, does `more(rank, step)`, and reduces with the others."""
    ranks = tuple(range(dice.choice([2, 4, 8] if EVERY_CASE else [2, 4])))
    programs: dict[int, rank_programs.Program] = {rank: [] for rank in ranks}
    for step in STEPS:
        for rank in ranks:
            own = [Compute(f"gemm_{at}", dice.randint(490, 510) * US) for at in range(8)]
            programs[rank] += [Step(step), *own, *more(rank, step), AllReduce(ranks, transfer)]
    return Play(programs).open(folder)


def late(dice: random.Random) -> int:
    return dice.randint(800, 3_000) * US


@kind("straggler")
def a_slow_rank(dice: random.Random, folder: Path) -> Trace:
    slow, ns = dice.randint(0, 1), late(dice)
    return of_ranks(
        dice, folder, lambda rank, _: [Compute("gemm_0", ns if rank == slow else 20 * US)], 100 * US
    )


@kind("straggler")
def a_rank_with_a_late_host(dice: random.Random, folder: Path) -> Trace:
    slow, ns = dice.randint(0, 1), late(dice)
    return of_ranks(dice, folder, lambda rank, _: [Idle(ns if rank == slow else 10 * US)], 100 * US)


@kind("exposed_communication")
def long_transfers(dice: random.Random, folder: Path) -> Trace:
    return of_ranks(dice, folder, lambda rank, step: [], dice.randint(700, 4_000) * US)


@kind("mutual_waiting")
def ranks_late_in_turn(dice: random.Random, folder: Path) -> Trace:
    ns, first = late(dice), dice.randint(0, 1)
    return of_ranks(
        dice, folder,
        lambda rank, step: [Compute("gemm_0", ns if (step + first) % 2 == rank % 2 else 20 * US)], 50 * US,
    )  # fmt: skip


# -- ranks without a device ----------------------------------------------------------------------------


def of_hosts(
    dice: random.Random, folder: Path, more: Callable[[Program, int, int], int], transfer: int
) -> Trace:
    """Each rank computes, does `more(program, rank, step)`, which takes so long, and waits for the last."""
    ranks = [Program() for _ in range(dice.choice([2, 3, 4]))]
    for step in STEPS:
        begun = max(each.now for each in ranks)
        for each in ranks:
            each.now = begun
        with _all_in_step(ranks, step):
            for rank, each in enumerate(ranks):
                for _ in range(6):
                    each.operator("aten::mm", dice.randint(495, 505) * US)
                more(each, rank, step)
                each.operator("c10d::allreduce_", 10 * US)
            end = max(each.now for each in ranks) + transfer
            for each in ranks:
                each.events.append(
                    event("user_annotation", "gloo:all_reduce", each.now, end - each.now, tid=9)
                )
                each.now = end + 20 * US
    return job(folder, *(each.events for each in ranks))


class _all_in_step:  # noqa: N801 - reads as a context
    def __init__(self, ranks: list[Program], step: int) -> None:
        self._open = [each.step(step) for each in ranks]

    def __enter__(self) -> None:
        for each in self._open:
            each.__enter__()

    def __exit__(self, *_: object) -> None:
        for each in self._open:
            each.__exit__(None, None, None)


def _sort(program: Program, ns: int) -> int:
    program.operator("aten::sort", ns)
    return ns


@kind("host_straggler")
def a_late_host(dice: random.Random, folder: Path) -> Trace:
    slow, ns = dice.randint(0, 1), late(dice)
    return of_hosts(dice, folder, lambda each, rank, _: _sort(each, ns if rank == slow else 20 * US), 50 * US)


@kind("host_in_turn")
def hosts_late_in_turn(dice: random.Random, folder: Path) -> Trace:
    ns, first = late(dice), dice.randint(0, 1)
    return of_hosts(
        dice, folder,
        lambda each, rank, step: _sort(each, ns if (step + first) % 2 == rank % 2 else 20 * US), 50 * US,
    )  # fmt: skip


@kind("host_collectives")
def long_transfers_of_hosts(dice: random.Random, folder: Path) -> Trace:
    return of_hosts(dice, folder, lambda each, rank, step: 0, dice.randint(700, 4_000) * US)


@kind("host_loading")
def loaders_of_hosts(dice: random.Random, folder: Path) -> Trace:
    ns = late(dice)
    return of_hosts(dice, folder, lambda each, rank, step: each.load(ns) or 0, 50 * US)


@kind()
def nothing_on_hosts(dice: random.Random, folder: Path) -> Trace:
    return of_hosts(dice, folder, lambda each, rank, step: 0, 20 * US)


# -- the test --------------------------------------------------------------------------------------------


def programs() -> Iterator[tuple[int, str]]:
    names = list(KINDS)
    for seed in range(200 if EVERY_CASE else len(names)):
        yield seed, names[seed % len(names)]


def leading(trace: Trace) -> str:
    """The topic of the first cause that is found; "" where none is."""
    frame = overview(trace)
    causes = frame[(frame["role"] == "cause") & (frame["part_of"] == "") & (frame["share_pct"] > 0)]
    return str(causes["topic"].iloc[0]) if len(causes) else ""


def test_the_planted_cause_leads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    leads: Counter[str] = Counter()
    missed, false = [], []
    count = len(list(programs()))
    for seed, name in programs():
        folder = tmp_path / str(seed)
        folder.mkdir()
        planted = KINDS[name](random.Random(seed), folder)
        found = leading(planted.trace)
        if found in planted.topics or (not found and not planted.topics):
            leads[name] += 1
        elif found:
            false.append((seed, name, found))
        else:
            missed.append((seed, name))
    if EVERY_CASE:
        with capsys.disabled():
            sys.stdout.write(f"\n{leads.total()} of {count} lead: {dict(leads)}; {missed=} {false=}\n")
    assert not false
    assert leads.total() >= LEAST_LEADING * count, missed
