"""Hosts that are late because they compile again, or because each launch waits for its kernel."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hta_widgets.analysis.findings.overview import overview
from tests.analysis.kineto_file import kernel
from tests.claims.checking import faults_of
from tests.verdicts.planted.host_program import LATENCY, MS, US, Program

COMPILER = "_compile.compile_inner (dynamo_timed)"


def told(folder: Path, program: Program) -> dict[str, Any]:
    trace = program.open(folder)
    frame = overview(trace)
    assert not list(map(str, faults_of(trace, frame)))
    return {row["topic"]: row for row in frame.to_dict("records")}


def compiling_in(*steps: int) -> Program:
    """Ten steps of 10 ms on the device; in these, 30 ms are compiled before that."""
    program = Program()
    for number in range(1, 11):
        with program.step(number):
            if number in steps:
                with program.inside("cpu_op", COMPILER):
                    program.silence(30 * MS)
            for _ in range(10):
                program.operator("aten::mm", 5 * US)
                program.launch(MS)
            program.synchronise()
    return program


def test_code_that_is_compiled_again_is_no_start_up(tmp_path: Path) -> None:
    rows = told(tmp_path, compiling_in(4, 7))
    row = rows["recompiling"]
    assert row["cost_ns"] == pytest.approx(60 * MS, rel=0.01) and "in 2 of 10 steps" in row["text"]
    assert row["saving_pct"] == pytest.approx(100 * 60 / 160, abs=2) and "start_up" not in rows
    assert "dynamic=True" in row["suggestion"] and rows["idle_host"]["part_of"] == "recompiling"


@pytest.mark.parametrize("steps", [(), (1, 2), (1, 2, 6)])
def test_code_that_is_compiled_once_is_start_up(tmp_path: Path, steps: tuple[int, ...]) -> None:
    rows = told(tmp_path, compiling_in(*steps))
    assert "recompiling" not in rows and ("start_up" in rows) is bool(steps)


def launching(returns: Callable[[int, int], int]) -> Program:
    """Kernels of 50 us, each launched when the one before has ended; a call returns at a time."""
    program = Program()
    for number in range(1, 6):
        with program.step(number):
            for at in range(20):
                program.silence(20 * US)
                correlation = 100 * number + at
                start = program.now + 2 * US + LATENCY
                program.events.append(kernel("gemm", start, 50 * US, correlation=correlation))
                with program.inside("cuda_runtime", "cudaLaunchKernel", correlation=correlation):
                    program.now = returns(program.now + 2 * US, start + 50 * US)
                program.now = max(program.now, start + 51 * US)
    return program


def blocking() -> Program:
    return launching(lambda _, end: end + US)


def test_launches_that_wait_for_their_kernel(tmp_path: Path) -> None:
    row = told(tmp_path, blocking())["blocking_launches"]
    assert row["share_pct"] == pytest.approx(100 * 28 / 78, abs=1)
    assert "100 % of the launches" in row["text"] and "CUDA_LAUNCH_BLOCKING" in row["suggestion"]


def test_launches_that_return_at_once(tmp_path: Path) -> None:
    """The host waits for each kernel, but not in its launch."""
    assert "blocking_launches" not in told(tmp_path, launching(lambda begun, _: begun))
