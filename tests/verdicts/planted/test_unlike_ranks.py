"""What holds for one rank is not said of all: where hosts are late, pauses, records that one rank lacks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hta_widgets.analysis import slowdown
from hta_widgets.analysis.findings.overview import overview
from hta_widgets.analysis.findings.story import story
from hta_widgets.trace.model import Trace
from tests.claims.checking import faults_of
from tests.verdicts.planted.host_program import US
from tests.verdicts.planted.several_hosts import ALL_REDUCE, Hosts

AUGMENT = "train.py(30): augment"
Host = Callable[[Hosts, int], None]


def hosts(does: Host, ranks: int = 4, steps: int = 8) -> Hosts:
    """Steps of 1 ms on the device, after what the hosts do first; they meet and wait for their devices."""
    found = Hosts(ranks)
    for number in range(1, steps + 1):
        with found.step(number):
            does(found, number)
            found.compute(8, 100 * US)
            found.all_reduce(100 * US)
            found.synchronise()
    return found


def opened(found: Hosts, folder: Path) -> Trace:
    folder.mkdir(exist_ok=True)
    return found.open(folder)


def told(trace: Trace) -> dict[str, Any]:
    frame = overview(trace)
    assert not list(map(str, faults_of(trace, frame)))
    return {row["topic"]: row for row in frame.to_dict("records")}


def augments(*ranks: int) -> Host:
    def does(found: Hosts, number: int) -> None:
        for program in (found.ranks[rank] for rank in ranks):
            with program.inside("python_function", AUGMENT):
                program.silence(400 * US)
        for program in found.ranks:
            program.silence(200 * US)

    return does


def collects(which: Callable[[int], list[int]]) -> Host:
    def does(found: Hosts, number: int) -> None:
        for program in (found.ranks[rank] for rank in which(number)):
            with program.inside("python_function", "Python GC"):
                program.silence(600 * US)

    return does


def test_where_one_host_is_late_is_said_of_its_rank(tmp_path: Path) -> None:
    text = told(opened(hosts(augments(2)), tmp_path))["idle_host"]["text"]
    assert " On rank 2, " in text and f"% of it lies in {AUGMENT}" in text
    alone = told(opened(hosts(augments(0), ranks=1), tmp_path / "alone"))["idle_host"]["text"]
    assert "On rank" not in alone and f"% of it lies in {AUGMENT}" in alone


@pytest.mark.parametrize(
    ("which", "others"),
    [
        (lambda number: [number % 4], "On ranks 1, 2 and 3 it is at least half as much."),
        (lambda number: [1] if number % 4 == 1 else [], ""),
    ],
    ids=["in turn", "one rank"],
)
def test_pauses_of_other_ranks_are_told(
    which: Callable[[int], list[int]], others: str, tmp_path: Path
) -> None:
    text = told(opened(hosts(collects(which)), tmp_path))["host_stall"]["text"]
    assert "2 pauses with up to " in text and text.endswith(f" of idle time each.{others and ' ' + others}")


def test_a_rank_that_never_waits_costs_the_others_no_finding(tmp_path: Path) -> None:
    def does(found: Hosts, number: int) -> None:
        for program in found.ranks[:3]:
            program.operator("aten::mm", 10 * US)
            program.launch(100 * US)
            with program.inside("cpu_op", "aten::item"):
                program.synchronise()
                program.silence(200 * US)

    frame = overview(opened(hosts(does), tmp_path))
    assert "sync_calls" in set(frame["topic"]) and not frame["text"].str.contains("failed").any()


def test_collecting_garbage_is_no_stop_of_another_kind(tmp_path: Path) -> None:
    def does(found: Hosts, number: int) -> None:
        if number == 3:
            with found.ranks[0].inside("python_function", "Python GC"):
                found.ranks[0].silence(40_000 * US)
        if number == 6:
            found.ranks[1].silence(30_000 * US)

    row = told(opened(hosts(does, ranks=2, steps=10), tmp_path))["host_stall"]
    assert "garbage collector runs" in row["text"] and "at least half as much" not in row["text"]


def test_hosts_that_pause_in_turn_are_no_work_that_varies(tmp_path: Path) -> None:
    job = slowdown(opened(hosts(collects(lambda number: [number % 4])), tmp_path)).iloc[0]
    assert job["cause"] == "no single rank" and job["evidence"].endswith("; hosts are late now and then")


def lacking(found: Hosts, rank: int, step: int) -> None:
    """The profiler lost what the device of a rank did in a step."""
    program = found.ranks[rank]
    (mark,) = (each for each in program.events if each["name"] == f"ProfilerStep#{step}")
    begin = float(mark["ts"])  # us
    end = begin + mark["dur"] / 1000
    program.events = [
        each for each in program.events if each["cat"] != "kernel" or not begin <= float(each["ts"]) < end
    ]


@pytest.mark.parametrize("step", [1, 4, 8])
def test_a_step_that_one_rank_lost_is_left_out_on_all(step: int, tmp_path: Path) -> None:
    whole, lost = hosts(augments(), ranks=2), hosts(augments(), ranks=2)
    lacking(lost, 1, step)
    expected, trace = story(opened(whole, tmp_path / "whole")), opened(lost, tmp_path / "lost")
    found = story(trace)
    assert found.headline == expected.headline and "unknown" not in found.headline
    assert "left out of what is said of steps" in " ".join(trace.trust.notes)
    assert told(trace)["idle_host"]["share_pct"] == pytest.approx(
        told(opened(whole, tmp_path / "again"))["idle_host"]["share_pct"], abs=0.5
    )
    job = slowdown(trace).iloc[0]
    assert job["cause"] == "none" and job["slowdown"] == pytest.approx(1.0, abs=0.005)


def test_ranks_that_lost_other_steps_are_compared_in_the_rest(tmp_path: Path) -> None:
    found = hosts(augments(), ranks=2, steps=3)
    lacking(found, 0, 1)
    lacking(found, 1, 2)
    frame = slowdown(opened(found, tmp_path))  # one step is whole on both
    assert frame.loc[frame["scope"] == "iteration", "key"].tolist() == ["3"]


def test_where_each_step_is_lost_on_a_rank_nothing_is_judged(tmp_path: Path) -> None:
    found = hosts(augments(), ranks=2, steps=4)
    for step in range(1, 5):
        lacking(found, step % 2, step)
    assert "where it goes is unknown" in story(opened(found, tmp_path)).headline


def sends(slower: int, elements: int, others: int) -> Hosts:
    """Every fourth all-reduce takes so many times as long, and sends so many elements."""
    found = Hosts(2)
    for number in range(1, 9):
        with found.step(number):
            found.compute(8, 100 * US)
            found.all_reduce((slower if number % 4 == 0 else 1) * 100 * US)
            sent = elements if number % 4 == 0 else others
            for program in found.ranks:
                message = [each for each in program.events if each["name"] == ALL_REDUCE][-1]["args"]
                message |= {"In msg nelems": sent, "Out msg nelems": sent}
            found.synchronise()
    return found


@pytest.mark.parametrize(
    ("elements", "others", "cause"),
    [(4 << 20, 1 << 20, "none"), (1 << 20, 1 << 20, "slow link"), (741_475, 741_435, "slow link")],
    ids=["larger", "as large", "hardly larger"],
)
def test_what_takes_longer_for_more_bytes_is_no_slow_link(
    elements: int, others: int, cause: str, tmp_path: Path
) -> None:
    job = slowdown(opened(sends(5, elements, others), tmp_path)).iloc[0]
    assert job["cause"] == cause
    assert (job["slowdown"] < 1.002) == (cause == "none")
