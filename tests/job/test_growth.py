"""How work grows with the ranks of a job: every answer in step with them; and the slow rank is found."""

import math
import time
from contextlib import suppress
from pathlib import Path

import pandas as pd
import pytest

from hta_widgets import Scope, Trace, TraceExplorer, analysis
from hta_widgets.analysis.core import kept
from hta_widgets.analysis.registry import ANALYSES
from hta_widgets.errors import MissingDataError
from tests.calls import calls
from tests.job.many_ranks import write_job
from tests.support import EVERY_CASE

pytestmark = pytest.mark.slow

# from more ranks on than a host has, of which the strategy asks more
FEW, MANY = (128, 1024) if EVERY_CASE else (16, 32)
# n squared is an exponent of 2, and calls are counted, so that there is no noise
EXPONENT = 1.1
# asked of a window, too: all, or one of each package
ONE_OF_EACH = {entry.function.__module__.rpartition(".")[0]: kind for kind, entry in ANALYSES.items()}
OF_WINDOWS = {*(ANALYSES if EVERY_CASE else ONE_OF_EACH.values())}


def work_of(job: Path) -> dict[str, int]:
    """The calls of each question; that some data are missing is an answer, too."""

    def answered(work: object, *args: object) -> None:
        with suppress(MissingDataError):
            work(*args)  # type: ignore[operator]

    found = {"open": calls(lambda: Trace.open(job))[0]}
    found["open again"], trace = calls(lambda: Trace.open(job))
    start, end = trace.extent_ns
    window = Scope(window_ns=(start + (end - start) // 4, end - (end - start) // 4))
    for kind, entry in ANALYSES.items():
        found[kind], _ = calls(lambda: answered(entry.function, trace))  # noqa: B023
        if kind in OF_WINDOWS:
            found[f"{kind} of a window"], _ = calls(lambda: answered(entry.function, trace, window))  # noqa: B023
    found["explorer"], _ = calls(lambda: explored(trace))
    return found


def explored(trace: Trace) -> None:
    """An explorer until all its parts have answered: how far they come until it is closed is chance."""
    explorer = TraceExplorer(trace).wait()
    while explorer.status == "busy" or any(part.status == "busy" for _, part in explorer.parts):
        time.sleep(0.2)
    explorer.close()


def test_no_answer_takes_more_than_its_part_for_each_rank(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "_LEAST_SECONDS", math.inf)  # what is stored depends on the clock
    jobs = {ranks: write_job(tmp_path / f"{ranks}", ranks, slow=2) for ranks in (3, FEW, MANY)}
    work_of(jobs.pop(3))  # what is compiled or imported once
    few, many = (work_of(job) for job in jobs.values())
    grown = {name: round(math.log(many[name] / few[name]) / math.log(MANY / FEW), 2) for name in many}
    assert grown["open"] > 0.5 and grown["utilization"] > 0.9  # they are counted
    assert not {name: exponent for name, exponent in grown.items() if exponent > EXPONENT}


def first_two(found: pd.DataFrame) -> list[tuple[str, int, str]]:
    rows = found.iloc[:2]
    return list(zip(rows["topic"], rows["rank"], rows["part_of"], strict=True))


def found_slow(rank: int) -> list[tuple[str, int, str]]:
    """That others wait for it, and the cause behind that whole."""
    return [("straggler", rank, ""), ("slow_kernels", rank, "straggler")]


@pytest.mark.parametrize("ranks", [8, 64, 512, 1024] if EVERY_CASE else [MANY])
def test_the_slow_rank_is_found(ranks: int, tmp_path: Path) -> None:
    slow = ranks - 3
    job = write_job(tmp_path / "job", ranks, slow)
    trace = Trace.open(job)
    found = analysis.overview(trace)
    assert first_two(found) == found_slow(slow)
    slowed = analysis.stragglers(trace)
    assert slowed.loc[slowed["caused_wait_ns"].idxmax(), "rank"] == slow

    again = Trace.open(job)  # the overview then needs no column
    pd.testing.assert_frame_equal(analysis.overview(again), found, check_exact=True)
    assert not any(again.rank(rank).events.here for rank in again.ranks)


def test_ranks_of_5_mb_in_the_memory_of_a_few(tmp_path: Path) -> None:
    """1,024 of 50 MB are in `benchmarks/scaling.py`."""
    ranks, slow = (32, 21) if EVERY_CASE else (6, 4)
    job = write_job(tmp_path / "job", ranks, slow, steps=5, layers=40, products=25)
    assert min(file.stat().st_size for file in job.iterdir()) > 4.5e6
    limit = ranks * 1_500_000
    trace = Trace.open(job, memory_limit=limit)
    assert trace.exceeds_memory
    found = analysis.overview(trace)
    assert first_two(found) == found_slow(slow)
    stragglers = analysis.stragglers(trace)
    assert stragglers.loc[stragglers["caused_wait_ns"].idxmax(), "rank"] == slow
    assert sum(trace.rank(rank).events.held_bytes() for rank in trace.ranks) < 1.2 * limit

    again = Trace.open(job, memory_limit=limit)
    pd.testing.assert_frame_equal(analysis.overview(again), found, check_exact=True)
    assert not any(again.rank(rank).events.here for rank in again.ranks)
