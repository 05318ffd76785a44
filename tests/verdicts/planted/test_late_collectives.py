"""Programs whose communication starts later than its data: that is told with its cause, and no more."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hta_widgets.analysis.findings import CHECKED, overview
from tests.analysis.multirank import RankFile, job
from tests.verdicts.planted.host_program import US, Program

ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
COMMUNICATION, BESIDE = 20, 9


def loop(body: Callable[[Program], None]) -> Program:
    program = Program()
    for number in range(1, 7):
        with program.step(number):
            body(program)
            program.synchronise()
    return program


def launched_late(program: Program) -> None:
    """Other work runs beside while the host is busy; the collective then ends last."""
    program.launch(500 * US, "backward")
    program.launch(5_000 * US, "beside", BESIDE)
    program.operator("logging", 3_000 * US)
    program.launch(2_500 * US, ALL_REDUCE, COMMUNICATION)


def held_up(program: Program) -> None:
    """The collective is launched in time, and starts when half of what is launched after it is done."""
    program.launch(500 * US, "backward")
    begun = program.free[7]
    program.launch(1_700 * US, ALL_REDUCE, COMMUNICATION, at=begun + 3_000 * US)
    program.launch(5_000 * US, "beside", BESIDE)


def in_time(program: Program) -> None:
    program.launch(500 * US, "backward")
    begun = program.free[7]
    program.launch(5_000 * US, "beside", BESIDE)
    program.launch(2_500 * US, ALL_REDUCE, COMMUNICATION, at=begun + 15 * US)


def late_and_idle(program: Program) -> None:
    """The host is late for all work alike."""
    program.launch(500 * US, "backward")
    program.operator("logging", 3_000 * US)
    program.launch(2_500 * US, ALL_REDUCE, COMMUNICATION)


def late_and_hidden(program: Program) -> None:
    """It ends long before the work beside it."""
    program.launch(500 * US, "backward")
    program.launch(9_000 * US, "beside", BESIDE)
    program.operator("logging", 100 * US)
    program.operator("logging", 500 * US)
    program.launch(500 * US, ALL_REDUCE, COMMUNICATION)


def alone(program: Program) -> None:
    """Nothing tells what the collective waits for."""
    program.operator("logging", 1_000 * US)
    program.launch(2_500 * US, ALL_REDUCE, COMMUNICATION)


@pytest.mark.parametrize(
    ("body", "why", "saved"),
    [
        (launched_late, "since the host launches it late", 500 * US),
        (held_up, "although it is launched by then", 200 * US),
        (in_time, "", 0),
        (late_and_idle, "", 0),
        (late_and_hidden, "", 0),
        (alone, "", 0),
    ],
)
def test_communication_that_starts_late(
    body: Callable[[Program], None], why: str, saved: int, tmp_path: Path
):
    program = loop(body)
    frame = overview(program.open(tmp_path))
    rows = frame[frame["topic"] == "late_collective"].to_dict("records")
    assert len(rows) == bool(why)
    if not why:
        return
    (row,) = rows
    assert why in row["text"]
    # counted again from the plain events: from the end of its data to its start, while others compute; the
    # first work of a stream aside, of which it is not known how soon it should start
    ends, late = 0, list[int]()
    for event in program.events:
        if event["cat"] == "kernel":
            start = round(1_000 * float(event["ts"]))
            if event["name"] == "backward":
                ends = start + event["dur"]
            if event["name"] == ALL_REDUCE:
                late.append(start - ends)
    assert row["cost_ns"] == pytest.approx(sum(late[1:]), abs=5 * 10 * US)
    assert (row["section"], row["method"], row["edits"]) == (
        "saves",
        "bound",
        "[edits.prompt_communication()]",
    )
    # without the delay, the work beside ends last
    assert row["saving_ns"] == pytest.approx(5 * saved, rel=0.1)


def test_without_communication_it_is_not_looked_for(tmp_path: Path):
    frame = overview(loop(lambda program: program.launch(500 * US, "backward")).open(tmp_path))
    assert not frame.loc[frame["severity"] == CHECKED, "checked"].str.contains("late_collective").any()


@pytest.mark.parametrize(("trains", "ddp"), [(False, True), (True, True), (True, False)])
def test_gradient_buckets_are_advised_only_where_ddp_and_a_backward_pass_are_recorded(
    tmp_path: Path, trains: bool, ddp: bool
) -> None:
    def body(program: Program) -> None:
        if ddp:
            program.operator("torch.distributed.ddp.reducer::copy_bucket_to_grad", US)
        for _ in range(10):
            program.operator("AddmmBackward0" if trains else "aten::addmm", US)
        launched_late(program)

    rows = overview(loop(body).open(tmp_path)).set_index("topic")
    advice = str(rows.loc["late_collective", "suggestion"])
    assert ("gradient bucket" in advice) is (trains and ddp) and "no host work between the two" in advice


@pytest.mark.parametrize(("name", "missing"), [("Broadcast", True), ("AllReduce_Sum_f32", False)])
def test_ranks_leave_broadcasts_apart(name: str, missing: bool, tmp_path: Path) -> None:
    """All ranks are recorded, and still it is unknown who waits for whom in them."""
    files = []
    for rank in range(2):
        file = RankFile(rank)
        for number in range(1, 6):
            begin = number * 10_000 * US
            file.step(number, begin, begin + 10_000 * US)
            file.kernel(begin, begin + 4_000 * US, "gemm", 7, begin - US)
            message = {
                "Group size": 2,
                "Process Group Name": "0",
                "Seq": number,
                "Collective name": "broadcast" if missing else "allreduce",
            }
            end = begin + 9_000 * US
            file.kernel(begin + 4_001 * US, end, f"ncclDevKernel_{name}_RING_LL(int)", 20, begin, **message)
        files.append(file)
    rows = overview(job(tmp_path, *files))
    texts = rows.loc[rows["topic"] == "not_judged", "text"]
    assert texts.str.contains("no common end of the ranks in 100 % of the communication").any() == missing
    assert not texts.str.contains("no record of the partners").any()
