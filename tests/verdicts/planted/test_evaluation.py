"""Steps that evaluate among steps that train, and steps that are long for another reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from hta_widgets.analysis import overview
from hta_widgets.analysis.findings.unusual_steps import comes_every
from tests.claims.checking import faults_of
from tests.verdicts.planted.host_program import MS, Program

NODE = "autograd::engine::evaluate_function: AddmmBackward0"


def row_of(folder: Path, backward_in_long: bool, backward_in_others: bool = True) -> dict:
    """Every fourth step computes for 20 ms instead of 9."""
    program = Program()
    for number in range(12):
        long = number % 4 == 2
        with program.step(number):
            for _ in range(20 if long else 6):
                with program.inside("cpu_op", "aten::addmm"):
                    program.launch(MS, "gemm")
            if backward_in_long if long else backward_in_others:
                for _ in range(3):
                    with program.inside("cpu_op", NODE, tid=2):
                        program.launch(MS, "gemm")
            program.synchronise()
    trace = program.open(folder)
    frame = overview(trace)
    assert not list(faults_of(trace, frame))
    return frame.set_index("topic").loc["slow_steps"].to_dict()


def test_steps_without_a_backward_pass_evaluate(tmp_path: Path) -> None:
    row = row_of(tmp_path, backward_in_long=False)
    assert "They have no backward pass, the others have one: evaluation." in row["text"]
    assert row["suggestion"].startswith("Evaluation is meant to happen.")
    assert "evaluation, every 4 steps" in row["title"]


@pytest.mark.parametrize(("long", "others"), [(True, True), (False, False)])
def test_other_long_steps_are_no_evaluation(tmp_path: Path, long: bool, others: bool) -> None:
    row = row_of(tmp_path, long, others)
    assert "backward" not in row["text"]
    assert "as the last pass of accumulated gradients" in row["suggestion"]


@pytest.mark.parametrize(
    ("late", "every"), [([2, 5, 8], 3), ([0, 5], 0), ([2, 5], 0), ([2, 4, 8], 0), ([1, 2, 3], 0)]
)
def test_two_long_steps_are_no_rhythm(late: list[int], every: int) -> None:
    assert comes_every([*range(10)], late) == every
