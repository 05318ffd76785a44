"""Recordings without device work: what the host does, and why that is not where time goes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hta_widgets.analysis.findings.overview import overview
from hta_widgets.analysis.findings.story import story
from hta_widgets.trace.model import Trace
from tests.analysis.kineto_file import event, job, write
from tests.claims.checking import faults_of
from tests.first_lines import first_lines
from tests.support import shared_input
from tests.verdicts.planted.host_program import MS, US, Program


def queueing(regions: bool = True, sign: str = "nccl:all_reduce") -> Program:
    """Two steps of which the host queues the work, as a sign of a device shows: 6, 3 and 1 ms."""
    program = Program()
    for number in (1, 2):
        with program.step(number):
            for name, ns in (("backward", 6 * MS), ("forward", 3 * MS), ("optimizer", MS)):
                with program.inside("user_annotation" if regions else "python_function", name):
                    for part in (1, 2, 3):
                        program.operator(f"aten::{name}_{part}", ns // 3)
            program.events.append(event("user_annotation", sign, program.now - US, US))
    return program


def said(trace: Trace) -> dict[str, Any] | None:
    """What is said of missing device work; each claim in it is recomputed."""
    frame = overview(trace)
    assert not list(map(str, faults_of(trace, frame)))
    rows = frame[frame["topic"] == "no_device"].to_dict("records")
    if rows:
        told = story(trace, None, frame)
        assert told.headline == rows[0]["headline"].removesuffix(".") and told.limits == rows[0]["text"]
        assert rows[0]["suggestion"] in [check.remedy for check in told.unknown]
    return rows[0] if rows else None


def opened(folder: Path, *programs: Program) -> Trace:
    if len(programs) > 1:
        return job(folder, *(program.events for program in programs))
    return Trace.open({0: write(folder / "0.json", programs[0].events)}, cache=False)


def test_the_time_of_operators_of_a_device_is_said_to_be_that_of_queueing(tmp_path: Path) -> None:
    row = said(opened(tmp_path, queueing()))
    assert row is not None and "nccl:all_reduce shows that a device takes part" in row["text"]
    assert "not how long it runs" in row["text"]
    assert "the regions: backward (60.0 %), forward (30.0 %)." in row["text"]
    assert row["headline"].endswith("has no device events; the host is longest in backward.")
    assert row["suggestion"].startswith("Record what the device does: profile(activities=")


def test_without_regions_operators_are_named(tmp_path: Path) -> None:
    row = said(opened(tmp_path, queueing(regions=False)))
    assert row is not None and "the operators, inner ones aside: aten::backward_1 (20.0 %)" in row["text"]


def test_several_ranks_are_taken_together(tmp_path: Path) -> None:
    row = said(opened(tmp_path, queueing(), queueing()))
    assert row is not None and "backward (60.0 %)" in row["text"]


def test_operators_of_mps_are_those_of_a_device_with_its_own_remedy(tmp_path: Path) -> None:
    row = said(opened(tmp_path, queueing(sign="aten::_mps_convolution")))
    assert row is not None and "aten::_mps_convolution shows" in row["text"]
    assert "torch.mps.profiler" in row["suggestion"]


@pytest.mark.parametrize(
    "more",
    [
        [event("kernel", "gemm", 2 * MS, MS, 7)],
        [event("cuda_runtime", "cudaLaunchKernel", 2 * MS, US, correlation=1)],
    ],
    ids=["device work", "launches, whose work was lost"],
)
def test_where_more_is_recorded_other_rules_speak(tmp_path: Path, more: list[dict[str, Any]]) -> None:
    program = queueing()
    program.events += more
    assert said(opened(tmp_path, program)) is None


def test_a_job_of_the_cpu_is_judged(tmp_path: Path) -> None:
    trace = opened(tmp_path, queueing(sign="gloo:all_reduce"))
    assert said(trace) is None
    assert "host_operators" in set(overview(trace)["topic"])


def test_a_job_of_the_cpu_of_which_nothing_stands_out_does_not_hold_too_little(tmp_path: Path) -> None:
    """The thread of the steps waits for another one, which is in operators: no rule is about that."""
    program = Program()
    with program.step(1):
        for at in range(20):
            program.events.append(event("cpu_op", "aten::mm", program.now, MS, 9, **{"External id": at + 1}))
            program.silence(MS)
    trace = opened(tmp_path, program)
    assert said(trace) is None


def test_too_little_is_said_to_be_too_little(tmp_path: Path) -> None:
    few = Program()
    few.operator("aten::mm", 3 * MS)
    few.operator("aten::add", MS)
    row = said(opened(tmp_path, few))
    assert row is not None and "only 2 operators: too little to know" in row["text"]
    assert "aten::mm (75.0 %), aten::add (25.0 %)" in row["text"]
    assert "torch.profiler.schedule" in row["suggestion"]


def test_collectives_without_operators(tmp_path: Path) -> None:
    program = Program()
    with program.step(1):
        program.events.append(event("user_annotation", "gloo:all_reduce", program.now + MS, 8 * MS, tid=9))
        program.silence(10 * MS)
    program.operator("aten::empty", US)
    row = said(opened(tmp_path, program))
    assert row is not None and "longest gloo:all_reduce" in row["text"]
    assert "whether the program waits for them is not recorded" in row["text"]
    assert "longest in gloo:all_reduce" in row["headline"]


def test_nothing_is_said_of_nothing(tmp_path: Path) -> None:
    program = Program()
    with program.inside("python_function", "main"):
        program.silence(MS)
    trace = opened(tmp_path, program)
    assert said(trace) is None
    assert "is unknown" in first_lines(trace)


def test_a_recording_of_an_idle_thread_is_told_which_threads_are_recorded(tmp_path: Path) -> None:
    own = [
        event("Trace", "PyTorch Profiler (0)", 0, 700 * MS),
        event("overhead", "Activity Buffer Request", 0, MS),
    ]
    path = write(tmp_path / "0.json", own)
    row = said(Trace.open({0: path}, cache=False))
    assert row is not None and "no operator, no call and no work of a device" in row["text"]
    assert "profile_all_threads=True" in row["suggestion"]
    assert row["headline"] == "Where time goes is unknown: nothing of the program is recorded."
    for more in (event("cuda_runtime", "cudaLaunchKernel", MS, US), event("python_function", "main", MS, US)):
        trace = Trace.open({0: write(tmp_path / "more.json", [*own, more])}, cache=False)
        assert "nothing of the program" not in first_lines(trace)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        # aten::uniform_ 67.74 + 30.98 of 152.29 us, aten::mm 33.56, aten::rand 4.29 + 0.88
        ("recordings/unsloth_mps", "aten::uniform_ (64.8 %), aten::mm (22.0 %)"),
        # backward 34.16, forward 19.32 and sparse_data_dist 10.25 of 75.47 ms, on one thread
        (
            "traces/hta/rank_unavailable",
            "## backward ## (45.3 %), ## forward ## (25.6 %)",
        ),
        # of the step's 197.3 ms until the last collective in it ends, one is open from 18.5 ms on
        ("traces/hta/cpu_only", "are open 85.1 % of step time, longest gloo:all_reduce"),
    ],
)
def test_recordings_read_by_hand(name: str, words: str) -> None:
    row = said(Trace.open(shared_input(name)))
    assert row is not None and words in row["text"]
