"""Programs of the host alone that convert tensors, check gradients, or let other threads work."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hta_widgets.analysis.findings import overview
from tests.claims.checking import faults_of
from tests.verdicts.planted.host_program import MS, US, Program

Body = Callable[[Program], None]


def told(folder: Path, body: Body) -> dict[str, dict[str, object]]:
    """Of six steps that do something, and compute for 4 ms."""
    program = Program()
    for number in range(1, 7):
        with program.step(number):
            body(program)
            for _ in range(20):
                program.operator("aten::addmm", 200 * US)
    trace = program.open(folder)
    frame = overview(trace)
    assert not list(map(str, faults_of(trace, frame)))
    return {str(row["topic"]): row for row in frame.to_dict("records")}


def copy(program: Program, ns: int, *types: str) -> None:
    with program.inside("cpu_op", "aten::to"), program.inside("cpu_op", "aten::_to_copy"):
        program.operator("aten::copy_", ns, **({"Input type": [*types, "Scalar"]} if types else {}))


@pytest.mark.parametrize(
    ("ns", "types", "is_told"),
    [
        (2 * MS, ("c10::BFloat16", "float"), True),
        (100 * US, ("c10::BFloat16", "float"), False),
        (2 * MS, ("float", "float"), False),  # to another device or layout
        (2 * MS, (), False),
    ],
)
def test_conversions(tmp_path: Path, ns: int, types: tuple[str, ...], is_told: bool) -> None:
    rows = told(tmp_path, lambda program: copy(program, ns, *types))
    assert ("host_conversions" in rows) is is_told
    if is_told:
        assert rows["host_conversions"]["cost_ns"] == 6 * 2 * MS
        assert "Autocast" in str(rows["host_conversions"]["suggestion"])


DOUBLES = {"Input Dims": [[64, 64], []], "Input type": ["double"] * 2}


@pytest.mark.parametrize(
    ("name", "dims", "kind", "is_told"),
    [
        ("aten::mul", [[64, 64], []], "double", True),
        ("aten::mul", [[], []], "double", False),  # a number of Python
        ("aten::mul", [[64, 64], []], "float", False),
        ("aten::copy_", [[64, 64], [64, 64]], "double", False),
    ],
)
def test_doubles(tmp_path: Path, name: str, dims: list[list[int]], kind: str, is_told: bool) -> None:
    inputs = {"Input Dims": dims, "Input type": [kind] * 2}
    rows = told(tmp_path, lambda program: program.operator(name, 2 * MS, **inputs))
    assert ("host_doubles" in rows) is is_told
    if is_told:
        assert rows["host_doubles"]["cost_ns"] == 6 * MS
        assert "longest in aten::mul" in str(rows["host_doubles"]["text"])


def backward(program: Program, *operators: str) -> None:
    """Ten nodes of autograd, each with a function of its own, and what follows that."""
    for _ in range(10):
        with program.inside("cpu_op", "autograd::engine::evaluate_function: AddmmBackward0"):
            with program.inside("cpu_op", "AddmmBackward0"):
                program.operator("aten::mm", 200 * US)
                program.operator("aten::isnan", 10 * US)  # the program's own
            for name in operators:
                program.operator(name, 20 * US)


CHECKS = ("aten::isnan", "aten::_is_any_true", "aten::item")


@pytest.mark.parametrize(
    ("operators", "is_told"),
    [(CHECKS, True), (("aten::sum", "aten::view"), False), (("aten::isnan", "aten::item"), False)],
)
def test_checks_of_gradients(tmp_path: Path, operators: tuple[str, ...], is_told: bool) -> None:
    rows = told(tmp_path, lambda program: backward(program, *operators))
    assert ("gradient_checks" in rows) is is_told
    if is_told:
        assert rows["gradient_checks"]["cost_ns"] == 6 * 10 * 60 * US
        assert "detect_anomaly" in str(rows["gradient_checks"]["suggestion"])


LAYER = ("aten::layer_norm", "aten::linear", "aten::gelu", "aten::linear", "aten::add")


def checkpointed(program: Program, names: tuple[str, ...], ns: int = 200 * US) -> None:
    """A layer, and a node of autograd that runs these operators, which make nodes, and is in others."""
    sequence = program.now
    for name in LAYER:
        sequence += 1
        program.operator(name, 200 * US, **{"Sequence number": sequence, "Fwd thread id": 0})
    node = "autograd::engine::evaluate_function: CheckpointFunctionBackward"
    with program.inside("cpu_op", node), program.inside("cpu_op", "CheckpointFunctionBackward"):
        for name in names:
            sequence += 1
            with program.inside("cpu_op", name, **{"Sequence number": sequence, "Fwd thread id": 0}):
                program.silence(10 * US)
                program.operator("aten::addmm", ns - 10 * US)
        program.operator("aten::mm", 400 * US)


@pytest.mark.parametrize(
    ("names", "ns", "is_told"),
    [(LAYER, 200 * US, True), (LAYER, 20 * US, False), (LAYER[::-1], 200 * US, False), ((), 0, False)],
    ids=["again", "short", "other order", "once"],
)
def test_the_forward_pass_run_again(tmp_path: Path, names: tuple[str, ...], ns: int, is_told: bool) -> None:
    rows = told(tmp_path, lambda program: checkpointed(program, names, ns))
    assert ("host_recomputation" in rows) is is_told
    if is_told:
        row = rows["host_recomputation"]
        assert row["cost_ns"] == 6 * 5 * 200 * US and row["severity"] == "note"
        assert "longest aten::linear: activation checkpointing" in str(row["text"])


@pytest.mark.parametrize("checks", [True, False])
def test_what_a_check_of_gradients_reads_back(tmp_path: Path, checks: bool) -> None:
    program = Program()
    for number in range(1, 7):
        with program.step(number):
            for _ in range(10):
                program.operator("aten::addmm", 10 * US)
                program.launch(60 * US)
                with program.inside("cpu_op", "autograd::engine::evaluate_function: AddmmBackward0"):
                    with program.inside("cpu_op", "aten::_is_any_true" if checks else "aten::sum"):
                        program.launch(60 * US)
                    with program.inside("cpu_op", "aten::item"):
                        program.synchronise(name="cudaStreamSynchronize")
                program.silence(500 * US)
    row = overview(program.open(tmp_path)).set_index("topic").loc["values_read_back"]
    assert ("detect_anomaly" in row["suggestion"]) is checks


def elsewhere(program: Program, silence: int, work: int) -> None:
    begin = program.now
    program.silence(silence)
    end, program.now = program.now, begin
    for name in ("aten::mm", "aten::add"):
        with program.inside("cpu_op", name, tid=5):
            program.silence(work * (3 if name == "aten::mm" else 1) // 4)
    program.now = max(end, program.now)


@pytest.mark.parametrize(
    ("body", "is_told"),
    [
        (lambda program: elsewhere(program, 3 * MS, 3 * MS), True),
        (lambda program: elsewhere(program, 3 * MS, 40 * US), False),  # others hardly work meanwhile
        (lambda program: program.silence(3 * MS), False),
    ],
)
def test_other_threads(tmp_path: Path, body: Body, is_told: bool) -> None:
    rows = told(tmp_path, body)
    assert ("host_elsewhere" in rows) is is_told
    assert ("host_outside" in rows) is not is_told
    if is_told:
        assert rows["host_elsewhere"]["cost_ns"] == 6 * 3 * MS
        assert "They are longest in aten::mm." in str(rows["host_elsewhere"]["text"])


@pytest.mark.parametrize("ahead_ms", [30, 0])
def test_an_optimizer_costs_no_more_than_the_device_has_of_it(tmp_path: Path, ahead_ms: int) -> None:
    """The host is ahead while it launches it piece by piece: what it takes beside other work is no loss."""
    program = Program()
    for number in range(6):
        with program.step(number):
            program.launch(max(ahead_ms, 1) * MS, "gemm")
            with program.inside("user_annotation", "Optimizer.step#AdamW.step"):
                for _ in range(400):
                    program.silence(20 * US)
                    program.launch(5 * US, "vectorized_elementwise_kernel")
            program.synchronise()
    trace = program.open(tmp_path)
    frame = overview(trace)
    assert not list(faults_of(trace, frame))
    row = frame.set_index("topic").loc["optimizer_not_fused"]
    host_ms = 400 * 22 / 1000
    step_ms = ahead_ms + 400 * 6 / 1000 if ahead_ms else host_ms
    lost_ms = 400 * 6 / 1000 if ahead_ms else host_ms
    assert row["share_pct"] == pytest.approx(100 * lost_ms / step_ms, rel=0.05)
    assert ("It costs at most" in row["text"]) is bool(ahead_ms)
