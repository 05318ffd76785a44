"""Programs of the host whose operators now and then take far longer than they compute."""

from __future__ import annotations

import random
from collections.abc import Collection
from pathlib import Path

import pytest

from hta_widgets.analysis.findings import overview
from tests.claims.checking import faults_of
from tests.first_lines import first_lines
from tests.verdicts.planted.host_program import MS, US, Program

NAMES = ("aten::addmm", "aten::add", "aten::mul", "aten::sum", "aten::mm")
STEPS = range(1, 9)


def waiting(
    steps: Collection[int] = STEPS,
    names: Collection[str] = NAMES,
    ns: int = 15 * MS,
    recorded: Collection[int] = STEPS,
    times: int = 1,
    kernel: int = 0,
) -> Program:
    """Steps of 200 operators of 20 µs, five of which wait for `ns` in some steps: never the same two.

    Each may launch a kernel that takes so long.
    """
    chance, program = random.Random(1), Program()
    for number in recorded:
        with program.step(number):
            slow = {(name, chance.randrange(40)) for name in names} if number in steps else set()
            for place in range(40):
                for name in NAMES:
                    with program.inside("cpu_op", name):
                        program.silence(20 * US * (times if number in steps else 1))
                        program.operator("aten::resolve_conj", US)
                        program.silence(ns if (name, place) in slow else 0)
                        if kernel:
                            program.launch(kernel)
            if kernel:
                program.synchronise()
    return program


def test_calls_that_wait_now_and_then(tmp_path: Path) -> None:
    trace = waiting().open(tmp_path)
    frame = overview(trace)
    assert not list(map(str, faults_of(trace, frame)))
    row = frame.set_index("topic").loc["host_contention"]
    assert row["cost_ns"] == 8 * 5 * (15 * MS + 21 * US)
    assert "OMP_NUM_THREADS" in row["suggestion"] and row["part_of"] == ""
    assert "due to threads that wait for cores" in first_lines(trace, frame)


@pytest.mark.parametrize(
    "program", [waiting(names=NAMES[:3]), waiting(recorded=STEPS[:4])], ids=["three operators", "four steps"]
)
def test_the_least_that_tells_of_waiting(tmp_path: Path, program: Program) -> None:
    assert "host_contention" in set(overview(program.open(tmp_path))["topic"])


@pytest.mark.parametrize(
    "program",
    [
        waiting(names=NAMES[:2]),  # for reasons of their own
        waiting(steps=(1, 2)),  # first uses
        waiting(names=("aten::mm",)),  # one operator, for a reason of its own
        waiting(ns=500 * US),
        waiting(ns=1100 * US),  # 57 % of the time
        waiting(names=(), times=60, steps=(1, 2, 5, 6, 8)),  # larger inputs
        waiting(recorded=STEPS[:3]),
    ],
    ids=["two operators", "first steps", "one operator", "short", "little", "larger inputs", "few steps"],
)
def test_what_else_makes_calls_long(tmp_path: Path, program: Program) -> None:
    assert "host_contention" not in set(overview(program.open(tmp_path))["topic"])


def test_devices_wait_for_hosts_whose_calls_wait(tmp_path: Path) -> None:
    trace = waiting(ns=3 * MS, kernel=20 * US).open(tmp_path)
    frame = overview(trace)
    assert not list(map(str, faults_of(trace, frame)))
    row = frame.set_index("topic").loc["without_core"]
    assert row["cost_ns"] == pytest.approx(8 * 5 * 3 * MS, rel=0.03)
    assert row["part_of"] == "" and "taskset" in row["suggestion"]
    assert frame.set_index("topic").loc["idle_host", "part_of"] == "without_core"


@pytest.mark.parametrize(
    "program",
    [
        waiting(steps=(1, 2), kernel=20 * US),
        waiting(names=("aten::mm",), ns=3 * MS, kernel=20 * US),
        waiting(ns=3 * MS, kernel=1000 * US),  # the device has work meanwhile
        waiting(names=(), times=60, steps=(1, 2, 5, 6, 8), kernel=20 * US),
        waiting(ns=3 * MS, recorded=STEPS[:3], kernel=20 * US),
    ],
    ids=["first steps", "one operator", "hidden", "larger inputs", "few steps"],
)
def test_what_else_makes_hosts_late(tmp_path: Path, program: Program) -> None:
    assert "without_core" not in set(overview(program.open(tmp_path))["topic"])


def test_longer_sequences(tmp_path: Path) -> None:
    """Attention takes far longer then, other operators do not."""
    program = Program()
    for number in STEPS:
        with program.step(number):
            for name in ("aten::bmm", "aten::_softmax", "aten::dropout"):
                for _ in range(4):
                    program.operator(name, 15 * MS if number % 3 else MS)
            for _ in range(200):
                program.operator("aten::view", 2 * US)
    assert "host_contention" not in set(overview(program.open(tmp_path))["topic"])


def test_operators_that_differ_in_number_are_not_compared(tmp_path: Path) -> None:
    program = Program()
    for number in STEPS:
        with program.step(number):
            for name in NAMES:
                for place in range(40 + number):
                    program.operator(name, 15 * MS if place == number else 20 * US)
    assert "host_contention" not in set(overview(program.open(tmp_path))["topic"])
