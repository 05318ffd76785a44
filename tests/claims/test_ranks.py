"""Sentences about ranks are found where false, and shown by what they point to.

That they are true on planted jobs: `tests/verdicts/planted/test_ranks.py`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from hta_widgets.analysis import overview
from hta_widgets.analysis.findings import straggler
from hta_widgets.analysis.findings.device_rules import memory_copies
from hta_widgets.analysis.findings.imbalance import _whom
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.merging import merged
from hta_widgets.analysis.findings.rules import RULES
from hta_widgets.analysis.findings.saving import Judged
from hta_widgets.trace import Scope
from hta_widgets.trace.model import Trace
from tests.claims.checking import faults_of
from tests.claims.job import Job, length, overlap, union
from tests.claims.measures.activity import communication, exposed
from tests.verdicts.planted.rank_programs import (
    MS,
    AllReduce,
    Compute,
    Idle,
    Play,
    Program,
    Step,
    pipeline,
)
from tests.verdicts.planted.test_ranks import CASES, SLOW, late_in, lengths, one

TOPICS = {
    "straggler", "slow_kernels", "imbalance", "mutual_waiting", "exposed_communication", "pipeline_bubble",
    "memory_copies", "late_collective", "tiny_collectives", "slowed_by_communication",
}  # fmt: skip


def said_of(trace: Trace) -> pd.DataFrame:
    frame = overview(trace)
    return frame[frame["topic"].isin(TOPICS)].reset_index(drop=True)


@cache
def played(name: str, folder: str) -> tuple[Trace, pd.DataFrame, Job]:
    """A planted job, what is said of it, and the job as it is read by the slow reader."""
    trace = CASES[name].play().open(Path(folder), CASES[name].without)
    return trace, said_of(trace), Job(trace)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    @cache
    def of(name: str) -> str:
        return str(tmp_path_factory.mktemp(name))

    return of


Lie = Callable[[dict[str, Any]], dict[str, Any]]


def times(factor: float) -> Lie:
    return lambda claim: claim | {"value": claim["value"] * factor}


def instead(value: Any) -> Lie:
    return lambda claim: claim | {"value": value}


def of_ranks(*ranks: int) -> Lie:
    return lambda claim: claim | {"ranks": list(ranks)}


LIES: list[tuple[str, str, Lie]] = [
    ("data_parallel_slow_rank_1", "late_ranks", instead([0])),  # a victim
    ("data_parallel_slow_rank_1", "late_ranks", instead([2])),
    ("data_parallel_slow_rank_1", "late_by_replay", instead([3])),
    ("data_parallel_slow_rank_1", "waiting_ranks", instead([0, 1, 2])),
    ("data_parallel_slow_rank_1", "waiting_for", times(1.2)),
    ("data_parallel_slow_rank_1", "waiting_for", of_ranks(1)),
    ("data_parallel_slow_rank_1", "caused_waiting", instead(80.0)),
    ("data_parallel_slow_rank_1", "longer", times(1.1)),
    ("data_parallel_slow_rank_1", "longer", of_ranks(0)),
    ("data_parallel_slow_rank_1", "job_evidence", instead("the same operations take 1.5 times as long")),
    ("data_parallel_slow_rank_1", "slower_kernels", times(1.1)),
    ("data_parallel_slow_rank_1", "rank_with_slowest_kernels", instead([0])),
    ("data_parallel_slow_rank_1", "times_as_long", instead(1.3)),
    ("two_slow_ranks_of_eight", "also_slower", instead([5])),
    ("one_kernel_name_is_slow", "slower_kernels_part", times(1.5)),
    ("data_parallel_more_launches", "more_launches", instead(9)),
    ("data_parallel_more_launches", "rank_with_more_work", instead([0])),
    ("data_parallel_more_launches", "computes_longer", times(1.2)),
    ("data_parallel_more_launches", "more_work", times(1.5)),
    ("half_of_the_ranks_are_slow", "ranks_with_nearly_all_waiting", instead([4, 5, 6])),
    ("sequence_lengths", "slowest_in_most_waiting", instead([9])),
    ("sequence_lengths", "steps_as_slowest", times(2)),
    ("sequence_lengths", "waiting_in_steps_as_slowest", times(1.5)),
    ("culprit_is_not_recorded_in_data_parallel", "exposed_communication", times(1.1)),
    ("culprit_is_not_recorded_in_data_parallel", "hidden_communication", instead(50.0)),
    ("victim_is_not_recorded", "recorded_ranks", instead(4)),
    ("victim_is_not_recorded", "world_size", instead(8)),
]


@pytest.mark.parametrize(("name", "measure", "lie"), LIES)
def test_a_false_sentence_is_found(name: str, measure: str, lie: Lie, folder: Callable[[str], str]) -> None:
    trace, frame, job = played(name, folder(name))
    changed = frame.copy()
    found = False
    for at, text in enumerate(frame["claims"]):
        claims = json.loads(text or "[]")
        found |= any(claim["measure"] == measure for claim in claims)
        told = [lie(claim) if claim["measure"] == measure else claim for claim in claims]
        changed.loc[at, "claims"] = json.dumps(told)
    assert found
    assert measure in {fault.measure for fault in faults_of(trace, changed, job=job)}


def test_the_wrong_steps_are_found(tmp_path: Path) -> None:
    trace = Play(late_in(5)).open(tmp_path)
    frame = said_of(trace)
    assert not list(faults_of(trace, frame))
    frame["claims"] = frame["claims"].str.replace('"value": [5]', '"value": [4]')
    assert {fault.measure for fault in faults_of(trace, frame)} == {"steps_with_nearly_all_waiting"}


LATE_RANKS = {
    "data_parallel_slow_rank_1": {1},
    "late_host": {1},
    "two_slow_ranks_of_eight": {3, 6},
    "pipeline_slow_stage_2": {2},
}


@pytest.mark.parametrize("name", LATE_RANKS)
def test_others_communicate_while_they_wait_for_the_rank_that_is_shown(
    name: str, folder: Callable[[str], str]
) -> None:
    _, frame, job = played(name, folder(name))
    row = frame.set_index("topic").loc["straggler"]
    shown, span = job.ranks[int(row["event_rank"])], (int(row["start_ns"]), int(row["end_ns"]))
    assert shown.by_number[int(row["event_id"])].kind == "communicating"
    waiting = [
        rank
        for rank in job.ranks.values()
        if length(overlap(exposed(rank), span)) > 0.95 * (span[1] - span[0])
    ]
    event = shown.by_number[int(row["event_id"])]
    if shown.number in LATE_RANKS[name]:
        assert waiting and shown not in waiting and event.start == span[1]
    else:  # one that waits for another, which waits for the late rank
        assert shown in waiting and event.start == span[0]


def test_what_is_shown_of_communication_is_exposed_and_no_waiting(folder: Callable[[str], str]) -> None:
    name = "two_ranks_with_a_slow_link"
    _, frame, job = played(name, folder(name))
    row = frame.set_index("topic").loc["exposed_communication"]
    rank, span = job.ranks[int(row["event_rank"])], (int(row["start_ns"]), int(row["end_ns"]))
    assert overlap(exposed(rank), span) == [span]
    busy = [union(each.window for each in communication(other)) for other in job.ranks.values()]
    assert sum(length(overlap(of, span)) > 0 for of in busy) > 1


def test_one_loss_is_one_finding(tmp_path: Path, folder: Callable[[str], str]) -> None:
    """Slow kernels make a rank late: a part of the waiting for it, not a loss beside that."""
    for name, reason in (
        ("data_parallel_slow_rank_1", "slow_kernels"),
        ("data_parallel_more_launches", "imbalance"),
    ):
        frame = played(name, folder(name))[1].set_index("topic")
        assert frame.loc[reason, "part_of"] == "straggler"
        assert frame.loc["straggler", "part_of"] == ""
        assert "exposed_communication" not in frame.index  # that is waiting, and has a finding
    alone = overview(CASES["slow_kernels_without_communication"].play().open(tmp_path)).set_index("topic")
    assert alone.loc["slow_kernels", "part_of"] == ""


@pytest.mark.parametrize(("rank", "part_of"), [(2, "straggler"), (1, ""), (None, "")])
def test_what_a_late_rank_alone_loses_is_a_part_of_the_waiting_for_it(
    rank: int | None, part_of: str, folder: Callable[[str], str]
) -> None:
    """What a victim loses beside that, or all ranks do, is another loss."""
    name = "pipeline_stage_that_copies"
    inputs = Inputs(played(name, folder(name))[0], Scope())
    late, copies = straggler.straggler(inputs), memory_copies(inputs)
    assert late is not None and copies is not None and copies.explains == 2
    (rule,) = (rule for rule in RULES if rule.topic == "memory_copies")
    found = merged([Judged(straggler.RULE, late), Judged(rule, replace(copies, explains=rank))])
    assert [each.part_of for each in found] == ["", part_of]


def begins_later(ns: int) -> dict[int, Program]:
    """Two ranks without steps; the first work of rank 1 is later."""
    return {rank: [Idle(ns * rank), *[Compute("gemm", MS), AllReduce((0, 1))] * 4] for rank in range(2)}


def entering(before_ns: int, inside_ns: int) -> dict[int, Program]:
    """Two ranks of 8 steps; rank 1 enters the first one later, or is late inside it."""
    body: Program = [Compute("gemm", MS), AllReduce((0, 1))] * 4
    late: Program = [Idle(inside_ns)] if inside_ns else []
    steps = {rank: [Step(0), *late * rank, *body] for rank in range(2)}
    rest: Program = [each for step in range(1, 8) for each in (Step(step), *body)]
    return {
        rank: [*[Idle(before_ns)] * (rank if before_ns else 0), *first, *rest]
        for rank, first in steps.items()
    }


@pytest.mark.parametrize(("before", "inside"), [(0, 20 * MS), (MS // 4, 20 * MS)])
def test_a_rank_that_is_late_inside_the_first_step_is_late(before: int, inside: int, tmp_path: Path) -> None:
    trace = Play(entering(before, inside)).open(tmp_path)
    row = overview(trace).set_index("topic").loc["straggler"]
    assert row["rank"] == 1 and row["share_pct"] > 10
    assert "before the recording" not in row["text"]
    assert not list(faults_of(trace, said_of(trace)))


def test_of_a_chosen_step_the_wait_for_a_rank_that_enters_it_late_is_no_loss(tmp_path: Path) -> None:
    trace = Play(entering(20 * MS, 0)).open(tmp_path)
    scope = Scope(iterations=(0,))
    frame = overview(trace, scope)
    row = frame.set_index("topic").loc["straggler"]
    assert row["title"] == "Waiting for a rank that began late" and row["share_pct"] == 0
    assert "begins the step 20.0 ms after the others: the cause lies before the recording." in row["text"]
    assert not list(faults_of(trace, frame[frame["topic"] == "straggler"], scope))


def test_a_rank_with_most_of_the_waiting_is_not_none() -> None:
    """It was "No rank stands out: rank 1 causes the largest part of it: 100 %"."""
    late = pd.DataFrame({"iteration": [0, 0], "rank": [0, 1], "waited_ns": [MS, 0], "blamed_ns": [0, MS]})
    assert str(_whom(late, [])) == "Rank 1 causes the largest part of it: 100 %."
    late = pd.DataFrame(
        {"iteration": [0] * 3, "rank": [0, 1, 2], "waited_ns": [MS] * 3, "blamed_ns": [MS] * 3}
    )
    assert str(_whom(late, [])).startswith("No rank stands out: rank 0")


@pytest.mark.parametrize("play", [Play(lengths(4, 8, grids=True)), Play(pipeline(one(4, 1, SLOW)))])
def test_no_rank_stands_out_only_where_none_does(play: Play, tmp_path: Path) -> None:
    text = " ".join(overview(play.open(tmp_path))["text"])
    assert "No rank stands out" not in text


def test_marked_steps_hold_the_wait_for_a_late_rank(tmp_path: Path) -> None:
    """The near miss of the rank that begins later: the step holds the time before its first work."""
    programs: dict[int, Program] = {
        rank: [each for step in range(4) for each in (Step(step), *body)]
        for rank, body in begins_later(5 * MS).items()
    }
    row = overview(Play(programs).open(tmp_path)).set_index("topic").loc["straggler"]
    assert "is idle longer" in row["text"] and "begins to work" not in row["text"]
