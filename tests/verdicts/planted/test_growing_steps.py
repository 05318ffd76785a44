"""Programs whose steps get longer, since each does more or for other reasons, and whose first are longer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hta_widgets.analysis.findings import overview
from tests.claims.checking import faults_of
from tests.verdicts.planted.devices import operator
from tests.verdicts.planted.host_program import MS, US, Program

Body = Callable[[Program, int], None]


def program_of(body: Body, steps: int = 8) -> Program:
    program = Program()
    for number in range(1, steps + 1):
        with program.step(number):
            body(program, number)
            program.synchronise()
    return program


def launch(program: Program, count: int, us: int = 100, blocks: int = 64) -> None:
    for _ in range(count):
        program.launch(us * US, "gemm", grid=[blocks, 1, 1], block=[128, 1, 1])


def more_kernels(program: Program, number: int) -> None:
    launch(program, 40 + 4 * number)


def larger_kernels(program: Program, number: int) -> None:
    launch(program, 40, 100 + 10 * number, 64 + 6 * number)


def larger_inputs(program: Program, number: int) -> None:
    """As many blocks as ever: one for each multiprocessor."""
    for _ in range(40):
        with operator(program, "aten::mm", (1024 + 64 * number, 512), (512, 512)):
            launch(program, 1, 100 + 10 * number)


def falling_clock(program: Program, number: int) -> None:
    launch(program, 40, 100 + 10 * number)


def longer_silence(program: Program, number: int) -> None:
    launch(program, 40 + number)
    program.synchronise()
    program.silence(number * MS)


def more_by_chance(program: Program, number: int) -> None:
    launch(program, (44, 60, 47, 62, 49, 58, 46, 61)[number - 1])


def told(folder: Path, program: Program) -> dict[str, dict[str, object]]:
    trace = program.open(folder)
    frame = overview(trace)
    assert not list(map(str, faults_of(trace, frame)))
    return {str(row["topic"]): row for row in frame.to_dict("records")}


@pytest.mark.parametrize(
    ("body", "first", "last"),
    [
        (more_kernels, "44 kernels", "72 kernels"),
        (larger_kernels, "2,800 thread blocks", "4,480 thread blocks"),
        # 40 products of [1024 + 64 n, 512] x [512, 512]
        (larger_inputs, "kernels on 32,768,000 input elements", "kernels on 41,943,040 input elements"),
    ],
)
def test_steps_that_do_more(tmp_path: Path, body: Body, first: str, last: str) -> None:
    rows = told(tmp_path, program_of(body))
    row = rows["growing_steps"]
    assert f"Each does more: the first runs {first}, the last {last}." in str(row["text"])
    assert "clock_drift" not in rows and "slow_steps" not in rows
    # by hand: each step is 400 us longer than the one before, 28 of these in all
    assert row["cost_ns"] == pytest.approx(28 * 400 * US, rel=0.02)


def test_a_step_beyond_its_growth_costs_what_it_does_beyond_it(tmp_path: Path) -> None:
    def body(program: Program, number: int) -> None:
        launch(program, 40 + 4 * number + 200 * (number == 11))

    rows = told(tmp_path, program_of(body, 12))
    assert "growing_steps" in rows
    # 200 kernels of 100 us, 1 us apart; the 20 more than in the median step are growth
    assert rows["slow_steps"]["cost_ns"] == pytest.approx(200 * 101 * US, rel=0.001)


@pytest.mark.parametrize("size", [2**62, -1, 1.5, "x", None])
def test_inputs_that_cannot_be(tmp_path: Path, size: object) -> None:
    def odd(program: Program, number: int) -> None:
        for _ in range(40):
            with program.inside("cpu_op", "aten::mm", **{"Input Dims": [[size] * 2] * number}):
                launch(program, 1, 100 + 10 * number)

    assert "growing_steps" not in told(tmp_path, program_of(odd))


@pytest.mark.parametrize("grid", [[2**31 - 1] * 3, ["x"], {"x": 1}, "[1,"])
def test_grids_that_cannot_be(tmp_path: Path, grid: object) -> None:
    def odd(program: Program, number: int) -> None:
        for _ in range(40):
            program.launch((100 + 10 * number) * US, "gemm", grid=grid, block=[128, 1, 1])

    assert "growing_steps" not in told(tmp_path, program_of(odd))


@pytest.mark.parametrize("body", [falling_clock, longer_silence, more_by_chance])
def test_what_gets_longer_otherwise(tmp_path: Path, body: Body) -> None:
    rows = told(tmp_path, program_of(body))
    assert "growing_steps" not in rows
    assert ("clock_drift" in rows) is (body is falling_clock)


def test_too_few_steps_to_tell(tmp_path: Path) -> None:
    assert "growing_steps" not in told(tmp_path, program_of(more_kernels, 5))


@pytest.mark.parametrize(
    ("slow", "title", "advice"),
    [
        ((1, 2), "(the first 2)", "They come first"),
        ((1,), "(the first)", "It comes first"),
        ((2, 5, 8), "(every 3 steps)", "They come every 3 steps"),
        ((3, 4), "steps", "Look at"),
    ],
)
def test_which_steps_are_unusually_long(
    tmp_path: Path, slow: tuple[int, ...], title: str, advice: str
) -> None:
    rows = told(tmp_path, program_of(lambda program, number: launch(program, 80 if number in slow else 40)))
    assert str(rows["slow_steps"]["title"]).endswith(title)
    assert str(rows["slow_steps"]["suggestion"]).startswith(advice)
