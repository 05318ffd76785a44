"""Optimizers that update parameters on the host, and others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hta_widgets.analysis import overview
from tests.claims.checking import faults_of
from tests.verdicts.planted.host_program import MS, US, Program

RANGE = ("user_annotation", "Optimizer.step#AdamW.step")
DEEPSPEED = ("python_function", "deepspeed/ops/adam/cpu_adam.py(130): step")
OWN = ("user_annotation", "update")


def updating(call: tuple[str, str], kernels: int = 0, recorded: bool = True) -> Program:
    """Steps of 10 ms whose update takes the host 5 ms after that."""
    program = Program()
    for number in range(6):
        with program.step(number):
            for _ in range(10):
                program.launch(MS, "gemm")
            program.synchronise()
            program._calls += 1
            args = {"Python id": program._calls} if call[0] == "python_function" else {}
            with program.inside(*call, **args):
                if recorded:
                    for _ in range(5):
                        program.operator("aten::lerp_", MS)
                else:
                    program.silence(5 * MS)
                for _ in range(kernels):
                    program.launch(5 * US, "fused_adam")
            program.launch(100 * US, "copy")
            program.synchronise()
    return program


def rows_of(folder: Path, *program: Any) -> dict[str, dict]:
    trace = updating(*program).open(folder)
    frame = overview(trace)
    assert not list(faults_of(trace, frame))
    return {str(row["topic"]): row for row in frame.to_dict("records")}


@pytest.mark.parametrize("recorded", [True, False])
@pytest.mark.parametrize("call", [RANGE, DEEPSPEED])
def test_an_optimizer_on_the_host(tmp_path: Path, call: tuple[str, str], recorded: bool) -> None:
    rows = rows_of(tmp_path, call, 0, recorded)
    row = rows["optimizer_on_host"]
    assert row["share_pct"] == pytest.approx(100 * 5 / 15.1, rel=0.03)
    assert row["saving_pct"] == pytest.approx(100 * 5 / 15.1, rel=0.05)
    assert not row["part_of"]
    assert "offload_optimizer" in row["suggestion"]
    others = {topic for topic, each in rows.items() if each["role"] == "cause" and not each["part_of"]}
    assert others == {"optimizer_on_host"}


def test_an_optimizer_of_one_small_kernel(tmp_path: Path) -> None:
    """Its host takes long, and still it updates on the device."""
    assert "optimizer_on_host" not in rows_of(tmp_path, RANGE, 1)


def test_other_work_of_the_host(tmp_path: Path) -> None:
    assert "optimizer_on_host" not in rows_of(tmp_path, OWN, 0)
