"""Tables of which few rows are looked up, with gradients that are dense, and others that look alike."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hta_widgets.analysis.findings.overview import overview
from hta_widgets.analysis.findings.sections import OPEN
from tests.claims.checking import faults_of
from tests.verdicts.planted.devices import H100, opened, operator
from tests.verdicts.planted.host_program import US, Program

TABLE, ROWS = (1_000_000, 64), 1_000
ADAM = "void multi_tensor_apply_kernel<FusedOptimizerTensorListMetadata<4>, FusedAdamMathFunctor<float, 4>>"
SINGLE = ("aten::mul_", [*TABLE])
GEMM = "ampere_bf16_s16816gemm_bf16_256x128_ldg8_relu_f2f_stages_64x3_tn"


def step(
    program: Program,
    device: bool,
    rows: int = ROWS,
    shapes: bool = True,
    tied: bool = False,
    optimizer: tuple[str, Any] = ("aten::_fused_adamw_", [[*TABLE], [1000, 64]]),
) -> None:
    """Look-ups, 1 ms of products, a dense gradient of 200 us, half of it a fill, and an update of 400."""
    dtype = "fp32" if shapes else None

    def work(ns: int, name: str) -> None:
        if device:
            program.launch(ns, name)
        else:
            program.silence(ns)

    with operator(program, "aten::embedding", TABLE, (rows,), dtype=dtype):
        work(10 * US, "indexSelectLargeIndex")
    with operator(program, "aten::mm", (512, 64), TABLE[::-1] if tied else (64, 512), dtype=dtype):
        work(1000 * US, GEMM)
    with operator(program, "aten::embedding_dense_backward", (rows, 64), (rows,), dtype=dtype):
        with operator(program, "aten::zero_", TABLE, dtype=dtype):
            work(110 * US, "fill")
        work(90 * US, "sum_and_scatter")
    name, first = optimizer
    listed = {"Input Dims": [first], "Input type": ["TensorList" if "fused" in name else "float"]}
    with program.inside("user_annotation", "Optimizer.step#AdamW.step"):
        program.silence(10 * US)
        with operator(program, name, dtype=None, **(listed if shapes else {})):
            work(400 * US, ADAM)


def program_of(device: bool, **options: Any) -> Program:
    program = Program()
    for number in range(1, 7):
        with program.step(number):
            step(program, device, **options)
            if device:
                program.synchronise()
            else:
                with program.inside("cpu_op", "autograd::engine::evaluate_function: MmBackward0"):
                    program.operator("aten::mul", 10 * US)
    return program


def told(folder: Path, device: bool, **options: Any) -> dict[str, Any]:
    trace = opened(folder, program_of(device, **options), H100 if device else None)
    frame = overview(trace)
    assert not list(map(str, faults_of(trace, frame)))
    gaps = frame.loc[frame["severity"] == OPEN, "text"].str.cat()
    return {"gaps": gaps, **{row["topic"]: row for row in frame.to_dict("records")}}


MANY, TIED = {"rows": TABLE[0] // 5}, {"tied": True}


def test_device_work_for_rows_that_are_not_looked_up(tmp_path: Path) -> None:
    row = told(tmp_path, True)["dense_gradients"]
    whole = 10 + 1000 + 200 + 400
    lost = 0.999 * 200 + 0.999 * 400 * TABLE[0] / (TABLE[0] + 1000)
    assert row["share_pct"] == pytest.approx(100 * lost / whole, abs=0.6)
    assert row["saving_pct"] <= row["share_pct"] and row["method"] == "analytic"
    assert "at most 1,000 of 1,000,000 rows" in row["text"] and "sparse=True" in row["suggestion"]


def test_host_work_for_rows_that_are_not_looked_up(tmp_path: Path) -> None:
    row = told(tmp_path, False, optimizer=SINGLE)["host_dense_gradients"]
    assert row["share_pct"] == pytest.approx(100 * 600 / 1640, abs=1)


@pytest.mark.parametrize("device", [True, False])
@pytest.mark.parametrize("options", [MANY, TIED], ids=["many rows", "tied"])
def test_gradients_that_must_be_dense(tmp_path: Path, device: bool, options: dict[str, Any]) -> None:
    rows = told(tmp_path, device, **options)
    assert not {"dense_gradients", "host_dense_gradients"} & {*rows}


def test_without_shapes(tmp_path: Path) -> None:
    """On a host, fills that take most of a gradient show it; on a device, the question is open."""
    (tmp_path / "host").mkdir()
    row = told(tmp_path / "host", False, shapes=False)["host_dense_gradients"]
    assert row["share_pct"] == pytest.approx(100 * 200 / 1640, abs=1)
    rows = told(tmp_path, True, shapes=False)
    assert "dense_gradients" not in rows and "whether gradients of look-ups are sparse" in rows["gaps"]
