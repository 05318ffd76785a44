"""Simulated jobs with a planted cause, and what an expert who knows the program would answer.

The answers were written from the programs, before anything was asked about their recordings.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from examples.simulator import SimulatedJob, simulate
from tests.analysis.kineto_file import write as write_events
from tests.analysis.serving.servers import Batch, Server
from tests.job.parallel_jobs import ParallelJob, towards
from tests.loops.program import Loop, simulated
from tests.loops.program import write as write_loop
from tests.verdicts.planted import test_one_rank as one_rank
from tests.verdicts.planted import test_start_up as start_up
from tests.verdicts.planted.host_program import MS, US, Program
from tests.verdicts.planted.rank_programs import Pace, Play, data_parallel, pipeline

__all__ = ["JOBS", "NOTHING", "Job"]

NOTHING = "nothing"


@dataclass(frozen=True)
class Job:
    """A program, and the right answer.

    Attributes:
        write: writes its recording into a folder.
        cause: the rules that name what was planted; `NOTHING` where nothing is wrong, or nothing can be told.
        advice: what advice must speak of, a pattern; "" for none.
        who: the rank or the place that must be named.
        never: advice that would be wrong, a pattern.
        mended: writes a recording of the program without the cause.
    """

    write: Callable[[Path], object]
    cause: tuple[str, ...]
    advice: str = ""
    who: str = ""
    never: str = ""
    mended: Callable[[Path], object] | None = None


def loop(**settings: object) -> Callable[[Path], object]:
    program = Loop(steps=6, **settings)  # type: ignore[arg-type]
    return lambda folder: write_loop(program, simulated(program), folder)


def case(name: str) -> Callable[[Path], object]:
    return lambda folder: written(one_rank.CASES[name].program(), folder)


def written(program: Program, folder: Path) -> Path:
    return write_events(folder / "trace.json", program.events)


def gpt2(**settings: object) -> Callable[[Path], object]:
    job = SimulatedJob("blind", **settings)  # type: ignore[arg-type]
    return lambda folder: simulate(job).write(folder)


def compiles(folder: Path) -> Path:
    """A program without marked steps that compiles for 25 ms before it computes for 40 ms."""
    program = Program()
    program.launch(50 * US)
    program.synchronise()
    start_up.dynamo(program)
    for _ in range(400):
        program.launch(100 * US)
    program.synchronise()
    return written(program, folder)


def serves(folder: Path, schedule_ns: int = 3 * MS, overlapped: bool = False) -> Path:
    """A server that schedules for so long before each step of 4 ms, or while the device works."""
    server = Server(schedule_ns=schedule_ns, overlapped=overlapped)
    for _ in range(12):
        server.serve(Batch(decodes=32))
    return written(server.program, folder)


def copies_pageable(folder: Path) -> Path:
    """Each step waits for a batch that comes from pageable memory, for as long as it computes."""
    program = Program()
    for number in range(1, 7):
        with program.step(number):
            program.copy_pageable(4 * MS, 24_000_000)
            for _ in range(4):
                program.launch(1_000 * US)
            program.synchronise()
    return written(program, folder)


def copies_pinned(folder: Path) -> Path:
    """The same batches from pinned memory, a step ahead, on a stream of their own."""
    program = Program()
    for number in range(1, 7):
        with program.step(number):
            program.copy(2 * MS, "Memcpy HtoD (Pinned -> Device)", stream=20, bytes=24_000_000)
            for _ in range(4):
                program.launch(1_000 * US)
            program.synchronise()
    return written(program, folder)


def one_file_of(programs: dict[int, list[object]], rank: int) -> Callable[[Path], object]:
    """A job of which a single rank was recorded."""
    others = tuple(each for each in programs if each != rank)
    return lambda folder: Play(programs).write(folder, without=others)  # type: ignore[arg-type]


def ranks(*paces: Pace) -> dict[int, list[object]]:
    return data_parallel(list(paces), steps=5)  # type: ignore[return-value]


def plays(programs: dict[int, list[object]]) -> Callable[[Path], object]:
    return lambda folder: Play(programs).write(folder)  # type: ignore[arg-type]


def routes(times: float) -> Callable[[Path], object]:
    """Four ranks of experts, of which those of rank 1 get so many times the tokens."""
    job = ParallelJob(data=4, expert=4, microbatches=4, steps=4, tokens=towards(1, times=times))
    return lambda folder: job.play().write(folder)


EQUAL = Pace()
RECORD = r"[Rr]ecord"
DDP = {"strategy": "ddp", "steps": 4, "layers": 4}

JOBS: dict[str, Job] = {
    # one rank, the host
    "a loader that is a little late": Job(
        loop(between="loader"),
        ("data_stall",),
        r"num_workers|prefetch|fetch",
        never="CUDA graph|fuse",
        mended=loop(),
    ),
    "a loader that is far too slow": Job(
        gpt2(strategy="single", steps=4, layers=4, dataloader_stall_ns=14 * MS),
        ("data_stall",),
        "num_workers",
        mended=gpt2(strategy="single", steps=4, layers=4, seed=7),
    ),
    "values are read back before each branch": Job(
        case("reading values back before going on"), ("values_read_back",), r"item"
    ),
    "the host computes between steps": Job(
        loop(between="maths"), ("idle_host",), r"normal_", who="aten::normal_", mended=loop()
    ),
    "launches take long": Job(case("slow launches"), ("launch_bound",), r"CUDA graph"),
    "memory is allocated in every step": Job(case("allocator calls"), ("allocator_calls",), "empty_cache"),
    "gradients are zeroed with kernels": Job(case("zero_grad"), ("zero_grad_fills",), "set_to_none"),
    "the optimizer launches an update for each parameter": Job(
        case("optimizer in many launches"), ("optimizer_not_fused",), "foreach|fused"
    ),
    "a program compiles first": Job(compiles, ("start_up",), r"warm-up|cache|compil", never="num_workers"),
    # one rank, the device
    "small kernels": Job(
        case("small kernels"), ("tiny_kernels",), r"torch\.compile|CUDA graph|fuse", never="num_workers"
    ),
    "layouts are converted": Job(case("layout"), ("layout_transposes",), "channels_last"),
    "batches come from pageable memory": Job(
        copies_pageable, ("memory_copies", "pageable_copies"), "pin_memory", mended=copies_pinned
    ),
    "the server schedules between steps": Job(
        serves,
        ("bubble_between_steps",),
        r"async-scheduling|overlap",
        never="num_workers|DataLoader",
        mended=lambda folder: serves(folder, schedule_ns=0),
    ),
    # several ranks
    "the last of two ranks is late": Job(
        loop(ranks=2, ahead="half"), ("straggler", "idle_host"), who="ank 1"
    ),
    "the host of one rank is late": Job(
        plays(ranks(EQUAL, EQUAL, Pace(idle_ns=2 * MS), EQUAL)),
        ("straggler",),
        "host",
        who="ank 2",
        never="clocks",
        mended=plays(ranks(EQUAL, EQUAL, EQUAL, EQUAL)),
    ),
    "one rank computes more slowly": Job(
        gpt2(**DDP, ranks=4, straggler=3, slowdown_permille=1400),
        ("straggler", "slow_kernels"),
        "clocks",
        who="ank 3",
        never="num_workers",
        mended=gpt2(**DDP, ranks=4, seed=7),
    ),
    "all-reduces over a slow link": Job(
        gpt2(**DDP, ranks=2, bus_gbps=6),
        ("exposed_communication",),
        r"earlier|bucket",
        never="num_workers",
        mended=gpt2(**DDP, ranks=2, bus_gbps=160, seed=7),
    ),
    "a stage of a pipeline has more layers": Job(
        plays(pipeline([EQUAL, EQUAL, Pace(extra=2), EQUAL])),  # type: ignore[arg-type]
        ("straggler", "imbalance"),
        r"stage",
        who="ank 2",
        mended=plays(pipeline([EQUAL, EQUAL, EQUAL, EQUAL])),  # type: ignore[arg-type]
    ),
    "experts of one rank get most tokens": Job(
        routes(4.0),
        ("straggler", "imbalance"),
        r"expert|balance|capacity|token|equal work",
        who="ank 1",
        never="clocks",
        mended=routes(1.0),
    ),
    # nothing is wrong
    "the host is far ahead": Job(case("host ahead"), (NOTHING,)),
    "the device always has work": Job(loop(ahead="full"), (NOTHING,)),
    "equal ranks": Job(plays(ranks(EQUAL, EQUAL, EQUAL)), (NOTHING,)),
    "the server schedules ahead": Job(lambda folder: serves(folder, overlapped=True), (NOTHING,)),
    # nothing can be told
    "operators were filtered out of the file": Job(case("filtered"), (NOTHING,)),
    "most device work was lost": Job(case("most device work lost"), (NOTHING,)),
    "one rank of several waits": Job(
        one_file_of(ranks(Pace(1.8), EQUAL, EQUAL), 1),
        ("exposed_communication", NOTHING),
        RECORD,
        never=r"rank \d",
    ),
}
