"""Steps of two lengths, most of which are long."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from hta_widgets.analysis.findings import overview
from tests.analysis.kineto_file import job
from tests.claims.checking import faults_of
from tests.verdicts.planted.host_program import US, Program


def steps(*lengths: int) -> Program:
    """The host takes so long (100 us) in each step before it launches."""
    program = Program()
    for number, length in enumerate(lengths, start=1):
        with program.step(number):
            program.operator("aten::prepare", length * 100 * US)
            for _ in range(20):
                program.launch(100 * US)
            program.synchronise()
    return program


def judged(program: Program, folder: Path) -> pd.DataFrame:
    trace = program.open(folder)
    found = overview(trace)
    assert not list(map(str, faults_of(trace, found[found["topic"] == "bimodal_steps"])))
    return found.set_index("topic")


def test_most_steps_are_long(tmp_path: Path) -> None:
    row = judged(steps(30, 2, 31, 30, 2, 29, 30, 30, 2, 31, 30, 2), tmp_path).loc["bimodal_steps"]
    assert "8 of 12 take some 5.0" in row["text"] and "the others 2.23 ms" in row["text"]
    assert "The device is idle 2." in row["text"]
    assert row["part_of"] == "idle_host"  # which says why
    assert row["share_pct"] == pytest.approx(100 * 8 * 2.8 / (8 * 5.04 + 4 * 2.24), abs=1.5)


def test_regular_short_steps_are_told_as_regular(tmp_path: Path) -> None:
    row = judged(steps(*[30, 30, 2] * 4), tmp_path).loc["bimodal_steps"]
    assert "A short one comes every 3 steps" in row["suggestion"]


@pytest.mark.parametrize(
    ("lengths", "since"), [([2, 2, 2, 30, 30, 30, 30], 4), ([30, 30, 2, 2, 2, 30, 30], 0)]
)
def test_steps_that_are_long_from_one_on(lengths: list[int], since: int, tmp_path: Path) -> None:
    text = judged(steps(*lengths), tmp_path).loc["bimodal_steps", "text"]
    assert (f"(each from iteration {since} on)" in text) is bool(since)
    assert ("(each from" in text) is bool(since)


@pytest.mark.parametrize(
    ("long", "told"), [([30, 30, 30, 30, 50], True), ([30, 30, 30, 50], False), ([30, 30, 30, 30], True)]
)
def test_of_five_steps_and_more_one_may_be_longer_still(long: list[int], told: bool, tmp_path: Path) -> None:
    """Of fewer, one that is far from the others tells that there are no two lengths."""
    assert ("bimodal_steps" in judged(steps(2, 2, 2, *long), tmp_path).index) is told


def test_kernels_that_slow_down_at_once_are_a_matter_of_clocks(tmp_path: Path) -> None:
    program = Program()
    for number in range(1, 9):
        with program.step(number):
            for _ in range(40):
                program.launch((100 if number < 4 else 150) * US)
            program.synchronise()
    row = judged(program, tmp_path).loc["bimodal_steps"]
    assert row["suggestion"].startswith("Watch clocks, power, temperature")
    assert "with no more kernels" in row["text"] and row["lost_as"] == "compute"


@pytest.mark.parametrize(
    ("slow", "who", "rank"),
    [((0, 1), "ranks 0 and 1", None), ((1,), "rank 1", 1)],
)
def test_ranks_that_slow_down_together_are_named_together(
    slow: tuple[int, ...], who: str, rank: int | None, tmp_path: Path
) -> None:
    programs = [Program() for _ in range(2)]
    for at, program in enumerate(programs):
        for number in range(1, 9):
            with program.step(number):
                for _ in range(40):
                    program.launch((150 if number >= 4 and at in slow else 100) * US)
                program.synchronise()
    trace = job(tmp_path, *(program.events for program in programs))
    frame = overview(trace)
    assert not list(map(str, faults_of(trace, frame)))
    row = frame.set_index("topic").loc["bimodal_steps"]
    assert row["text"].startswith(
        f"Steps take two lengths on {who}: 5 of 8 (each from iteration 4 on) take some 6.0"
    )
    assert row["rank"] is pd.NA if rank is None else row["rank"] == rank


@pytest.mark.parametrize(
    "lengths",
    [
        (30, 30, 2, 30, 30, 30, 30, 30, 30),  # one short step
        (2, 2, 2, 2, 2, 2, 30, 2, 2, 30),  # few long ones: these are unusual
        (2, 6, 10, 14, 18, 22, 26, 30, 34),  # all lengths
        (30, 29, 30, 28, 29, 30, 28, 29),  # hardly longer
        (30, 2, 30, 2),  # too few to tell
    ],
)
def test_other_steps_are_of_no_two_lengths(lengths: tuple[int, ...], tmp_path: Path) -> None:
    assert "bimodal_steps" not in judged(steps(*lengths), tmp_path).index


def test_without_marked_steps_nothing_is_said(tmp_path: Path) -> None:
    program = steps(*[30, 30, 2] * 4)
    program.events = [event for event in program.events if not event["name"].startswith("ProfilerStep")]
    assert "bimodal_steps" not in judged(program, tmp_path).index
