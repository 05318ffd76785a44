"""Changes between ranks: the replay of a recorded job, held to the job played with the change made."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from hta_widgets import Scope, edits
from hta_widgets.analysis import marginal_savings, replayed_events, slowdown, what_if
from hta_widgets.analysis.replay.edits import Edit
from hta_widgets.errors import MissingDataError
from hta_widgets.trace.model import Trace
from tests.verdicts.planted.late_ranks import LATE, MORE, SLOW, lengths, one
from tests.verdicts.planted.rank_programs import (
    LAYER,
    MS,
    AllReduce,
    Pace,
    Play,
    Program,
    Step,
    data_parallel,
    pipeline,
    work,
)

GEMM = LAYER[0][0]


def exchanging(transfer_ns: int, slow: float = 1.0) -> dict[int, Program]:
    """Three ranks whose all-reduces take long; one may be slow."""
    programs: dict[int, Program] = {}
    for rank in range(3):
        dice, pace = random.Random(rank), Pace(slow if rank == 1 else 1.0)
        programs[rank] = []
        for step in range(4):
            programs[rank] += [Step(step), *work(dice, pace, 2), AllReduce((0, 1, 2), transfer_ns)]
    return programs


def one_kernel(times: float) -> dict[int, Program]:
    """Rank 2 is slow, and so is one kernel of it."""
    paces = [Pace(), Pace(), Pace(times, of=GEMM), Pace()]
    return data_parallel(paces)


def played(play: Play) -> float:
    """How long the steps of a job take by its files, ns: the mean from first computation to last end.

    A rank that waits for its first microbatch does so from its own last step on.
    """
    begins: dict[str, list[float]] = {}
    ends: dict[str, list[float]] = {}
    for player in play._players.values():
        events = [(*_span(event), event) for event in player.file.events]
        work = [
            (start, end, event["name"].startswith("nccl"))
            for start, end, event in events
            if event["cat"] in ("kernel", "gpu_memcpy")
        ]
        for first, last, event in events:
            if event["name"].startswith("ProfilerStep"):
                own = [each for each in work if first <= each[0] < last]
                begins.setdefault(event["name"], []).append(
                    min(start for start, _, waits in own if not waits)
                )
                ends.setdefault(event["name"], []).append(max(end for _, end, _ in own))
    return 1000 * float(np.mean([max(ends[step]) - min(begins[step]) for step in begins]))


def _span(event: dict[str, Any]) -> tuple[float, float]:
    start, dur = (float(event[name].strip("@")) for name in ("ts", "dur"))
    return start, start + dur


def time(frame: pd.DataFrame, column: str) -> float:
    """How long the steps of the job take, ns: the mean of the longest of their ranks."""
    return float(frame.groupby("iteration")[column].max().mean())


CHANGES: dict[str, tuple[dict[int, Program], Edit, dict[int, Program]]] = {
    "slow_rank": (data_parallel(one(4, 2, SLOW)), edits.median_rank(2), data_parallel(one(4, 2, Pace()))),
    "more_work": (data_parallel(one(4, 2, MORE)), edits.median_rank(2), data_parallel(one(4, 2, Pace()))),
    "late_host": (data_parallel(one(4, 1, LATE)), edits.median_rank(1), data_parallel(one(4, 1, Pace()))),
    "stage_of_a_pipeline": (pipeline(one(4, 1, SLOW)), edits.median_rank(1), pipeline(one(4, 1, Pace()))),
    "innocent_rank": (
        data_parallel(one(4, 2, SLOW)), edits.median_rank(1), data_parallel(one(4, 2, SLOW)),
    ),
    "one_kernel": (one_kernel(2.0), edits.even_operations(GEMM), data_parallel([Pace(1.25, of=GEMM)] * 4)),
    "no_stragglers": (
        data_parallel(one(4, 2, SLOW)), edits.no_stragglers(), data_parallel([Pace(1.125)] * 4),
    ),
    "links": (exchanging(4 * MS), edits.faster_links(2.0), exchanging(2 * MS)),
    "links_of_a_name": (exchanging(4 * MS), edits.faster_links(4.0, name="allreduce*"), exchanging(MS)),
    "links_wait_for_the_slow_rank": (
        exchanging(4 * MS, 1.5), edits.faster_links(float("inf")), exchanging(0, 1.5),
    ),
    "other_names": (exchanging(4 * MS), edits.faster_links(4.0, name="*gather*"), exchanging(4 * MS)),
}  # fmt: skip


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    return Play(data_parallel(one(4, 2, SLOW))).open(tmp_path_factory.mktemp("slow"))


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_takes_as_long_as_the_job_played_with_it(name: str, tmp_path: Path) -> None:
    recorded, change, made = CHANGES[name]
    frame = what_if(Play(recorded).open(tmp_path), change)
    assert time(frame, "before_ns") == pytest.approx(played(Play(recorded)), rel=0.01)
    assert time(frame, "after_ns") == pytest.approx(played(Play(made)), rel=0.03)
    assert (frame["low_ns"] <= frame["after_ns"]).all() and (frame["after_ns"] <= frame["high_ns"]).all()
    parts = frame[["compute_ns", "exposed_communication_ns", "exposed_memory_ns", "idle_ns"]]
    assert (parts >= 0).all(axis=None)
    assert parts.sum(axis=1).tolist() == frame["after_ns"].tolist()


def test_ranks_late_in_turn_gain_nothing_from_one_of_them(tmp_path: Path) -> None:
    """The near miss: in each step another rank is the longest, so the repair of one wins in one step."""
    trace = Play(lengths(4, 4, grids=False)).open(tmp_path)
    before, one_rank, all_ranks = (
        time(what_if(trace, change), column)
        for change, column in (
            (edits.no_stragglers(), "before_ns"),
            (edits.median_rank(0), "after_ns"),
            (edits.no_stragglers(), "after_ns"),
        )
    )
    assert before - all_ranks > 0.15 * before
    assert before - one_rank < 0.3 * (before - all_ranks)


def test_it_is_the_replay_of_slowdown(slow: Trace) -> None:
    job = slowdown(slow).iloc[0]
    frame = what_if(slow, edits.no_stragglers())
    assert time(frame, "before_ns") == pytest.approx(job["time_ns"], abs=1)
    assert time(frame, "after_ns") == pytest.approx(job["time_ns"] - job["cost_ns"], abs=1)
    unchanged = what_if(slow, edits.faster_links(1.0))
    assert unchanged["after_ns"].tolist() == unchanged["before_ns"].tolist()
    assert frame["model_error_pct"].abs().max() < 1


def test_the_frame_is_that_of_other_changes(slow: Trace) -> None:
    frame = what_if(slow, edits.no_stragglers())
    assert frame.dtypes.equals(what_if(slow, edits.kernels(2.0)).dtypes)
    assert frame[["rank", "iteration"]].drop_duplicates().shape[0] == len(frame) == 4 * 4
    some = what_if(slow, edits.no_stragglers(), Scope(ranks=(1, 3), iterations=(2,)))
    kept = frame[frame["rank"].isin([1, 3]) & (frame["iteration"] == 2)].reset_index(drop=True)
    pd.testing.assert_frame_equal(some, kept)


def test_parts_of_what_stays_as_it_was_are_those_that_were_recorded(slow: Trace) -> None:
    frame = what_if(slow, edits.faster_links(1.0)).set_index(["rank", "iteration"])
    events = slow.events()
    kernels = events[events["category"] == "kernel"]
    computing = (
        kernels[~kernels["name"].str.startswith("nccl")].groupby(["rank", "iteration"])["dur_ns"].sum()
    )
    assert len(computing) == len(frame) == 4 * 4
    assert frame["compute_ns"].to_dict() == pytest.approx(computing.to_dict(), rel=0.001)
    waits = frame["exposed_communication_ns"].groupby("rank").sum()
    assert waits.idxmin() == 2 and waits.max() > 2 * waits[2]  # the others wait for the slow rank


def test_changes_add_up(slow: Trace) -> None:
    rank, links = edits.median_rank(2), edits.faster_links(2.0)
    both = time(what_if(slow, [rank, links]), "after_ns")
    assert both < min(time(what_if(slow, each), "after_ns") for each in (rank, links))
    for made in ([rank, links], [edits.no_stragglers(), links]):
        pd.testing.assert_frame_equal(what_if(slow, made), what_if(slow, made[::-1]))


def test_what_is_no_answer_is_refused(slow: Trace, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="the job has no rank 7: its ranks are 0, 1, 2, 3"):
        what_if(slow, edits.median_rank(7))
    with pytest.raises(ValueError, match="apart from those within a rank"):
        what_if(slow, [edits.no_stragglers(), edits.kernels(2.0)])
    for other in (marginal_savings, replayed_events):
        with pytest.raises(ValueError, match=r"edits\.no_stragglers\(\) is of several ranks"):
            other(slow, [edits.no_stragglers()])
    alone = Play({0: data_parallel([Pace()])[0]}).open(tmp_path)
    with pytest.raises(MissingDataError, match="second rank"):
        what_if(alone, edits.no_stragglers())
