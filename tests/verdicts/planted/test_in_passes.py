"""Programs that reduce in the middle of their passes, and others that reduce gradients, in groups without a
description: what to do about it differs.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hta_widgets.analysis.findings.overview import overview
from tests.verdicts.planted.devices import H100, opened
from tests.verdicts.planted.host_program import US, Program

STEPS = range(1, 5)
KERNEL = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
NODE = "autograd::engine::evaluate_function: MmBackward0"
Body = Callable[[Program], None]


def reduce(program: Program) -> None:
    """An all-reduce behind what was launched, for which what follows waits."""
    with program.inside("cpu_op", "c10d::allreduce_"):
        program.launch(300 * US, KERNEL, 20, at=max(program.free.values()))
    program.now = program.free[20]


def layers(program: Program, then: Body, often: int = 6, kernels: int = 4) -> None:
    for _ in range(often):
        for _ in range(kernels):
            program.operator("aten::mm", US)
            program.launch(50 * US)
        then(program)


def backward(program: Program, then: Body) -> None:
    for _ in range(6):
        with program.inside("cpu_op", NODE):
            layers(program, then, often=1)


def nothing(program: Program) -> None:
    pass


def tensor_parallel(program: Program) -> None:
    layers(program, reduce)
    backward(program, reduce)


def inference(program: Program) -> None:
    layers(program, reduce)


def hooks(program: Program) -> None:
    """As DDP with accumulated gradients but without no_sync: each pass reduces, from nodes of autograd."""
    for _ in range(2):
        layers(program, nothing)
        backward(program, reduce)


def by_hand(program: Program) -> None:
    """Gradients one by one behind the backward pass."""
    layers(program, nothing)
    backward(program, nothing)
    layers(program, reduce)


def by_hand_each_pass(program: Program) -> None:
    """The same behind each of two passes: a division between two of them."""
    for _ in range(2):
        layers(program, nothing)
        backward(program, nothing)
        layers(program, reduce, kernels=1)


def by_hand_at_once(program: Program) -> None:
    """All of them in one piece behind each of five passes: the layers of the next one run between."""
    for _ in range(5):
        layers(program, nothing)
        backward(program, nothing)
        layers(program, reduce, often=1, kernels=1)


def a_metric(program: Program) -> None:
    """Once in the forward pass, and gradients."""
    layers(program, nothing)
    reduce(program)
    backward(program, reduce)


REDUCER = "torch.distributed.ddp.reducer::copy_bucket_to_grad"


def advice(folder: Path, body: Body, ddp: bool = False) -> str:
    program = Program()
    if ddp:
        program.operator(REDUCER, US)
    for number in STEPS:
        with program.step(number):
            body(program)
            program.synchronise()
    rows = overview(opened(folder, program, H100)).set_index("topic")
    return str(rows.loc["exposed_communication", "suggestion"])


@pytest.mark.parametrize("body", [tensor_parallel, inference])
def test_buckets_are_no_advice_for_all_reduces_between_layers(tmp_path: Path, body: Body) -> None:
    said = advice(tmp_path, body)
    assert "gradient buckets and prefetching do not reach these" in said
    assert "larger pieces" not in said


@pytest.mark.parametrize("body", [hooks, by_hand, by_hand_each_pass, by_hand_at_once, a_metric])
@pytest.mark.parametrize("ddp", [True, False])
def test_gradients_are_to_be_reduced_in_buckets_where_ddp_has_them(
    tmp_path: Path, body: Body, ddp: bool
) -> None:
    said = advice(tmp_path, body, ddp)
    assert "larger pieces" in said and ("gradient buckets" in said) is ddp


def test_what_has_no_backward_pass_has_no_gradients(tmp_path: Path) -> None:
    kernel = KERNEL.replace("AllReduce_Sum", "AllGather")

    def gather(program: Program) -> None:
        program.launch(300 * US, kernel, 20, at=max(program.free.values()))
        program.now = program.free[20]

    said = advice(tmp_path, lambda program: layers(program, gather))
    assert "gradient" not in said and "fewer ranks" in said
