"""Programs whose backward pass runs the forward pass again, and others that look alike."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hta_widgets.analysis.findings.overview import overview
from hta_widgets.analysis.findings.sections import CHECKED, OPEN
from tests.verdicts.planted.devices import H100, opened, operator
from tests.verdicts.planted.host_program import US, Program

STEPS = range(1, 7)
GEMM = "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_128x64_64x3_tn_align8>(T1::Params)"
LAYER = (
    ("aten::mm", ((512, 256), (256, 1024))),
    ("aten::gelu", ((512, 1024),)),
    ("aten::mm", ((512, 1024), (1024, 256))),
)
TWO_LAYERS = (*LAYER, *((name.replace("gelu", "silu"), shapes) for name, shapes in LAYER))
Call = tuple[str, tuple[tuple[int, ...], ...]]


def steps(
    again: tuple[Call, ...],
    forward_thread: int = 0,
    dtype: str | None = "bf16",
    forward: tuple[Call, ...] = LAYER,
) -> Callable[[], Program]:
    """Forward passes of 3 ms, backward ones of 6 ms, and these operators of 1 ms in the first node."""

    def build() -> Program:
        program = Program()
        for number in STEPS:
            with program.step(number):
                base = program.now
                for at, (name, shapes) in enumerate(forward):
                    with operator(program, name, *shapes, dtype=dtype, **numbers(base + at, 0)):
                        program.launch(1000 * US, GEMM)
                for at in range(2, -1, -1):
                    node = f"autograd::engine::evaluate_function: Node{at}Backward0"
                    with operator(program, node, dtype=None, **numbers(base + at, 1)):
                        for place, (name, shapes) in enumerate(again if at == 2 else ()):
                            made = numbers(base + 10 + place, forward_thread)
                            with operator(program, name, *shapes, dtype=dtype, **made):
                                program.launch(1000 * US, GEMM)
                        with operator(program, "aten::mm", (1024, 512), (512, 256), dtype=dtype):
                            program.launch(2000 * US, GEMM)
                program.synchronise()
        return program

    return build


def numbers(sequence: int, forward_thread: int) -> dict[str, int]:
    return {"Sequence number": sequence, "Fwd thread id": forward_thread}


def told(folder: Path, program: Program) -> dict[str, Any] | None:
    rows = overview(opened(folder, program, H100)).to_dict("records")
    return next((row for row in rows if row["topic"] == "recomputation"), None)


@pytest.mark.parametrize("count", [2, 3])
def test_the_forward_pass_run_again_is_told(tmp_path: Path, count: int) -> None:
    row = told(tmp_path, steps(LAYER[:count])())
    assert row is not None
    assert row["share_pct"] == pytest.approx(100 * count / (9 + count), abs=0.2)
    assert row["saving_pct"] == pytest.approx(100 * count / (9 + count), abs=0.2)
    assert row["severity"] == "note" and row["method"] == "bound" and row["section"] == "saves"
    assert "the price of the memory" in row["text"]


@pytest.mark.parametrize(
    "program",
    [
        steps(()),
        steps(tuple(reversed(LAYER[:2]))),  # another order: a derivative of a derivative
        steps(tuple((name, tuple(reversed(shapes))) for name, shapes in LAYER)),  # other shapes
        steps(LAYER, forward_thread=1),  # operators of the backward pass
    ],
    ids=["backward", "order", "shapes", "backward operators"],
)
def test_other_backward_passes_are_not_told(tmp_path: Path, program: Callable[[], Program]) -> None:
    assert told(tmp_path, program()) is None


def test_without_shapes_many_operators_have_to_follow_each_other(tmp_path: Path) -> None:
    row = told(tmp_path, steps(TWO_LAYERS, dtype=None, forward=TWO_LAYERS)())
    assert row is not None and row["share_pct"] == pytest.approx(100 * 6 / 18, abs=0.2)
    assert told(tmp_path, steps(TWO_LAYERS[::-1], dtype=None, forward=TWO_LAYERS)()) is None


def test_nothing_is_said_without_shapes(tmp_path: Path) -> None:
    program = steps(LAYER, dtype=None)()
    assert told(tmp_path, program) is None
    rows = overview(opened(tmp_path, program, H100))
    gaps = rows.loc[rows["severity"] == OPEN, "text"]
    assert any(
        "whether the forward pass runs twice" in gap and "no shapes of operators" in gap for gap in gaps
    )


@pytest.mark.parametrize("numbered", [True, False])
def test_without_numbers_nothing_is_said_to_be_checked(tmp_path: Path, numbered: bool) -> None:
    program = steps(() if numbered else LAYER)()
    for each in program.events:
        if not numbered:
            each["args"].pop("Sequence number", None)
    frame = overview(opened(tmp_path, program, H100))
    assert "recomputation" not in set(frame["topic"])
    checked = frame.loc[frame["severity"] == CHECKED, "checked"]
    assert checked.str.contains("recomputation").any() == numbered
