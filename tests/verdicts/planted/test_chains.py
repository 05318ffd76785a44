"""Programs of pointwise kernels that feed each other, or do not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hta_widgets.analysis.findings.overview import overview
from hta_widgets.analysis.findings.sections import OPEN
from tests.claims.checking import faults_of
from tests.verdicts.planted.devices import H100, opened, operator
from tests.verdicts.planted.host_program import US, Program

STEPS = range(1, 7)
GEMM = "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_128x64_64x3_tn_align8>(T1::Params)"
MUL = "void at::native::vectorized_elementwise_kernel<4, at::native::BinaryFunctor<float>>(int)"
TRITON = "triton_poi_fused_mul_0"
BIG, OTHER = (4096, 4096), (4096, 2048)


def steps(
    *links: tuple[str, tuple[tuple[int, ...], ...], str, str],
    products: int = 1,
    stream: Callable[[int], int] = lambda _: 7,
) -> Callable[[], Program]:
    """In each step such operators (name, shapes, type, kernel), of 1 ms each, and products of 2 ms."""

    def build() -> Program:
        program = Program()
        for number in STEPS:
            with program.step(number):
                for _ in range(products):
                    with operator(program, "aten::mm", BIG, BIG):
                        program.launch(2000 * US, GEMM)
                for place, (name, shapes, dtype, kernel) in enumerate(links):
                    with operator(program, name, *shapes, dtype=dtype or None):
                        program.launch(1000 * US, kernel, stream=stream(place))
                program.synchronise()
        return program

    return build


def told(folder: Path, program: Program) -> dict[str, Any] | None:
    rows = overview(opened(folder, program, H100)).to_dict("records")
    return next((row for row in rows if row["topic"] == "pointwise_chains"), None)


SCALE = ("aten::mul", (BIG, ()), "bf16", MUL)
ADD = ("aten::add", (BIG, BIG), "bf16", MUL)
ACTIVATE = ("aten::silu", (BIG,), "bf16", MUL)


@pytest.mark.parametrize(
    ("links", "products", "left"),
    [
        # of 2 + 3 + 2 tensors 3 are left, and 4 bytes for the number
        ((SCALE, ADD, ACTIVATE), 1, 3 * 3 / 7),
        # in place: 3 + 2 tensors, of which 3 are left
        ((("aten::add_", (BIG, BIG), "bf16", MUL), ACTIVATE), 2, 2 * 3 / 5),
    ],
)
def test_chains_are_told(tmp_path: Path, links: tuple[Any, ...], products: int, left: float) -> None:
    row = told(tmp_path, steps(*links, products=products)())
    assert row is not None
    whole = len(links) + 2 * products
    assert row["share_pct"] == pytest.approx(100 * (len(links) - left) / whole, abs=0.3)
    assert row["saving_pct"] == pytest.approx(100 * (len(links) - left) / whole, abs=0.3)
    assert row["section"] == "saves" and row["method"] == "bound"
    assert "torch.compile makes one kernel" in row["suggestion"]


@pytest.mark.parametrize(
    "program",
    [
        steps(SCALE, ADD, ACTIVATE, products=5),  # less than a quarter of the time of kernels
        steps(ADD, ("aten::add", (OTHER, OTHER), "bf16", MUL), SCALE),  # other shapes
        steps(ADD, ("aten::add", (BIG, BIG), "fp32", MUL), SCALE),  # other types
        steps(SCALE, ADD, ACTIVATE, stream=lambda place: 7 + place),  # other streams
        steps(*((name, shapes, dtype, TRITON) for name, shapes, dtype, _ in (SCALE, ADD, ACTIVATE))),
        steps(("aten::sum", (BIG,), "bf16", MUL), ACTIVATE),  # a reduction is no part of a chain
    ],
    ids=["few", "shapes", "types", "streams", "compiled", "reduction"],
)
def test_other_kernels_are_no_chains(tmp_path: Path, program: Callable[[], Program]) -> None:
    assert told(tmp_path, program()) is None


def test_nothing_is_said_without_shapes(tmp_path: Path) -> None:
    def build() -> Program:
        program = Program()
        for number in STEPS:
            with program.step(number):
                for name in ("aten::mul", "aten::add", "aten::silu"):
                    with operator(program, name, dtype=None):
                        program.launch(1000 * US, MUL)
                program.synchronise()
        return program

    assert told(tmp_path, build()) is None
    rows = overview(opened(tmp_path, build(), H100))
    gaps = rows.loc[rows["severity"] == OPEN, "text"]
    assert any("which kernels could be one" in gap and "no shapes of operators" in gap for gap in gaps)


def with_a_host(host_us: int, beside_us: int = 0, kernels_us: int = 1000) -> Program:
    """A product and a chain of three, each of which takes the host so long; and work on another stream."""
    program = Program()
    for number in STEPS:
        with program.step(number):
            if beside_us:
                program.launch(beside_us * US, "beside", stream=20)
            for name, shapes, kernel, us in (
                ("aten::mm", (BIG, BIG), GEMM, 2000),
                *((name, shapes, kernel, kernels_us) for name, shapes, _, kernel in (SCALE, ADD, ACTIVATE)),
            ):
                with operator(program, name, *shapes):
                    program.silence(host_us * US)
                    program.launch(us * US, kernel)
            program.synchronise()
    return program


def test_a_host_that_limits_after_fusing_is_said(tmp_path: Path) -> None:
    """The saving is that of the program itself with shorter kernels, and without the host it is the cost."""
    before = with_a_host(1200)
    trace = opened(tmp_path, before, H100)
    frame = overview(trace)
    (row,) = frame[frame["topic"] == "pointwise_chains"].to_dict("records")
    saved = 1.0 - with_a_host(1200, kernels_us=round(1000 * 3 / 7)).now / before.now
    assert row["saving_pct"] == pytest.approx(100 * saved, abs=2)
    assert row["saving_pct"] < 0.8 * row["share_pct"]
    assert "That is less than the cost: the job is CPU-bound then." in row["saving"]
    (claim,) = (each for each in json.loads(row["claims"]) if each["measure"] == "saving_without_cpu")
    free = 1.0 - with_a_host(0, kernels_us=round(1000 * 3 / 7)).now / with_a_host(0).now
    assert claim["value"] == pytest.approx(100 * free * with_a_host(0).now / before.now, abs=2)
    assert not list(map(str, faults_of(trace, frame)))
    halved = frame.assign(claims=frame["claims"].str.replace(str(claim["value"]), str(row["saving_pct"] / 2)))
    assert "saving_without_cpu" in {fault.measure for fault in faults_of(trace, halved)}


@pytest.mark.parametrize("program", [with_a_host(100), with_a_host(100, beside_us=4800)])
def test_a_host_that_does_not_limit_is_not_named(tmp_path: Path, program: Program) -> None:
    row = told(tmp_path, program)
    assert row is not None and "CPU" not in row["saving"]
