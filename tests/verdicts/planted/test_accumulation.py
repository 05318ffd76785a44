"""Gradients that devices reduce after each of several passes of a step: it is said, and only then."""

from __future__ import annotations

from pathlib import Path

import pytest

from hta_widgets.analysis.findings import overview
from tests.analysis.kineto_file import job
from tests.claims.checking import faults_of
from tests.verdicts.planted.host_program import US
from tests.verdicts.planted.test_tiny_collectives import STEPS, Rank

PASSES = 4
NODE = "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad"


def program(sizes: tuple[tuple[int, ...], ...], updates: int = 1) -> Rank:
    """A step of so many passes, each followed by all-reduces of these sizes, and updates at its end."""
    found = Rank()
    for number in range(1, STEPS + 1):
        with found.step(number):
            for messages in sizes:
                with found.inside("user_annotation", "DistributedDataParallel.forward"):
                    found.launch(2_000 * US, "gemm")
                for size in messages:
                    with found.inside("cpu_op", NODE, 2), found.inside("cpu_op", "c10d::allreduce_", 2):
                        found.alone()
                        found.send(size)
                found.alone()
            for _ in range(updates):
                with found.inside("user_annotation", "Optimizer.step#AdamW.step"):
                    found.launch(500 * US, "multi_tensor_apply_kernel")
            found.synchronise()
    return found


EACH = (32 << 20, 16 << 20)


@pytest.mark.parametrize(
    ("found", "is_told"),
    [
        (program((EACH,) * PASSES), True),
        (program(((), (), (), EACH)), False),  # no_sync()
        (program(((64,), (64,), (64,), (64, *EACH))), False),  # a loss of each pass, gradients once
        (program((EACH, EACH[::-1], (32 << 20,), EACH)), False),  # other models
        (program((EACH,) * PASSES, updates=PASSES), False),  # a step for each
        (program((EACH,) * PASSES, updates=0), False),  # nothing tells when gradients are used
    ],
)
def test_reduced_after_each_pass(found: Rank, is_told: bool, tmp_path: Path) -> None:
    trace = job(tmp_path, found.events, found.events)
    frame = overview(trace)
    assert not list(faults_of(trace, frame))
    row = frame.set_index("topic").loc["exposed_communication"]
    assert (
        "after each of the 4 forward passes of a step. That makes 8 calls, where 2" in row["text"]
    ) is is_told
    assert row["suggestion"].startswith("Run all but the last forward") is is_told
