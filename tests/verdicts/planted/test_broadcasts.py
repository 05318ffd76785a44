"""Programs in which DDP broadcasts the buffers of its modules, and others that broadcast something else."""

from __future__ import annotations

from collections.abc import Callable, Container
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from hta_widgets.analysis.findings.overview import overview
from tests.verdicts.planted.devices import H100, opened
from tests.verdicts.planted.host_program import US, Program

STEPS = range(1, 7)
BROADCAST = "ncclDevKernel_Broadcast_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def steps(
    forward: Container[int] = STEPS, elsewhere: Container[int] = (), ns: int = 500 * US, marked: bool = True
) -> Callable[[], Program]:
    """In these steps a broadcast inside DDP's forward pass, or behind it; 2 ms of other kernels in each."""

    def build() -> Program:
        program = Program()
        for number in STEPS:
            with program.step(number) if marked else nullcontext():
                with program.inside("user_annotation", "DistributedDataParallel.forward"):
                    if number in forward:
                        broadcast(program, ns)
                    for _ in range(10):
                        program.launch(200 * US)
                if number in elsewhere:
                    broadcast(program, ns)
                program.synchronise()
        return program

    return build


def broadcast(program: Program, ns: int) -> None:
    with program.inside("cpu_op", "c10d::broadcast_"):
        program.launch(ns, BROADCAST)


def told(folder: Path, program: Program) -> dict[str, Any] | None:
    rows = overview(opened(folder, program, H100)).to_dict("records")
    return next((row for row in rows if row["topic"] == "buffers_broadcast"), None)


def test_broadcasts_of_buffers_are_told(tmp_path: Path) -> None:
    row = told(tmp_path, steps()())
    assert row is not None
    assert row["share_pct"] == pytest.approx(100 * 0.5 / 2.5, abs=0.5)
    assert row["saving_pct"] == pytest.approx(100 * 0.5 / 2.5, abs=0.5)
    assert row["section"] == "saves" and row["method"] == "bound"
    assert "broadcast_buffers=False" in row["suggestion"]


def test_regular_forward_passes_are_steps(tmp_path: Path) -> None:
    """Where the program marks none: the annotation comes regularly."""
    row = told(tmp_path, steps(marked=False)())
    assert row is not None and row["section"] == "saves"


def test_without_an_edit_that_fits_the_saving_is_unknown(tmp_path: Path) -> None:
    row = told(tmp_path, steps(elsewhere={3})())
    assert row is not None
    assert not row["method"] and "under the same name" in row["saving"]


@pytest.mark.parametrize(
    "program",
    [
        steps((), elsewhere=STEPS),
        steps(range(1, 6)),
        steps(ns=20 * US),
    ],
    ids=["elsewhere", "not in every step", "little"],
)
def test_other_broadcasts_are_not_told(tmp_path: Path, program: Callable[[], Program]) -> None:
    assert told(tmp_path, program()) is None
