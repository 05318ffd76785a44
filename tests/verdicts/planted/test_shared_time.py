"""Ranks whose recordings differ: what all of them record is judged, or some of them, and why is said."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pandas as pd
import pytest

from hta_widgets.analysis.evidence.document import evidence
from hta_widgets.analysis.findings import overview
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.story import story
from hta_widgets.trace import Scope
from hta_widgets.trace.model import Trace
from tests.claims.checking import faults_of
from tests.support import shared_input
from tests.verdicts.planted.rank_programs import MS, AllReduce, Compute, Idle, Play, Program, Step

BODY: Program = [Compute("gemm", MS), AllReduce((0, 1))]
TOPIC = "different_recordings"


def opened(programs: dict[int, Program], folder: Path, from_the_start: bool = False) -> Trace:
    """A job; where all ranks record from the start, a call of the host shows it."""
    play = Play(programs)
    for rank in programs if from_the_start else ():
        play.file(rank).add("cpu_op", "aten::empty", MS // 2, 10_000)
    return play.open(folder)


@cache
def said_of(trace: Trace) -> pd.DataFrame:
    """The overview, asked once."""
    return overview(trace)


def judged(trace: Trace) -> pd.DataFrame:
    found = said_of(trace)
    assert not list(map(str, faults_of(trace, found[found["topic"].isin((TOPIC, "straggler"))])))
    return found.set_index("topic")


def lengths(trace: Trace) -> set[int]:
    """How long the ranks are judged."""
    return set(Inputs(trace, Scope()).judged_ns.values())


@pytest.mark.parametrize(("late", "later"), [(5 * MS, "5.00 ms"), (50 * MS, "50.0 ms")])
def test_a_late_beginning_is_neither_a_loss_nor_a_saving(late: int, later: str, tmp_path: Path) -> None:
    trace = opened({0: BODY * 12, 1: [Idle(late), *BODY * 12]}, tmp_path)
    found, said = judged(trace), story(trace, None, said_of(trace))
    assert f"Rank 1 begins to record {later} after the others" in found.loc[TOPIC, "text"]
    assert "straggler" not in found.index and len(lengths(trace)) == 1
    transfers = sum(part.ns for part in said.parts if part.lost_as == "communication")
    assert transfers == pytest.approx(11 * 100_000, abs=10_000)  # and no waiting
    assert said.whole_ns < 14 * MS
    leads = late > said.whole_ns  # then most of what is recorded is the wait for it
    assert said.headline.startswith(f"Rank 1 begins to record {later} after the others; of the ") == leads
    assert ("Rank 1 begins to record" in said.limits) != leads
    document = evidence(trace)
    assert any("begins to record" in each["what"] for each in document["unknown"])
    # why no saving is estimated stands wherever one would
    why = "the ranks share only a part of it"
    causes = found[(found["role"] == "cause") & (found["share_pct"] > 0)]
    assert len(causes) and causes["saving"].str.contains(why).all()
    assert all(why in each.sure for each in said.advice if each.topic in causes.index)
    listed = {each["id"]: each["saving"] for each in document["findings"]}
    assert all(why in listed[topic]["unknown_because"] for topic in causes.index)


def test_a_rank_that_is_late_while_it_records_is_late(tmp_path: Path) -> None:
    """The near miss: the same device work, and its host records from the start."""
    trace = opened({0: BODY * 12, 1: [Idle(5 * MS), *BODY * 12]}, tmp_path, from_the_start=True)
    found = judged(trace)
    assert TOPIC not in found.index
    row = found.loc["straggler"]
    assert row["rank"] == 1 and row["share_pct"] > 20 and "before the recording" not in row["text"]
    assert "Rank 1 begins to work 5.00 ms after the others." in row["text"]


def test_equal_recordings_need_no_word(tmp_path: Path) -> None:
    trace = opened({0: BODY * 12, 1: BODY * 12}, tmp_path)
    assert TOPIC not in judged(trace).index


def test_a_rank_without_much_work_is_idle_while_it_records(tmp_path: Path) -> None:
    work: Program = [Compute("gemm", MS)]
    trace = opened({0: work * 60, 1: [*work * 12, Idle(48 * MS), Compute("gemm", 1000)]}, tmp_path)
    assert TOPIC not in judged(trace).index  # to its last work it takes as long
    (tmp_path / "short").mkdir()
    play = Play({0: work * 60, 1: work * 12})
    play.file(1).add("cpu_op", "aten::empty", 61 * MS, 10_000)
    trace = play.open(tmp_path / "short")
    row = judged(trace).loc[TOPIC]
    assert "a rank takes 12.0 ms to 60.0 ms. All are judged over the same 60.0 ms" in row["text"]
    assert lengths(trace) == {60 * MS}
    frame = Inputs(trace, Scope()).temporal.set_index("rank")
    assert frame.loc[1, "idle_pct"] == pytest.approx(80, abs=1)


@pytest.mark.parametrize(("count", "judged_ms", "ranks"), [(36, 36, "both ranks"), (12, 60, "rank 0 of 2")])
def test_a_rank_that_stops_recording_is_not_idle_afterwards(
    count: int, judged_ms: int, ranks: str, tmp_path: Path
) -> None:
    """The time of both is judged, if that is most of it, or else the rank that records more."""
    work: Program = [Compute("gemm", MS)]
    trace = opened({0: work * 60, 1: work * count}, tmp_path)
    assert lengths(trace) == {judged_ms * MS} and TOPIC in judged(trace).index
    assert story(trace, None, said_of(trace)).scope.startswith(ranks)


@pytest.mark.parametrize(("count", "ranks"), [(1, "rank 1 of 2"), (3, "both ranks")])
def test_hardly_more_than_a_wait_for_a_late_recording_is_not_judged(
    count: int, ranks: str, tmp_path: Path
) -> None:
    trace = opened({0: BODY * count, 1: [Idle(20 * MS), *BODY * count]}, tmp_path)
    found, said = judged(trace), story(trace, None, said_of(trace))
    assert "Rank 1 begins to record 20.0 ms after the others" in found.loc[TOPIC, "text"]
    assert said.scope.startswith(ranks) and said.whole_ns < 4 * MS


def test_what_is_judged_begins_with_the_last_of_several_late_recordings(tmp_path: Path) -> None:
    work: Program = [Compute("gemm", MS)] * 60
    trace = opened({0: work, 1: [Idle(20 * MS), *work], 2: [Idle(30 * MS), *work]}, tmp_path)
    assert "Ranks 1 and 2 begin to record up to 30.0 ms after the others" in judged(trace).loc[TOPIC, "text"]
    assert lengths(trace) == {30 * MS}


def test_what_is_recorded_one_after_another_is_not_averaged(tmp_path: Path) -> None:
    work: Program = [Compute("gemm", MS)]
    trace = opened({0: work * 60, 1: [Idle(100 * MS), *work * 12]}, tmp_path)
    row = judged(trace).loc[TOPIC]
    assert row["text"].startswith("Rank 1 is not judged: its time is 12.0 ms at most, that of rank 0 60.0 ms")
    assert row["headline"] == "Rank 1 isn't judged: 12.0 ms recorded"
    said = story(trace, None, said_of(trace))
    assert said.whole_ns == 60 * MS and said.scope.startswith("rank 0 of 2")


def test_several_short_recordings_are_told_together(tmp_path: Path) -> None:
    work: Program = [Compute("gemm", MS)]
    short: Program = [Idle(100 * MS), *work * 12]
    row = judged(opened({0: work * 60, 1: short, 2: short}, tmp_path)).loc[TOPIC]
    assert row["text"].startswith(
        "Ranks 1 and 2 are not judged: their time is 12.0 ms at most, that of rank 0"
    )
    assert row["headline"] == "Ranks 1 and 2 aren't judged: 12.0 ms recorded"


def steps(first: Program, late: int) -> dict[int, Program]:
    rest: Program = [each for step in range(1, 8) for each in (Step(step), *BODY * 4)]
    return {rank: [*[Idle(late)] * rank, Step(0), *first, *rest] for rank in range(2)}


def test_a_first_step_that_ranks_enter_apart_is_left_out(tmp_path: Path) -> None:
    trace = opened(steps(BODY * 4, 20 * MS), tmp_path)
    found = judged(trace)
    assert (
        "Rank 1 enters the first step 20.0 ms after the others. The cause lies before"
        in found.loc[TOPIC, "text"]
    )
    assert "straggler" not in found.index and found["steps"].dropna().eq(7).all()
    assert story(trace, None, said_of(trace)).whole_ns < 6 * MS


def test_an_only_step_that_is_a_wait_for_a_late_recording_is_not_judged(tmp_path: Path) -> None:
    programs = {rank: [*[Idle(20 * MS)] * rank, Step(0), *BODY] for rank in range(2)}
    trace = opened(programs, tmp_path)
    assert "Rank 1 enters the first step 20.0 ms after the others" in judged(trace).loc[TOPIC, "text"]
    said = story(trace, None, said_of(trace))
    assert said.scope.startswith("rank 1 of 2, 1 step") and said.whole_ns < 2 * MS


def test_of_the_only_step_the_begin_is_left_out(tmp_path: Path) -> None:
    programs = {rank: [*[Idle(20 * MS)] * rank, Step(0), *BODY * 12] for rank in range(2)}
    trace = opened(programs, tmp_path)
    found = judged(trace)
    assert "Rank 1 enters the first step 20.0 ms after the others. What" in found.loc[TOPIC, "text"]
    assert "straggler" not in found.index and len(lengths(trace)) == 1
    assert story(trace, None, said_of(trace)).whole_ns == pytest.approx(12 * MS, rel=0.02)


def test_ranks_with_unlike_steps_are_not_averaged(tmp_path: Path) -> None:
    """A trainer and a generator."""
    programs: dict[int, Program] = {
        rank: [each for step in range(8) for each in (Step(step), *[Compute("gemm", MS)] * count)]
        for rank, count in enumerate((12, 2))
    }
    trace = opened(programs, tmp_path)
    row = judged(trace).loc[TOPIC]
    assert row["text"].startswith("Rank 1 is not judged: its time is 2.0")
    assert story(trace, None, said_of(trace)).whole_ns == pytest.approx(12 * MS, rel=0.01)


def test_a_recording_of_two_ranks() -> None:
    trace = Trace.open(shared_input("recordings/moe_compile_after_B"), cache=False)
    assert "Rank 1 begins to record 1.91 ms after the others" in judged(trace).loc[TOPIC, "text"]
    assert lengths(trace) == {129_980}
