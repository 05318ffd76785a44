"""Programs whose matrix products have sizes that fit their units, or not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hta_widgets.analysis.findings.overview import overview
from hta_widgets.analysis.findings.sections import OPEN
from tests.verdicts.planted.devices import A100, opened, operator
from tests.verdicts.planted.host_program import US, Program

STEPS = range(1, 7)
ALIGNED = "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_128x64_64x3_tn_align8>(T1::Params)"
HALF = "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_256x128_64x3_tn_align2>(T1::Params)"
TF32 = "void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_128x256_32x3_tn_align1>(T1::Params)"
SIMT = "void cutlass::Kernel2<cutlass_80_simt_sgemm_128x32_8x5_nn_align1>(T1::Params)"
VOCABULARY = ((50257,), (4096, 1024), (1024, 50257))


def steps(
    name: str, shapes: tuple[tuple[int, ...], ...], kernel: str, ns: int, dtype: str | None = "bf16"
) -> Callable[[], Program]:
    """In each step such a product, beside others of 4 ms."""

    def build() -> Program:
        program = Program()
        for number in STEPS:
            with program.step(number):
                with operator(program, "aten::mm", (4096, 4096), (4096, 4096), dtype=dtype):
                    program.launch(2000 * US, ALIGNED)
                with operator(program, name, *shapes, dtype=dtype):
                    program.launch(ns, kernel)
                with operator(program, "aten::mm", (4096, 4096), (4096, 4096), dtype=dtype):
                    program.launch(2000 * US, ALIGNED)
                program.synchronise()
        return program

    return build


def told(folder: Path, program: Program, device: str | None = A100) -> dict[str, Any] | None:
    rows = overview(opened(folder, program, device)).to_dict("records")
    return next((row for row in rows if row["topic"] == "unaligned_shapes"), None)


@pytest.mark.parametrize(
    ("program", "left", "words"),
    [
        # 50,257 padded to 50,264: operations at half of 312 TFLOP/s
        (
            steps("aten::addmm", VOCABULARY, HALF, 6000 * US),
            2 * 4096 * 1024 * 50264 / 156_000,
            ("[4,096, 1,024] x [1,024, 50,257]: 50,257 is no multiple of 8", "aten::addmm"),
        ),
        # 647 padded to 648 and 30 to 32: bytes at 2039 GB/s
        (
            steps("aten::bmm", ((1024, 647, 96), (1024, 96, 30)), TF32, 6000 * US, "fp32"),
            (648 / 647) * (32 / 30) * 1024 * 4 * (647 * 96 + 96 * 30 + 647 * 30) / 2039,
            ("1,024 times [647, 96] x [96, 30]: 30 and 647 are no multiple of 4",),
        ),
    ],
    ids=["vocabulary", "features"],
)
def test_products_of_unaligned_sizes_are_told(
    tmp_path: Path, program: Callable[[], Program], left: float, words: tuple[str, ...]
) -> None:
    row = told(tmp_path, program())
    assert row is not None
    assert row["share_pct"] == pytest.approx((6e6 - left) / 10e4, abs=0.2)
    assert row["saving_pct"] == pytest.approx((6e6 - left) / 10e4, abs=0.2)
    assert row["section"] == "saves" and row["method"] == "replay" and row["severity"] == "warning"
    assert all(word in row["text"] for word in words), row["text"]


@pytest.mark.parametrize(
    "program",
    [
        steps("aten::addmm", VOCABULARY, ALIGNED, 6000 * US),  # a fast kernel all the same
        steps("aten::mm", ((4096, 1024), (1024, 50264)), HALF, 6000 * US),  # it is a stride, or an offset
        steps("aten::addmm", VOCABULARY, SIMT, 6000 * US, "fp32"),  # SIMT units load as they like
        steps("aten::addmm", VOCABULARY, HALF, 2800 * US),  # as fast as the padded one would be
        steps("aten::addmm", ((51,), (32, 1024), (1024, 51)), HALF, 100 * US),  # 2 % of the time
    ],
    ids=["aligned kernel", "aligned sizes", "SIMT", "fast", "little"],
)
def test_other_products_are_not_told(tmp_path: Path, program: Callable[[], Program]) -> None:
    assert told(tmp_path, program()) is None


@pytest.mark.parametrize(
    ("dtype", "device", "missing"),
    [("bf16", None, "name of the device"), (None, A100, "shapes of operators")],
)
def test_nothing_is_said_without_shapes_or_peaks(
    tmp_path: Path, dtype: str | None, device: str | None, missing: str
) -> None:
    program = steps("aten::addmm", VOCABULARY, HALF, 6000 * US, dtype)()
    assert told(tmp_path, program, device) is None
    rows = overview(opened(tmp_path, program, device))
    gaps = rows.loc[rows["severity"] == OPEN, "text"]
    assert any("whether sizes fit the units" in gap and f"no {missing}" in gap for gap in gaps), gaps.tolist()
