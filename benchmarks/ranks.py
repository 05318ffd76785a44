"""How the first answers about a job grow with its ranks."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

from benchmarks.figure import Figure, exponent
from benchmarks.process import call
from benchmarks.setup import Setup
from tests.job.many_ranks import write_job

RANKS = (64, 256)
SMALL = (8, 32)
EXPONENT = 1.1
LEAST_S = 0.3


def measure(setup: Setup) -> list[Figure]:
    """CPU s at the larger size, and exponents of the ranks."""
    sizes = SMALL if setup.small else RANKS
    jobs = [_job(setup.folder, ranks) for ranks in sizes]
    call(answered, jobs[0], **setup.kernels)  # compiles
    few, many = ([call(answered, job, **setup.kernels).result for _ in range(setup.rounds)] for job in jobs)
    figures = []
    for name in sorted(many[0], key=lambda name: -many[0][name]):
        samples = [times[name] for times in many]
        if min(samples) < LEAST_S:
            continue
        figures.append(Figure(f"{name}, {sizes[1]} ranks, CPU s", samples))
        grown = [exponent(sizes, pair) for pair in zip((times[name] for times in few), samples, strict=True)]
        figures.append(Figure("... exponent", grown, goal=EXPONENT))
    return figures


def _job(folder: Path, ranks: int) -> Path:
    job = folder / f"job-{ranks}"
    return job if job.exists() else write_job(job, ranks, slow=5)


def answered(job: str) -> dict[str, float]:
    """CPU s of opening and of every analysis, of the whole and of a window of it."""
    from hta_widgets import Scope, Trace, TraceExplorer
    from hta_widgets.analysis.registry import ANALYSES
    from hta_widgets.errors import MissingDataError

    times: dict[str, float] = {}
    begun = time.process_time()
    trace = Trace.open(job)
    times["`Trace.open`"] = time.process_time() - begun
    start, end = trace.extent_ns
    window = Scope(window_ns=(start + (end - start) // 4, end - (end - start) // 4))
    for kind, entry in ANALYSES.items():
        for name, scope in ((f"`{kind}`", Scope()), (f"`{kind}` of a window", window)):
            begun = time.process_time()
            with suppress(MissingDataError):
                entry.function(trace, scope)
            times[name] = time.process_time() - begun
    begun = time.process_time()
    TraceExplorer(trace).wait().close()
    times["`TraceExplorer`"] = time.process_time() - begun
    return times
