"""Jobs of several ranks with a known culprit: it is named, its victims are not; without one, nobody is.

Sentences about them are found where false, and shown by what they point to. All that asks these jobs is here,
because playing and reading them takes most of the time.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pandas as pd
import pytest

from hta_widgets import examples
from hta_widgets.analysis import ANALYSES, slowdown, temporal_breakdown
from hta_widgets.analysis.communication.waits import waits
from hta_widgets.analysis.findings import CHECKED, OPEN, VERDICT, overview, straggler
from hta_widgets.analysis.findings.device_rules import memory_copies
from hta_widgets.analysis.findings.imbalance import _whom
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.merging import merged
from hta_widgets.analysis.findings.rules import RULES
from hta_widgets.analysis.findings.saving import Judged
from hta_widgets.analysis.findings.story import story
from hta_widgets.analysis.findings.unusual_steps import without_waits
from hta_widgets.charts.marks import marks
from hta_widgets.errors import MissingDataError
from hta_widgets.formatting import percent
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope
from tests.analysis.multirank import BOOT_NS
from tests.claims.checking import faults_of
from tests.claims.job import Job, length, overlap, union
from tests.claims.measures.activity import communication, exposed
from tests.first_lines import first_lines
from tests.job.test_recordings import culprits, job_row
from tests.support import EVERY_CASE
from tests.verdicts.planted.late_ranks import (
    CASES,
    MORE,
    SLOW,
    late_in,
    lengths,
    longer_transfers,
    one,
    unlike,
)
from tests.verdicts.planted.rank_programs import (
    MS,
    US,
    AllReduce,
    Compute,
    Copy,
    Idle,
    Pace,
    Play,
    Program,
    Step,
    data_parallel,
    pipeline,
)
from tests.verdicts.planted.several_hosts import Hosts

COSTS = " of step time ("
"""The replay names the same ranks, and what they cost."""
BETWEEN_RANKS = {"straggler", "slow_kernels", "imbalance", "mutual_waiting", "exposed_communication"}


Played = Callable[[str], tuple[Trace, pd.DataFrame, Job]]


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    """A planted job, what is said of it, and the job as the slow reader reads it."""

    @cache
    def of(name: str) -> tuple[Trace, pd.DataFrame, Job]:
        trace = CASES[name].play().open(tmp_path_factory.mktemp(name), CASES[name].without)
        return trace, overview(trace), Job(trace)

    return of


Late = Callable[..., tuple[Trace, pd.DataFrame]]


@pytest.fixture(scope="module")
def late(tmp_path_factory: pytest.TempPathFactory) -> Late:
    """The job whose rank 1 is late in these steps, and what is said of it."""

    @cache
    def of(*steps: int) -> tuple[Trace, pd.DataFrame]:
        trace = Play(late_in(*steps)).open(tmp_path_factory.mktemp("late"))
        return trace, overview(trace)

    return of


@pytest.mark.parametrize("name", unlike(CASES))
def test_the_culprit_is_named_and_nobody_else(name: str, played: Played) -> None:
    case = CASES[name]
    trace, frame, job = played(name)
    found = frame[~frame["severity"].isin((OPEN, VERDICT, CHECKED)) & frame["topic"].isin(BETWEEN_RANKS)]
    named = {row.topic: None if pd.isna(row.rank) else int(row.rank) for row in found.itertuples()}
    assert named == case.told, found["text"].tolist()
    texts = found.set_index("topic")["text"]
    for topic, words in case.words.items():
        for word in words:
            assert word in texts[topic]
    if "straggler" in texts:
        assert COSTS in texts["straggler"]
    if "exposed_communication" in texts:
        advice = found.set_index("topic")["suggestion"]["exposed_communication"]
        told = [word in advice for word in ("microbatches", "a process group of fewer ranks")]
        assert told == [case.bubbles, not case.bubbles]
        included = "waiting for other ranks included" in texts["exposed_communication"]
        assert advice.startswith("Record all ranks first") == (included and bool(case.without))
        assert ("in sends and receives" in texts["exposed_communication"]) == case.bubbles
    for text in texts:
        assert not [word for word in case.never if word in text], text
    questions = frame.loc[frame["severity"] == OPEN, "text"]
    assert questions.str.contains("whom the ranks wait for").any() == case.unknown
    assert not list(map(str, faults_of(trace, frame, job=job)))


@pytest.mark.parametrize(
    ("steps", "when"),
    [
        ((5,), "Nearly all of it is in iteration 5."),
        ((2, 5), "Nearly all of it is in iterations 2, 5."),
        ((2, 5, 6), ""),
    ],
)
def test_ranks_that_are_late_in_few_steps(steps: tuple[int, ...], when: str, late: Late) -> None:
    trace, frame = late(*steps)
    row = frame.set_index("topic").loc["straggler"]
    assert ("Nearly all of it" in row["text"]) == bool(when) and when in row["text"]
    assert ("in iteration 5" in story(trace, frame=frame).headline) == (steps == (5,))
    assert "is idle longer" in row["text"]


def test_communication_that_may_be_waiting_is_replayed_where_it_is_part_of_the_cost(tmp_path: Path) -> None:
    """The neighbours of a stage that was not recorded may wait for it; the last stage is known to wait for
    its own neighbour, so that nothing of the cost is there, nor of what a change would save.
    """
    play = ahead(Play(pipeline(one(4, 1, Pace(2.0)))), 4)
    frame = overview(play.open(tmp_path, without=(1,)))
    row = frame.set_index("topic").loc["exposed_communication"]
    assert "waiting for other ranks included" in row["text"]
    time = temporal_breakdown(Trace.open(tmp_path, cache=False)).set_index("rank")
    share = 100 * time["exposed_communication_ns"] / time["window_ns"]
    assert share[3] > row["share_pct"] and row["saving_rank"] == 2 and share[2] < share[0]
    assert row["saving_pct"] < share[2]  # what rank 2 is known to wait is no part of it
    assert f"There this costs {percent(row['saving_pct'])}." in row["saving"]


def test_what_the_order_of_exchanges_costs_is_not_told_to_save_nothing(played: Played) -> None:
    """More microbatches would shorten the bubble of a pipeline; equal stages would not, as they are equal."""
    trace, frame, _ = played("balanced_pipeline_of_4")
    row = frame.set_index("topic").loc["mutual_waiting"]
    assert (row["section"], row["method"]) == ("unknown", "") and pd.isna(row["saving_ns"])
    assert "the order of what they exchange" in row["saving"] and "microbatches" in row["suggestion"]
    assert "saves nothing" not in first_lines(trace, frame)


def test_who_is_slowest_in_turn_is_told_by_what_is_waited(tmp_path: Path) -> None:
    """Rank 0 is late by little in most steps, each of the others by much in one."""
    late = [(0, 300), (1, 1700), (0, 300), (2, 1400), (0, 300), (3, 1400), (0, 300), (0, 300)]
    programs: dict[int, Program] = {rank: [] for rank in range(4)}
    for number, (culprit, us) in enumerate(late):
        for rank, program in programs.items():
            ns = 2 * MS + us * US * (rank == culprit)
            program += [Step(number), Compute("gemm", ns), AllReduce(tuple(programs)), Compute("gemm", MS)]
    row = overview(Play(programs).open(tmp_path)).set_index("topic").loc["mutual_waiting"]
    share = percent(100 * 1700 / sum(us for _, us in late))
    assert f"(rank 1 in 1 of 8, with {share} of it)" in row["text"]


@pytest.mark.parametrize(
    ("name", "grid", "told"), [("other_gemm", 64, False), ("gemm", 128, True), ("other_gemm", 128, True)]
)
def test_other_kernels_are_no_more_work(name: str, grid: int, told: bool, tmp_path: Path) -> None:
    """A rank runs the same work in a slower kernel: nothing says that it has more of it."""
    programs: dict[int, Program] = {}
    for rank in range(4):
        programs[rank] = []
        for step in range(4):
            layer = Compute(name, 7 * MS, grid) if rank == 1 else Compute("gemm", 5 * MS, 64)
            programs[rank] += [Step(step), layer, AllReduce((0, 1, 2, 3))]
    found = overview(Play(programs).open(tmp_path)).set_index("topic")
    assert ("imbalance" in found.index) == told
    assert found.loc["straggler", "rank"] == 1
    assert "larger than on other ranks, or run by other kernels" in found.loc["straggler", "text"]


def test_steps_that_wait_for_another_rank_are_not_told_as_slow(late: Late) -> None:
    """Iteration 5 is as long on all ranks, and rank 1 alone is why: the others only wait."""
    found = late(5)[1].set_index("topic")
    assert "slow_steps" not in found.index or found.loc["slow_steps", "rank"] == 1


@pytest.mark.parametrize("ranks", [2, 3, 4] if EVERY_CASE else [3])
def test_a_late_host_costs_what_the_others_wait_for_it(ranks: int, tmp_path: Path) -> None:
    """One of two as well: the other one shows how early a host can be."""
    programs = data_parallel(one(ranks, 1, Pace(idle_ns=2 * MS)))
    row = overview(Play(programs).open(tmp_path)).set_index("topic").loc["straggler"]
    assert row["rank"] == 1 and row["cost_ns"] == pytest.approx(4 * 2 * MS, rel=0.05)
    assert row["saving_pct"] == pytest.approx(row["share_pct"], rel=0.05)


def test_what_only_one_rank_does_once_is_no_usual_delay(tmp_path: Path) -> None:
    """A checkpoint in one step of rank 0: without it, the others wait for nothing."""
    programs = data_parallel([Pace()] * 4, steps=6)
    at = programs[0].index(Step(3)) + 1
    programs[0][at:at] = [operation for _ in range(20) for operation in (Idle(2 * MS), Copy(100 * US))]
    trace = Play(programs).open(tmp_path)
    frame = overview(trace)
    row = frame.set_index("topic").loc["straggler"]
    assert row["rank"] == 0 and row["iteration"] == 3
    assert row["saving_pct"] == pytest.approx(row["share_pct"], rel=0.1)
    said = story(trace, None, frame)
    assert said.headline.endswith("the late rank 0 in iteration 3")
    left = {part.lost_as: part.ns for part in said.parts if part.form == "rest"}
    assert (
        max(left, key=lambda name: left[name]) == "compute"
    )  # what is saved is waiting, and what rank 0 did


def test_the_reason_of_a_late_rank_is_in_the_headline(played: Played) -> None:
    trace, frame, _ = played("late_host")
    said = story(trace, None, frame)
    assert said.headline.endswith("the late rank 1 (CPU work that nothing names)")
    assert said.advice[0].todo.startswith("Mark what the loop does then")
    trace, frame, _ = played("data_parallel_slow_rank_1")
    slow = story(trace, None, frame)
    assert slow.headline.endswith("rank 1's slow kernels")


@pytest.mark.parametrize(("late", "on"), [((2, 3), "ranks 2 and 3"), ((0, 1, 2, 3), "")])
def test_the_ranks_of_a_slow_loader_are_named(late: tuple[int, ...], on: str, tmp_path: Path) -> None:
    """As those of one host are, in the words of the loss."""
    hosts = Hosts(4)
    for number in range(1, 7):
        with hosts.step(number):
            for rank, program in enumerate(hosts.ranks):
                program.load(4 * MS if rank in late else 10 * US)
            hosts.compute(20, 300 * US)
            hosts.all_reduce(300 * US)
            hosts.synchronise()
    trace = hosts.open(tmp_path)
    found = overview(trace).query("topic == 'data_stall'")
    assert not list(map(str, faults_of(trace, found)))
    text = found["text"].iloc[0]
    assert (f"Nearly all of it is on {on}." in text) if on else "Nearly all" not in text


def test_two_ranks_that_are_late_by_turns_are_both_named(tmp_path: Path) -> None:
    programs = late_in()
    for rank, first in ((1, 0), (2, 1)):
        programs[rank] = [
            each
            for operation in programs[rank]
            for each in (
                (operation, Idle(2 * MS))
                if isinstance(operation, Step) and operation.number % 2 == first
                else (operation,)
            )
        ]
    found = overview(Play(programs).open(tmp_path)).set_index("topic")
    assert "straggler" not in found.index
    assert "Nearly all of it is for ranks 1 and 2," in found.loc["mutual_waiting", "text"]


def test_hosts_that_are_late_together_are_not_repaired_as_ranks(tmp_path: Path) -> None:
    programs = data_parallel([Pace(idle_ns=2 * MS)] * 2)
    found = overview(Play(programs).open(tmp_path)).set_index("topic")
    assert "straggler" not in found.index and found.loc["unmarked_host", "part_of"] == ""
    assert found.loc["unmarked_host", "saving_pct"] > 20


def test_long_steps_of_a_rank_that_is_late_in_them_are_a_part_of_that(late: Late) -> None:
    found = late(0, 2, 4, 6)[1].set_index("topic")
    assert found.loc["bimodal_steps", "rank"] == 1
    assert found.loc["bimodal_steps", "part_of"] == "straggler"


def test_long_steps_of_a_rank_for_which_nobody_waits_are_not(tmp_path: Path) -> None:
    alone = [each for each in late_in(0, 2, 4, 6)[1] if not isinstance(each, AllReduce)]
    found = overview(Play({0: alone}).open(tmp_path)).set_index("topic")
    assert found.loc["bimodal_steps", "part_of"] == "host_stall"  # the same loss, of a known cause


def test_a_rank_that_is_late_before_its_step_is_timed(tmp_path: Path) -> None:
    """By the device's clock a step begins with its first work: only the replay sees why that comes late."""
    Play(late_in(0)).write(tmp_path)
    frame = overview(Trace.open(tmp_path, cache=False, clock="device")).set_index("topic")
    assert "mutual_waiting" not in frame.index
    row = frame.loc["straggler"]
    assert row["rank"] == 1 and "before the host launches more" in row["text"]
    assert "Nearly all of it is in iteration 0." in row["text"] and "longer" not in row["text"]
    assert "the host of rank 1" in row["suggestion"]


def ahead(play: Play, ranks: int) -> Play:
    """The same, with the launches of a step made as it begins, then a wait for all: no host is late."""
    for rank in range(ranks):
        calls = [event for event in play.file(rank).events if event["cat"] == "cuda_runtime"]
        for start, end in play.steps(rank):
            begin, stop = (BOOT_NS + time for time in (start, end))
            made = [each for each in calls if begin <= float(each["ts"].strip("@")) * 1000 < stop]
            for number, call in enumerate(made):
                at = begin + 1_000 + 20 * number
                call["ts"] = f"@{at // 1000}.{at % 1000:03d}@"
            waits_from = start + 2_000 + 20 * len(made)
            play.file(rank).add("cuda_runtime", "cudaDeviceSynchronize", waits_from, end - waits_from)
    return play


def test_what_ranks_wait_in_communication_is_not_saved_with_it(tmp_path: Path) -> None:
    """Each rank waits in most steps; whichever is replayed without communication would not wait either."""
    play = Play(longer_transfers(lengths(4, 8, grids=True), 400 * US))
    row = overview(ahead(play, 4).open(tmp_path)).set_index("topic").loc["exposed_communication"]
    assert row["saving_ns"] == pytest.approx(row["cost_ns"], rel=0.02)
    assert "the waiting for other ranks aside" in row["saving"]


@pytest.mark.parametrize("rank", range(4) if EVERY_CASE else [0, 2])
def test_whoever_arrives_last_in_a_pipeline_is_mostly_a_victim(rank: int, tmp_path: Path) -> None:
    """The near miss that following avoids: only one in two or three waits ends at the last to arrive."""
    parts = waits(Play(pipeline(one(4, rank, Pace(3.0)))).open(tmp_path))
    last = parts.groupby("last")["wait_ns"].sum()
    culprit = parts.groupby("culprit")["wait_ns"].sum()
    assert culprit.idxmax() == rank
    assert last.get(rank, 0) < 0.8 * culprit[rank]
    assert parts["culprit"].ge(0).all()


@pytest.mark.parametrize(("steps", "first"), [(2, True), (3, False)])
def test_one_or_two_steps_do_not_tell_who_is_always_slow(steps: int, first: bool, tmp_path: Path) -> None:
    for topic, pace in (("slow_kernels", SLOW), ("imbalance", MORE)):
        folder = tmp_path / topic
        folder.mkdir()
        frame = overview(Play(data_parallel(one(4, 2, pace), steps=steps)).open(folder)).set_index("topic")
        for suggestion in frame.loc[["straggler", topic], "suggestion"]:
            assert suggestion.startswith("Record and mark more steps first") == first


def test_ranks_that_are_there_are_to_be_selected_and_not_recorded(played: Played) -> None:
    trace, _, _ = played("data_parallel_of_2_slow")
    advice = overview(trace, Scope(ranks=(0,))).set_index("topic")["suggestion"]
    assert advice["exposed_communication"].startswith("Select all ranks first")
    assert "Record all ranks" not in advice["exposed_communication"]


# -- sentences about ranks are found where false, and shown by what they point to

TOPICS = {
    "straggler", "slow_kernels", "imbalance", "mutual_waiting", "exposed_communication", "pipeline_bubble",
    "memory_copies", "late_collective", "tiny_collectives", "slowed_by_communication",
}  # fmt: skip


def said_of(frame: pd.DataFrame) -> pd.DataFrame:
    return frame[frame["topic"].isin(TOPICS)].reset_index(drop=True)


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
def test_a_false_sentence_is_found(name: str, measure: str, lie: Lie, played: Played) -> None:
    trace, frame, job = played(name)
    frame = said_of(frame)
    changed = frame.copy()
    found = False
    for at, text in enumerate(frame["claims"]):
        claims = json.loads(text or "[]")
        found |= any(claim["measure"] == measure for claim in claims)
        told = [lie(claim) if claim["measure"] == measure else claim for claim in claims]
        changed.loc[at, "claims"] = json.dumps(told)
    assert found
    assert measure in {fault.measure for fault in faults_of(trace, changed, job=job)}


def test_the_wrong_steps_are_found(late: Late) -> None:
    trace, frame = late(5)
    frame, job = said_of(frame), Job(trace)
    assert not list(faults_of(trace, frame, job=job))
    frame["claims"] = frame["claims"].str.replace('"value": [5]', '"value": [4]')
    assert {fault.measure for fault in faults_of(trace, frame, job=job)} == {"steps_with_nearly_all_waiting"}


LATE_RANKS = {
    "data_parallel_slow_rank_1": {1},
    "late_host": {1},
    "two_slow_ranks_of_eight": {3, 6},
    "pipeline_slow_stage_2": {2},
}


@pytest.mark.parametrize("name", LATE_RANKS)
def test_others_communicate_while_they_wait_for_the_rank_that_is_shown(name: str, played: Played) -> None:
    _, frame, job = played(name)
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


def test_what_is_shown_of_communication_is_exposed_and_no_waiting(played: Played) -> None:
    name = "two_ranks_with_a_slow_link"
    _, frame, job = played(name)
    row = frame.set_index("topic").loc["exposed_communication"]
    rank, span = job.ranks[int(row["event_rank"])], (int(row["start_ns"]), int(row["end_ns"]))
    assert overlap(exposed(rank), span) == [span]
    busy = [union(each.window for each in communication(other)) for other in job.ranks.values()]
    assert sum(length(overlap(of, span)) > 0 for of in busy) > 1


def test_one_loss_is_one_finding(played: Played) -> None:
    """Slow kernels make a rank late: a part of the waiting for it, not a loss beside that."""
    for name, reason in (
        ("data_parallel_slow_rank_1", "slow_kernels"),
        ("data_parallel_more_launches", "imbalance"),
    ):
        frame = played(name)[1].set_index("topic")
        assert frame.loc[reason, "part_of"] == "straggler"
        assert frame.loc["straggler", "part_of"] == ""
        assert "exposed_communication" not in frame.index  # that is waiting, and has a finding
    alone = played("slow_kernels_without_communication")[1].set_index("topic")
    assert alone.loc["slow_kernels", "part_of"] == ""


@pytest.mark.parametrize(("rank", "part_of"), [(2, "straggler"), (1, ""), (None, "")])
def test_what_a_late_rank_alone_loses_is_a_part_of_the_waiting_for_it(
    rank: int | None, part_of: str, played: Played
) -> None:
    """What a victim loses beside that, or all ranks do, is another loss."""
    name = "pipeline_stage_that_copies"
    inputs = Inputs(played(name)[0], Scope())
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
    frame = overview(trace)
    row = frame.set_index("topic").loc["straggler"]
    assert row["rank"] == 1 and row["share_pct"] > 10
    assert "before the recording" not in row["text"]
    assert not list(faults_of(trace, said_of(frame)))


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


@pytest.mark.parametrize("name", ["sequence_lengths", "pipeline_slow_stage_2"])
def test_no_rank_stands_out_only_where_none_does(name: str, played: Played) -> None:
    text = " ".join(played(name)[1]["text"])
    assert "No rank stands out" not in text


def test_ranks_that_are_slow_together_are_named_and_not_in_turn(played: Played) -> None:
    trace, frame, _ = played("half_of_the_ranks_are_slow")
    row = frame.set_index("topic").loc["mutual_waiting"]
    assert row["title"].startswith("Waiting for ranks ")
    assert "in turn" not in first_lines(trace, frame)


def test_marked_steps_hold_the_wait_for_a_late_rank(tmp_path: Path) -> None:
    """The near miss of the rank that begins later: the step holds the time before its first work."""
    programs: dict[int, Program] = {
        rank: [each for step in range(4) for each in (Step(step), *body)]
        for rank, body in begins_later(5 * MS).items()
    }
    row = overview(Play(programs).open(tmp_path)).set_index("topic").loc["straggler"]
    assert "is idle longer" in row["text"] and "begins to work" not in row["text"]


@pytest.mark.parametrize(("kind", "own_ns"), [(1, [90]), (0, [])])
def test_what_is_usual_to_wait_is_that_of_steps_of_one_kind(kind: int, own_ns: list[int]) -> None:
    """Of steps that wait for 10 ns and few that wait for 100, one takes 100 ns longer and waits for 110."""
    steps = pd.DataFrame({"rank": 0, "iteration": range(12), "kind": [0] * 8 + [1] * 4})
    steps.loc[11, "kind"] = kind
    waited = pd.DataFrame({"rank": 0, "iteration": range(12), "wait_ns": [10] * 8 + [100] * 3 + [110]})
    late = pd.DataFrame({"rank": [0], "iteration": [11], "excess_ns": [100]})
    inputs = cast("Inputs", SimpleNamespace(communicates=True, waits=waited, steps=steps))
    assert without_waits(inputs, late)["excess_ns"].tolist() == own_ns


# -- `slowdown` names the same ranks, and what they cost

SLOWER, HAS_MORE, HOST = "same kernels slower", "more work", "host late"
NAMED = {
    **{f"pipeline_slow_stage_{rank}": ([str(rank)], SLOWER) for rank in range(4)},
    **{f"pipeline_stage_with_more_layers_{rank}": ([str(rank)], HAS_MORE) for rank in range(4)},
    **{f"pipeline_late_host_{rank}": ([str(rank)], HOST) for rank in range(4)},
    **{f"data_parallel_slow_rank_{rank}": ([str(rank)], SLOWER) for rank in range(4)},
    **{f"replicas_of_a_pipeline_slow_rank_{rank}": ([str(rank)], SLOWER) for rank in range(4)},
    "pipeline_stage_that_copies": (["2"], "copies"),
    "pipeline_groups_of_two_tell_partners": (["1"], SLOWER),
    "pipeline_of_2_slow_first": (["0"], SLOWER),
    "pipeline_of_2_slow_last": (["1"], SLOWER),
    "pipeline_of_12_slow_stage": (["3"], SLOWER),
    "two_slow_ranks_of_eight": (["3", "6"], SLOWER),
    "data_parallel_of_2_slow": (["1"], SLOWER),
    "data_parallel_more_launches": (["1"], HAS_MORE),
    "data_parallel_larger_grids": (["3"], HAS_MORE),
    "one_kernel_name_is_slow": (["2"], SLOWER),
    "two_ranks_with_a_slow_link": (["0", "1"], "slow link"),
    "late_host": (["1"], HOST),
    "slow_in_two_of_five_steps": (["1"], SLOWER),
    "clocks_apart": (["2"], SLOWER),
    "clocks_far_apart_in_collectives": (["1"], SLOWER),
    "clocks_that_run_apart": (["1"], SLOWER),
    "victim_is_not_recorded": (["1"], SLOWER),
}
NOBODY = {
    **dict.fromkeys(("balanced_pipeline_of_4", "balanced_pipeline_of_3", "balanced_pipeline_of_2"), "none"),
    **dict.fromkeys(("equal_ranks_2", "equal_ranks_4", "equal_ranks_8", "slower_by_too_little"), "none"),
    "sequence_lengths": "no single rank: sequence imbalance",
    "sequence_lengths_in_equal_grids": "no single rank: sequence imbalance",
    "sequence_lengths_of_eight_ranks": "no single rank: sequence imbalance",
    "culprit_is_not_recorded_in_a_pipeline": "a rank that was not recorded",
    "culprit_is_not_recorded_in_data_parallel": "unknown",
    "unknown_partners": "unknown",
}
SAYS = {
    "data_parallel_slow_rank_1": (
        "less. Same kernels slower: rank 1. Its repair wins",
        True,
    ),
    "equal_ranks_4": ("No straggler: a step takes hardly longer than with all", False),
    "sequence_lengths": ("No single rank: sequence imbalance: no few of the", False),
}


@pytest.mark.parametrize("name", unlike(NAMED))
def test_the_slowdown_has_its_culprit_and_its_cause(name: str, played: Played) -> None:
    ranks, cause = NAMED[name]
    frame = slowdown(played(name)[0])
    assert culprits(frame) == [("rank", rank, cause) for rank in ranks]
    job = job_row(frame)
    assert job["cause"] == cause
    assert job["slowdown"] > 1.02
    assert all(f"{rank}" in job["evidence"] for rank in ranks)


@pytest.mark.parametrize(("stage", "ranks"), [(0, "0, 1"), (1, "2, 3")])
def test_a_stage_of_tensor_parallel_ranks(stage: int, ranks: str, played: Played) -> None:
    frame = slowdown(played(f"tensor_parallel_slow_{('first', 'last')[stage]}_stage")[0])
    assert culprits(frame) == [("stage", str(stage), HAS_MORE)]
    assert f"ranks {ranks}" in job_row(frame)["evidence"]


@pytest.mark.parametrize("name", unlike(NOBODY))
def test_the_slowdown_has_no_culprit(name: str, played: Played) -> None:
    frame = slowdown(played(name)[0])
    assert culprits(frame) == []
    assert job_row(frame)["cause"] == NOBODY[name]


@pytest.mark.parametrize("name", ["single_rank", "slow_kernels_without_communication"])
def test_nothing_to_compare(name: str, played: Played) -> None:
    with pytest.raises(MissingDataError):
        slowdown(played(name)[0])


@pytest.mark.parametrize(
    ("slow", "equal"), [("pipeline_late_host_1", "balanced_pipeline_of_4"), ("late_host", "equal_ranks_4")]
)
def test_a_late_host_costs_what_the_job_without_it_gains(slow: str, equal: str, played: Played) -> None:
    """Waits for the host are ideally those of the others, so the ideal job is the one without the fault."""
    late, without = (job_row(slowdown(played(name)[0])) for name in (slow, equal))
    assert late["cost_ns"] == pytest.approx(late["time_ns"] - without["time_ns"], rel=0.02)


@pytest.mark.parametrize("times", [1.1, 2.0])
def test_the_ideal_is_an_even_split(times: float, tmp_path: Path) -> None:
    """One of four computes `times` as long: the mean is (3 + times) / 4, and all others wait for it."""
    job = job_row(slowdown(Play(data_parallel(one(4, 1, Pace(times)))).open(tmp_path)))
    computing, transfer = 4_000_000, 100_000
    expected = (computing * times + transfer) / (computing * (3 + times) / 4 + transfer)
    assert job["slowdown"] == pytest.approx(expected, rel=0.005)


def test_clocks_change_nothing(played: Played) -> None:
    same, apart = (slowdown(played(name)[0]) for name in ("pipeline_slow_stage_2", "clocks_apart"))
    pd.testing.assert_frame_equal(same, apart)


@pytest.mark.parametrize("name", SAYS)
def test_the_sentence_and_the_bars(name: str, played: Played) -> None:
    frame = slowdown(played(name)[0])
    words, named = SAYS[name]
    assert words in ANALYSES["slowdown"].sentence(frame)
    bars = marks(ANALYSES["slowdown"].chart, frame[frame["scope"].isin(("job", "rank"))]).table
    notes = dict(zip(bars["label"], bars["note"], strict=True))
    assert any(label.startswith("rank") and note != "" for label, note in notes.items()) is named


def test_rows_of_one_scope(played: Played) -> None:
    trace = played("data_parallel_slow_rank_1")[0]
    whole, ranks = slowdown(trace), slowdown(trace, by="rank")
    kept = whole[whole["scope"].isin(("job", "rank"))].reset_index(drop=True)
    pd.testing.assert_frame_equal(ranks, kept)
    assert ranks["key"].tolist() == ["all", "0", "1", "2", "3"]
    with pytest.raises(ValueError, match="by must be one of all, operation, rank"):
        slowdown(trace, by="stages")  # type: ignore[arg-type]


def test_the_straggler_of_the_example() -> None:
    frame = slowdown(examples.load("ddp_4ranks"))
    assert culprits(frame) == [("rank", "2", SLOWER)]
