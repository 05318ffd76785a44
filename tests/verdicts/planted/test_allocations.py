"""A host that asks the driver for memory in each step, while the device has nothing to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from hta_widgets.analysis.findings import overview
from tests.claims.checking import faults_of
from tests.verdicts.planted.host_program import US, Program

WAITS = ("cudaStreamSynchronize", "cudaEventSynchronize")


def steps(*calls: str, read_back: tuple[int, ...] = (), recorded: bool = True) -> Program:
    """Ten short kernels, which the host launches late, then these calls of 400 us each."""
    program = Program()
    for number in range(1, 9):
        with program.step(number):
            for _ in range(2):
                for _ in range(10):
                    program.operator("aten::mm", 30 * US)
                    program.launch(20 * US)
                for call in calls:
                    program.driver(call, 400 * US)
                for ns, name in zip(
                    read_back, ("cudaStreamSynchronize", "cudaEventSynchronize"), strict=False
                ):
                    program.synchronise(tail=ns, name=name)
    if not recorded:
        program.events = [event for event in program.events if event["cat"] != "cuda_runtime"]
    return program


@pytest.mark.parametrize(
    ("program", "edits"),
    [
        (steps("cudaFree"), "[edits.allocator()]"),
        (steps("cudaFree", "cudaMalloc"), "[edits.allocator()]"),
        (steps(read_back=(400 * US,)), "[edits.syncs()]"),  # a near miss: it waits for no memory
        (steps("cudaFree", read_back=(300 * US,)), "[edits.allocator()]"),  # that is most of it
        (steps("cudaFree", read_back=(300 * US, 300 * US)), "[edits.allocator(), edits.syncs()]"),
    ],
    ids=["free", "free and malloc", "read back", "mostly free", "free above all"],
)
def test_what_memory_of_the_driver_costs_is_saved_by_an_allocator(
    program: Program, edits: str, tmp_path: Path
) -> None:
    trace = program.open(tmp_path)
    frame = overview(trace)
    row = frame[frame["topic"] == "sync_calls"].iloc[0]
    assert row["edits"] == edits
    assert row["section"] == "saves"
    if "allocator" in edits:
        assert row["saving_pct"] > row["share_pct"] * 0.4
        assert "an allocator that keeps memory" in row["saving"]
    assert not list(faults_of(trace, frame))


def test_without_calls_of_the_driver_nothing_is_said_of_memory(tmp_path: Path) -> None:
    frame = overview(steps("cudaFree", recorded=False).open(tmp_path))
    assert "sync_calls" not in set(frame["topic"])
    assert not frame["edits"].str.contains("allocator").any()
