"""Programs whose kernels take longer from step to step: by a falling clock, by data, or by chance."""

from __future__ import annotations

from pathlib import Path

import pytest

from hta_widgets.analysis.findings import CHECKED, overview
from hta_widgets.analysis.findings.story import story
from tests.claims.checking import faults_of
from tests.verdicts.planted.devices import operator
from tests.verdicts.planted.host_program import US, Program
from tests.verdicts.planted.several_hosts import Hosts

Times = list[dict[str, int]]


def steps(times: Times, marked: bool = True) -> Program:
    """Each step runs five kernels of each name, of so many us, far ahead."""
    program = Program()
    for number, kernels in enumerate(times, 1):
        if marked:
            with program.step(number):
                _work(program, kernels)
        else:
            _work(program, kernels)
    return program


def _work(program: Program, kernels: dict[str, int]) -> None:
    for name, us in kernels.items():
        for _ in range(5):
            program.launch(us * US, name)
    program.synchronise()


FALLING: Times = [{"gemm": 1_000 + 20 * step, "add": 200 + 4 * step} for step in range(8)]
BY_DATA: Times = [{"gemm": 1_000, "gather": 200 + 40 * step} for step in range(8)]
BY_CHANCE: Times = [{"gemm": us, "add": us // 5} for us in (1_000, 1_100, 1_020, 1_120, 1_010, 1_150)]
OTHER_WORK: Times = [{"gemm": 1_000 + 20 * step, f"add_{step}": 1_500} for step in range(8)]


def told(folder: Path, program: Program) -> dict[str, object] | None:
    frame = overview(program.open(folder))
    rows = frame[frame["topic"] == "clock_drift"].to_dict("records")
    return rows[0] if rows else None


def test_a_falling_clock(tmp_path: Path):
    row = told(tmp_path, steps(FALLING))
    assert row
    # by hand: 100 + 20 us more in each step than in the one before, 28 steps' worth of it in all
    assert row["cost_ns"] == 28 * 120 * US
    whole = [sum(5 * us for us in kernels.values()) for kernels in FALLING]
    assert row["share_pct"] == pytest.approx(100 * (28 * 120) / sum(whole), abs=0.1)
    assert "Over 8 steps the same kernels come to take 14.0 % longer" in str(row["text"])
    assert "p < 0.01 that it is chance" in str(row["text"])
    assert (row["section"], row["method"]) == ("saves", "replay")
    assert row["saving_ns"] == pytest.approx(28 * 120 * US, rel=0.01)


@pytest.mark.parametrize("times", [BY_DATA, BY_CHANCE, OTHER_WORK])
def test_what_is_no_clock(times: Times, tmp_path: Path):
    assert told(tmp_path, steps(times)) is None


@pytest.mark.parametrize(("times", "marked"), [(FALLING[:5], True), (FALLING, False)])
def test_too_little_to_judge_by_is_not_called_nothing(times: Times, marked: bool, tmp_path: Path):
    frame = overview(steps(times, marked).open(tmp_path))
    assert "clock_drift" not in set(frame["topic"])
    assert not frame.loc[frame["severity"] == CHECKED, "checked"].str.contains("clock_drift").any()


def test_a_falling_clock_is_looked_for_in_six_steps(tmp_path: Path):
    frame = overview(steps(BY_CHANCE).open(tmp_path))
    assert frame.loc[frame["severity"] == CHECKED, "checked"].str.contains("clock_drift").all()


@pytest.mark.parametrize("grows", [True, False])
def test_kernels_of_larger_inputs_are_not_the_same(grows: bool, tmp_path: Path):
    """Though they run in as many blocks, one for each multiprocessor."""
    program = Program()
    for number, kernels in enumerate(FALLING, 1):
        with (
            program.step(number),
            operator(program, "aten::mm", (1024 + 64 * number * grows, 512), (512, 512)),
        ):
            _work(program, kernels)
    assert (told(tmp_path, program) is None) is grows


@pytest.mark.parametrize("larger", [True, False])
def test_a_rank_of_larger_inputs_is_not_slow(larger: bool, tmp_path: Path):
    hosts = Hosts(4)
    for number in range(1, 6):
        with hosts.step(number):
            for rank, program in enumerate(hosts.ranks):
                for _ in range(20):
                    with operator(program, "aten::mm", (1024 + 512 * larger * (rank == 2), 512), (512, 512)):
                        program.launch((150 if rank == 2 else 100) * US)
            hosts.all_reduce(100 * US)
            hosts.synchronise()
    trace = hosts.open(tmp_path)
    frame = overview(trace)
    assert not list(faults_of(trace, frame))
    topics = set(frame["topic"])
    assert ("slow_kernels" in topics) is not larger and ("imbalance" in topics) is larger
    cause = f"rank 2's {'extra work' if larger else 'slow kernels'}"
    assert cause in story(trace, frame=frame).headline
