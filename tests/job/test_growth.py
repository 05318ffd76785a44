"""How time grows with the ranks of a job: no answer faster than n log n; and the slow rank is found."""

import gc
import math
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pandas as pd
import pytest

from hta_widgets import Scope, Trace, TraceExplorer, analysis
from hta_widgets.analysis.registry import ANALYSES
from hta_widgets.errors import MissingDataError
from tests.job.many_ranks import write_job

pytestmark = pytest.mark.slow

# HTA_WIDGETS_EVERY_CASE asks of more ranks
EVERY_CASE = bool(os.environ.get("HTA_WIDGETS_EVERY_CASE"))
FEW, MANY = (128, 1024) if EVERY_CASE else (32, 256)
# n log n from 32 to 256 ranks is an exponent of 1.2, n squared one of 2; between them is room for noise
EXPONENT = 1.6
# What takes less at the larger size is not judged: such times are the allocator's.
LEAST_S = 0.5

Times = dict[str, float]


def seconds(work: Callable[..., object], *args: object) -> float:
    """Processor time of the work; that some data are missing is an answer, too.

    Without that of the garbage collector, which goes through whatever other tests have left.
    """
    gc.collect()
    gc.disable()
    try:
        begun = time.process_time()
        with suppress(MissingDataError):
            work(*args)
        return time.process_time() - begun
    finally:
        gc.enable()


def times_of(job: Path) -> Times:
    times = {"open": seconds(Trace.open, job), "open again": seconds(Trace.open, job)}
    trace = Trace.open(job)
    start, end = trace.extent_ns
    window = Scope(window_ns=(start + (end - start) // 4, end - (end - start) // 4))
    for kind, entry in ANALYSES.items():
        times[kind] = seconds(entry.function, trace)
        times[f"{kind} of a window"] = seconds(entry.function, trace, window)
    times["explorer"] = seconds(lambda: TraceExplorer(trace).wait().close())
    return times


@pytest.fixture(scope="module")
def times(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Times]:
    folder = tmp_path_factory.mktemp("jobs")
    jobs = {ranks: write_job(folder / f"{ranks}", ranks, slow=5) for ranks in (8, FEW, MANY)}
    gc.collect()
    gc.freeze()  # what other tests have left is not gone through before each question
    try:
        times_of(jobs.pop(8))  # what is compiled or imported once
        return {ranks: times_of(job) for ranks, job in jobs.items()}
    finally:
        gc.unfreeze()


def test_nothing_grows_faster_than_n_log_n(times: dict[int, Times]) -> None:
    grown = {
        name: round(math.log(took / max(times[FEW][name], 1e-3)) / math.log(MANY / FEW), 2)
        for name, took in times[MANY].items()
        if took >= LEAST_S
    }
    assert "open" in grown
    assert not {name: exponent for name, exponent in grown.items() if exponent > EXPONENT}


def first_two(found: pd.DataFrame) -> list[tuple[str, int, str]]:
    rows = found.iloc[:2]
    return list(zip(rows["topic"], rows["rank"], rows["part_of"], strict=True))


def found_slow(rank: int) -> list[tuple[str, int, str]]:
    """That others wait for it, and the cause behind that whole."""
    return [("straggler", rank, ""), ("slow_kernels", rank, "straggler")]


@pytest.mark.parametrize("ranks", [8, 64, 512, 1024] if EVERY_CASE else [8, 64, MANY])
def test_the_slow_rank_is_found(ranks: int, tmp_path: Path) -> None:
    slow = ranks - 3
    trace = Trace.open(write_job(tmp_path / "job", ranks, slow))
    assert first_two(analysis.overview(trace)) == found_slow(slow)
    slowed = analysis.stragglers(trace)
    assert slowed.loc[slowed["caused_wait_ns"].idxmax(), "rank"] == slow


def test_opened_again_the_overview_is_there_within_two_seconds(tmp_path: Path) -> None:
    job = write_job(tmp_path / "job", MANY, slow=5)
    expected = analysis.overview(Trace.open(job))
    again = []
    assert seconds(lambda: again.append(analysis.overview(Trace.open(job)))) < 2.0
    pd.testing.assert_frame_equal(again[0], expected, check_exact=True)


def test_64_ranks_of_5_mb_in_the_memory_of_a_few(tmp_path: Path) -> None:
    """1,024 of 50 MB are in `benchmarks/scaling.py`."""
    job = write_job(tmp_path / "job", 64, slow=41, steps=5, layers=40, products=25)
    assert min(file.stat().st_size for file in job.iterdir()) > 4.5e6
    limit = 100_000_000
    trace = Trace.open(job, memory_limit=limit)
    assert trace.exceeds_memory
    found = analysis.overview(trace)
    assert first_two(found) == found_slow(41)
    stragglers = analysis.stragglers(trace)
    assert stragglers.loc[stragglers["caused_wait_ns"].idxmax(), "rank"] == 41
    assert sum(trace.rank(rank).events.held_bytes() for rank in trace.ranks) < 1.2 * limit

    again = []
    assert seconds(lambda: again.append(analysis.overview(Trace.open(job, memory_limit=limit)))) < 2.0
    pd.testing.assert_frame_equal(again[0], found, check_exact=True)


def test_half_a_million_events_of_64_ranks_are_replayed_in_seconds(tmp_path: Path) -> None:
    """The goal is 10 s of CPU for a million; half of the events in half of that, once compiled."""
    analysis.slowdown(Trace.open(write_job(tmp_path / "small", 4, 1)))
    trace = Trace.open(write_job(tmp_path / "job", 64, 5, steps=10, layers=98))
    for rank in trace.ranks:
        assert len(trace.rank(rank).iteration) > 7_500
    assert seconds(analysis.slowdown, trace) < 5
