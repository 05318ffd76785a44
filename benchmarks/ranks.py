"""How the first answers about a job grow with its ranks, and what a job that exceeds memory takes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.figure import Figure, exponent
from benchmarks.process import call, import_all, in_a_fork, peak
from benchmarks.setup import Setup
from tests.job.many_ranks import write_job

if TYPE_CHECKING:
    from hta_widgets import Scope, Trace

RANKS = (64, 256)
SMALL = (8, 32)
EXPONENT = 1.1
LEAST_S = 0.3
LIMIT_S = 120.0
# Of ranks that are as large as memory allows a third of, together: steps, layers and products of each layer.
LARGER = {"steps": 10, "layers": 4, "products": 25}
PART = 3
ANOTHER, VERDICT = "panels of another window", "verdict of another window"
GOALS_S = {VERDICT: 0.54}
GOALS_OF_PART_S = {ANOTHER: 0.77, VERDICT: 3.85}
PEAK_MB = 1_200.0
Answers = dict[str, float]


def measure(setup: Setup) -> list[Figure]:
    """CPU s at the larger size, and exponents of the ranks."""
    sizes = SMALL if setup.small else RANKS
    jobs = [_job(setup.folder, ranks) for ranks in sizes]
    call(answered, jobs[0], **setup.kernels)  # compiles
    # in turn: the pace of a machine changes, and would be taken for growth
    rounds = [[call(answered, job, **setup.kernels).result for job in jobs] for _ in range(setup.rounds)]
    few, many = zip(*rounds, strict=True)
    return [*_grown(sizes, few, many), *_in_part(setup, sizes[1])]


def _grown(sizes: tuple[int, int], few: Sequence[Answers], many: Sequence[Answers]) -> list[Figure]:
    figures = []
    for name in sorted(many[0], key=lambda name: -many[0][name]):
        samples = [times[name] for times in many]
        if min(samples) < LEAST_S:
            continue
        figures.append(Figure(f"{name}, {sizes[1]} ranks, CPU s", samples, goal=GOALS_S.get(name)))
        grown = [exponent(sizes, pair) for pair in zip((times[name] for times in few), samples, strict=True)]
        figures.append(Figure("... exponent", grown, goal=EXPONENT))
    return figures


def _in_part(setup: Setup, ranks: int) -> list[Figure]:
    job = _job(setup.folder, ranks, "larger-job", LARGER)
    found = []
    for at in range(setup.rounds):  # each with a cache of its own, where answers are kept, too
        cache = {**setup.kernels, "HTA_WIDGETS_CACHE": str(setup.folder / f"columns-of-ranks-{at}")}
        found.append(call(answered_in_part, job, **cache).result)
    figures = [
        Figure(
            f"{name}, {ranks} ranks in a third of their memory, CPU s",
            [times[name] for times in found],
            goal=None if setup.small else GOALS_OF_PART_S.get(name),
        )
        for name in found[0]
        if name != "peak"
    ]
    return [*figures, Figure("... memory at its peak, MB", [times["peak"] for times in found], goal=PEAK_MB)]


def _job(folder: Path, ranks: int, name: str = "job", size: Mapping[str, int] | None = None) -> Path:
    job = folder / f"{name}-{ranks}"
    return job if job.exists() else write_job(job, ranks, slow=5, **(size or {}))


def answered(job: str) -> Answers:
    """CPU s of opening, and of every question in a fork of the process that has read and linked the ranks.

    Only what follows the answers about the whole is asked in one process with these.
    """
    from hta_widgets import Scope, Trace, TraceExplorer
    from hta_widgets.analysis.registry import ANALYSES

    import_all()
    begun = time.process_time()
    trace = Trace.open(job)
    opened = time.process_time()
    for rank in trace.ranks:
        _ = trace.rank(rank).launch, trace.rank(rank).iteration
    linked = time.process_time()
    questions: dict[str, Callable[[], object]] = {
        "`TraceExplorer`": lambda: TraceExplorer(trace).wait().close()
    }
    for kind, entry in ANALYSES.items():
        questions[f"`{kind}`"] = partial(entry.function, trace, Scope())
        questions[f"`{kind}` of a window"] = partial(entry.function, trace, _window(trace))
    found = {name: in_a_fork(work, LIMIT_S) for name, work in questions.items()}
    answers = {name: cost for name, cost in found.items() if not isinstance(cost, str)}  # or data are missing
    times = {"`Trace.open`": opened - begun, "launches and iterations": linked - opened, **answers}
    return times | {name: cost for name, cost in _in_turn(trace).items() if name not in times}


def answered_in_part(job: str) -> Answers:
    """CPU s of a job whose columns are three times what memory may hold; and the peak of the process, MB."""
    from hta_widgets import Trace

    import_all()
    whole = Trace.open(job)
    columns = sum(whole.rank(rank).events.header.nbytes for rank in whole.ranks)
    trace = Trace.open(job, memory_limit=columns // PART)
    assert trace.exceeds_memory
    return {**_in_turn(trace), "peak": peak()}


def _in_turn(trace: Trace) -> Answers:
    """CPU s of what an explorer asks: its overview, and then panels and verdict of another window."""
    from hta_widgets.analysis import idle_breakdown, overview, temporal_breakdown
    from hta_widgets.analysis.findings.story import story

    window, times = _window(trace), {}
    for name, work in (
        ("`overview`", lambda: overview(trace)),
        (ANOTHER, lambda: (temporal_breakdown(trace, window), idle_breakdown(trace, window))),
        (VERDICT, lambda: story(trace, window)),
    ):
        begun = time.process_time()
        work()
        times[name] = time.process_time() - begun
    return times


def _window(trace: Trace) -> Scope:
    """The middle half of a job."""
    from hta_widgets import Scope

    start, end = trace.extent_ns
    return Scope(window_ns=(start + (end - start) // 4, end - (end - start) // 4))
