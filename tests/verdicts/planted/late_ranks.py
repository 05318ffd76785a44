"""Jobs of several ranks with a known culprit, or none, and what must be said of each."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from tests.support import EVERY_CASE
from tests.verdicts.planted.rank_programs import (
    LAYER,
    MS,
    US,
    AllReduce,
    Compute,
    Idle,
    Pace,
    Play,
    Program,
    Step,
    data_parallel,
    pipeline,
    work,
)

SLOW, MORE, LATE, COPIES = Pace(1.5), Pace(extra=1), Pace(idle_ns=MS), Pace(copy_ns=MS)
EQUAL = Pace()
DAY = 24 * 3600 * 1_000_000_000


@dataclass(frozen=True)
class Case:
    """A job, and what must be said of it.

    Attributes:
        play: the job.
        told: topic -> the rank it names; None for several, or for none.
        words: what the sentence of a topic must contain.
        never: what none of the sentences between ranks may contain.
        unknown: whom the ranks wait for cannot be told, and that is said.
        without: ranks whose files are missing.
        bubbles: what communication costs is in sends and receives: other advice.
    """

    play: Callable[[], Play]
    told: dict[str, int | None] = field(default_factory=dict)
    words: dict[str, tuple[str, ...]] = field(default_factory=dict)
    never: tuple[str, ...] = ()
    unknown: bool = False
    without: tuple[int, ...] = ()
    bubbles: bool = False


def among(count: int, **unlike: Pace) -> list[Pace]:
    """Equal ranks, and those that are not: `among(4, _2=SLOW)`."""
    return [unlike.get(f"_{rank}", EQUAL) for rank in range(count)]


def one(count: int, rank: int, pace: Pace) -> list[Pace]:
    return [pace if number == rank else EQUAL for number in range(count)]


def replicas(slow: int) -> dict[int, Program]:
    """Two pipelines of two stages: stage s of replica r is rank 2 r + s; stages average their gradients."""
    programs: dict[int, Program] = {}
    for replica in range(2):
        ranks = (2 * replica, 2 * replica + 1)
        paces = [SLOW if rank == slow else EQUAL for rank in ranks]
        programs |= pipeline(paces, ranks=ranks, after=((0, 2), (1, 3)))
    return programs


def tensor_parallel(slow: int) -> dict[int, Program]:
    """Two stages of two ranks that share each layer, and all-reduce its result; one stage is slow."""
    programs: dict[int, Program] = {}
    for stage in range(2):
        for part in range(2):
            own = pipeline(one(2, slow, SLOW), ranks=(part, 2 + part))[2 * stage + part]
            shared: Program = []
            for operation in own:
                shared.append(operation)
                if isinstance(operation, Compute) and operation.name == LAYER[-1][0]:
                    shared.append(AllReduce((2 * stage, 2 * stage + 1)))
            programs[2 * stage + part] = shared
    return programs


def longer_transfers(programs: dict[int, Program], transfer_ns: int) -> dict[int, Program]:
    """The same with all-reduces that take this long."""
    return {
        rank: [
            replace(each, transfer_ns=transfer_ns) if isinstance(each, AllReduce) else each
            for each in program
        ]
        for rank, program in programs.items()
    }


def slow_link() -> dict[int, Program]:
    """Pairs of ranks exchange something before all four do; one pair is slow at it."""
    programs: dict[int, Program] = {}
    for rank in range(4):
        pair, dice = ((0, 1), (2, 3))[rank // 2], random.Random(rank)
        programs[rank] = []
        for step in range(4):
            exchange = AllReduce(pair, (MS if rank < 2 else 100 * US) * 3 // 2)
            programs[rank] += [Step(step), *work(dice, EQUAL, 4), exchange, AllReduce((0, 1, 2, 3))]
    return programs


def sometimes_slow() -> dict[int, Program]:
    """Rank 1 has the longer sequences in two of five steps, in kernels launched alike."""
    programs: dict[int, Program] = {}
    for rank in range(4):
        dice = random.Random(rank)
        programs[rank] = []
        for step in range(5):
            times = 1.6 if rank == 1 and step in (1, 3) else 1.0
            programs[rank] += [Step(step), *work(dice, EQUAL, 3, times), AllReduce((0, 1, 2, 3))]
    return programs


def late_in(*steps: int) -> dict[int, Program]:
    """The host of rank 1 begins these of eight steps late."""
    programs: dict[int, Program] = {}
    for rank in range(4):
        dice = random.Random(rank)
        programs[rank] = []
        for step in range(8):
            wait = [Idle(20 * MS)] if rank == 1 and step in steps else []
            programs[rank] += [Step(step), *wait, *work(dice, EQUAL, 3), AllReduce((0, 1, 2, 3))]
    return programs


def lengths(ranks: int, steps: int, grids: bool) -> dict[int, Program]:
    """In each step another rank has the longest sequences."""
    dice = random.Random(5)
    order = [step % ranks for step in range(steps)]
    dice.shuffle(order)
    programs: dict[int, Program] = {}
    for rank in range(ranks):
        own = random.Random(rank)
        programs[rank] = []
        for step, longest in enumerate(order):
            times = 1.6 if rank == longest else own.uniform(0.9, 1.1)
            pace = Pace(larger=2 if grids and rank == longest else 1)
            programs[rank] += [
                Step(step),
                *work(own, pace, 3, times),
                AllReduce(tuple(range(ranks))),
            ]
    return programs


CASES: dict[str, Case] = {}
for rank in range(4):
    CASES |= {
        f"pipeline_slow_stage_{rank}": Case(
            lambda rank=rank: Play(pipeline(one(4, rank, SLOW))),
            {"straggler": rank, "slow_kernels": rank},
            {
                "straggler": ("computes longer",),
                "slow_kernels": ("1.50 times", "This is why the others wait"),
            },
        ),
        f"pipeline_stage_with_more_layers_{rank}": Case(
            lambda rank=rank: Play(pipeline(one(4, rank, MORE))),
            {"straggler": rank, "imbalance": rank},
            {
                "straggler": ("computes longer",),
                "imbalance": ("more per step", "This is why the others wait"),
            },
            ("slower",),
        ),
        f"pipeline_late_host_{rank}": Case(
            lambda rank=rank: Play(pipeline(one(4, rank, LATE))),
            {"straggler": rank},
            {"straggler": ("is idle longer",)},
            ("slower", "more work"),
        ),
        f"data_parallel_slow_rank_{rank}": Case(
            lambda rank=rank: Play(data_parallel(one(4, rank, Pace(1.2)))),
            {"straggler": rank, "slow_kernels": rank},
            {
                "straggler": ("The other ranks wait", "computes longer"),
                "slow_kernels": ("1.20 times", "This is why the others wait"),
            },
            ("through", "data that these"),
        ),
        f"replicas_of_a_pipeline_slow_rank_{rank}": Case(
            lambda rank=rank: Play(replicas(rank)),
            {"straggler": rank, "slow_kernels": rank},
        ),
    }
CASES |= {
    "each_rank_slow_in_kernels_of_its_own": Case(
        lambda: Play(data_parallel([Pace(1.5, "128x256_tn"), Pace(1.5, "256x128_nn")])), never=("slower",)
    ),
    "pipeline_chain_is_told": Case(
        lambda: Play(pipeline(one(4, 0, SLOW))),
        {"straggler": 0, "slow_kernels": 0},
        {"straggler": ("wait through ranks 1", "which themselves wait for rank 0")},
    ),
    "pipeline_stage_that_copies": Case(
        lambda: Play(pipeline(one(4, 2, COPIES))),
        {"straggler": 2},
        {"straggler": ("copies memory longer",)},
        ("slower", "more work"),
    ),
    "pipeline_groups_of_two_tell_partners": Case(
        lambda: Play(pipeline(one(4, 1, SLOW)), partners="pairs"), {"straggler": 1, "slow_kernels": 1}
    ),
    "pipeline_of_2_slow_first": Case(
        lambda: Play(pipeline(one(2, 0, Pace(2.0)))), {"straggler": 0, "slow_kernels": 0}
    ),
    "pipeline_of_2_slow_last": Case(
        lambda: Play(pipeline(one(2, 1, Pace(2.0)))), {"straggler": 1, "slow_kernels": 1}
    ),
    "pipeline_of_12_slow_stage": Case(
        lambda: Play(pipeline(one(12, 3, SLOW), microbatches=16, steps=2)),
        {"straggler": 3, "slow_kernels": 3},
    ),
    "tensor_parallel_slow_first_stage": Case(
        lambda: Play(tensor_parallel(0)),
        {"straggler": None, "slow_kernels": 0},
        {"straggler": ("for ranks 0 and 1",)},
    ),
    "tensor_parallel_slow_last_stage": Case(
        lambda: Play(tensor_parallel(1)),
        {"straggler": None, "slow_kernels": 2},
        {"straggler": ("for ranks 2 and 3",)},
    ),
    "two_slow_ranks_of_eight": Case(
        lambda: Play(data_parallel(among(8, _3=Pace(1.3), _6=Pace(1.3)))),
        {"straggler": None, "slow_kernels": 3},
        {"straggler": ("for ranks 3 and 6",), "slow_kernels": ("So does rank 6.",)},
    ),
    "half_of_the_ranks_are_slow": Case(
        lambda: Play(data_parallel(among(8, _4=SLOW, _5=SLOW, _6=SLOW, _7=SLOW), steps=8)),
        {"mutual_waiting": None, "slow_kernels": 4},
        {"mutual_waiting": ("Nearly all of it is for ranks ",), "slow_kernels": ("So do ranks 5, 6 and 7.",)},
        ("changes from step to step",),
    ),
    "data_parallel_of_2_slow": Case(
        lambda: Play(data_parallel(one(2, 1, Pace(1.3)))),
        {"straggler": 1, "slow_kernels": 1},
        {"straggler": ("Rank 0 waits for rank 1",), "slow_kernels": ("1.30 times",)},
    ),
    "data_parallel_more_launches": Case(
        lambda: Play(data_parallel(one(4, 1, MORE))),
        {"straggler": 1, "imbalance": 1},
        {"imbalance": ("7 kernels more per step",)},
        ("slower", "clocks"),
    ),
    "data_parallel_larger_grids": Case(
        lambda: Play(data_parallel(one(4, 3, Pace(1.5, larger=2)))),
        {"straggler": 3, "imbalance": 3},
        {"imbalance": ("larger grids",)},
        ("slower", "clocks"),
    ),
    "one_kernel_name_is_slow": Case(
        lambda: Play(data_parallel(one(4, 2, Pace(8.0, "fused_dropout")))),
        {"straggler": 2, "slow_kernels": 2},
        {"slow_kernels": ("may be the data that these get to see", "fused_dropout")},
    ),
    "two_ranks_with_a_slow_link": Case(
        lambda: Play(slow_link()),
        {"straggler": None, "exposed_communication": None},
        {"straggler": ("for ranks 0 and 1", "Meanwhile ranks 0 and 1 transfer data with other ranks")},
        ("slower", "more work"),
    ),
    "late_host": Case(
        lambda: Play(data_parallel(one(4, 1, LATE))),
        {"straggler": 1},
        {"straggler": ("is idle longer",)},
        ("slower", "more work"),
    ),
    "slow_in_two_of_five_steps": Case(
        lambda: Play(sometimes_slow()),
        {"straggler": 1},
        {"straggler": ("computes longer",)},
        ("slower", "clocks", "changes"),
    ),
    "slow_kernels_without_communication": Case(
        lambda: Play({rank: [*work(random.Random(rank), Pace(1 + rank / 5), 9)] for rank in range(2)}),
        {"slow_kernels": 1},
        never=("This is why",),
    ),
    "sequence_lengths": Case(
        lambda: Play(lengths(4, 8, grids=True)),
        {"mutual_waiting": None},
        {"mutual_waiting": ("changes from step to step",)},
        ("slower", "clocks", "for rank"),
    ),
    "sequence_lengths_in_equal_grids": Case(
        lambda: Play(lengths(4, 8, grids=False)),
        {"mutual_waiting": None},
        {"mutual_waiting": ("changes from step to step",)},
        ("slower", "clocks", "for rank"),
    ),
    "sequence_lengths_of_eight_ranks": Case(
        lambda: Play(lengths(8, 8, grids=True)),
        {"mutual_waiting": None},
        {"mutual_waiting": ("changes from step to step",)},
        ("slower", "clocks", "for rank"),
    ),
    "balanced_pipeline_of_4": Case(
        lambda: Play(pipeline(among(4))),
        {"mutual_waiting": None},
        {"mutual_waiting": ("No rank stands out",)},
        ("slower", "for rank"),
    ),
    "balanced_pipeline_of_3": Case(
        lambda: Play(pipeline(among(3))), {"mutual_waiting": None}, never=("slower", "for rank")
    ),
    "balanced_pipeline_of_2": Case(
        lambda: Play(pipeline(among(2))), {"mutual_waiting": None}, never=("slower", "for rank")
    ),
    "equal_ranks_2": Case(lambda: Play(data_parallel(among(2)))),
    "equal_ranks_4": Case(lambda: Play(data_parallel(among(4)))),
    "equal_ranks_8": Case(lambda: Play(data_parallel(among(8)))),
    "slower_by_too_little": Case(lambda: Play(data_parallel(one(4, 1, Pace(1.02))))),
    "single_rank": Case(lambda: Play(data_parallel(among(1)))),
    "clocks_apart": Case(
        lambda: Play(pipeline(one(4, 2, SLOW)), clocks_ns=(0, 3 * MS, -MS, 2 * MS)),
        {"straggler": 2, "slow_kernels": 2},
    ),
    "clocks_far_apart_in_collectives": Case(
        lambda: Play(data_parallel(one(4, 1, SLOW)), clocks_ns=(0, 900 * MS, -500 * MS, 40 * MS)),
        {"straggler": 1, "slow_kernels": 1},
    ),
    "clocks_of_other_days": Case(
        lambda: Play(data_parallel(one(4, 1, SLOW)), clocks_ns=(0, 2 * DAY, 4 * DAY, 6 * DAY)),
        {"slow_kernels": 1},
        never=("This is why",),
        unknown=True,
    ),
    "clocks_that_run_apart": Case(
        lambda: Play(data_parallel(one(4, 1, SLOW)), drift_ppm=(0, 90_000, -90_000, 50_000)),
        # for whom they wait is unknown, but that they communicate without computing is not
        {"slow_kernels": 1, "exposed_communication": None},
        {"exposed_communication": ("waiting for other ranks included",)},
        never=("This is why",),
        unknown=True,
    ),
    "unknown_partners": Case(
        lambda: Play(pipeline(one(4, 1, SLOW), after=((0, 1, 2, 3),) * 4), partners=""),
        {"slow_kernels": 1, "exposed_communication": None},
        {"exposed_communication": ("waiting for other ranks included",)},
        ("wait for rank", "This is why"),
        unknown=True,
        bubbles=True,
    ),
    "pipeline_with_a_long_all_reduce": Case(
        lambda: Play(
            longer_transfers(pipeline(among(2), after=((0, 1),) * 2, microbatches=4), 12 * MS), partners=""
        ),
        {"exposed_communication": None, "mutual_waiting": None},
    ),
    "unknown_partners_alone": Case(
        lambda: Play(pipeline(one(4, 1, SLOW)), partners=""),
        {"slow_kernels": 1, "exposed_communication": None},
        {"exposed_communication": ("waiting for other ranks included",)},
        ("wait for rank", "This is why"),
        unknown=True,
        bubbles=True,
    ),
    "culprit_is_not_recorded_in_a_pipeline": Case(
        lambda: Play(pipeline(one(4, 0, Pace(2.0)))),
        {"exposed_communication": None},
        {"exposed_communication": ("waiting for other ranks included",)},
        ("wait for rank", "slower"),
        unknown=True,
        without=(0,),
        bubbles=True,
    ),
    "culprit_is_not_recorded_in_data_parallel": Case(
        lambda: Play(data_parallel(one(4, 3, SLOW))),
        {"exposed_communication": None},
        {"exposed_communication": ("waiting for other ranks included",)},
        ("wait for rank", "slower"),
        unknown=True,
        without=(3,),
    ),
    "victim_is_not_recorded": Case(
        lambda: Play(data_parallel(one(4, 1, SLOW))),
        {"straggler": 1, "slow_kernels": 1},
        {"straggler": ("among the 3 of 4 ranks that were recorded",)},
        without=(2,),
    ),
}


# of the same fault on each of four ranks, one
ONE_RANK = {
    "pipeline_slow_stage_2",
    "pipeline_stage_with_more_layers_1",
    "pipeline_late_host_1",
    "data_parallel_slow_rank_1",
    "replicas_of_a_pipeline_slow_rank_3",
}
# the same as another case at another place, or of another number of ranks
TWINS = {
    "balanced_pipeline_of_2",
    "balanced_pipeline_of_3",
    "equal_ranks_2",
    "equal_ranks_8",
    "pipeline_of_12_slow_stage",
    "pipeline_of_2_slow_last",
    "sequence_lengths_of_eight_ranks",
    "tensor_parallel_slow_last_stage",
    "unknown_partners_alone",
}


def unlike(names: Iterable[str]) -> list[str]:
    """The cases that are unlike; all with EVERY_CASE."""
    faults = tuple(name[:-1] for name in ONE_RANK)
    of_another = {name for name in CASES if name.startswith(faults)} - ONE_RANK
    return [name for name in names if EVERY_CASE or name not in TWINS | of_another]
