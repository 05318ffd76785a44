"""A clock that jumps, or a machine that stands still: told from pauses of the host and of queues."""

from __future__ import annotations

from pathlib import Path

import pytest

from hta_widgets.analysis.findings import overview
from hta_widgets.analysis.findings.story import story
from hta_widgets.trace.model import Trace
from tests.analysis.kineto_file import Event, write
from tests.claims.checking import faults_of
from tests.verdicts.planted.host_program import MS, US, Program

JUMP = 2_000 * MS


def steps(pause: int = 0) -> Program:
    """Six steps of 10 ms, in which the host is far ahead of its device; it may pause before the fourth."""
    program = Program()
    for number in range(1, 7):
        with program.step(number):
            program.silence(pause * (number == 4))
            for _ in range(50):
                program.operator("aten::mm", 10 * US)
                program.launch(200 * US)
            program.synchronise()
    return program


def jumped(events: list[Event], at: int) -> list[Event]:
    """From then on all times are later."""
    moved = []
    for event in events:
        whole, fraction = event["ts"].split(".")
        start = int(whole) * 1000 + int(fraction) + (JUMP if int(whole) * 1000 + int(fraction) > at else 0)
        moved.append({**event, "ts": f"{start // 1000}.{start % 1000:03d}"})
    return moved


def opened(folder: Path, events: list[Event]) -> Trace:
    return Trace.open(write(folder / "trace.json", events), cache=False)


def test_the_step_in_which_a_clock_jumps_is_left_out(tmp_path: Path) -> None:
    program = steps()
    in_third = next(
        int(each["ts"].split(".")[0]) for each in program.events if each["name"] == "ProfilerStep#3"
    )
    trace = opened(tmp_path, jumped(program.events, in_third * 1000 + 5 * MS))
    (step,) = trace.rank(0).doubtful_steps
    assert step.iteration == 3 and step.silent_ns == pytest.approx(JUMP, rel=0.01)
    assert "nothing is recorded for 1.99 s though work is queued" in step.reason
    found, said = overview(trace), story(trace)
    assert not list(map(str, faults_of(trace, found)))
    assert said.headline.startswith("10.") and "the GPU computes 9" in said.headline
    assert 3 not in found["iteration"].dropna().tolist()


def test_a_host_that_pauses_with_nothing_queued_is_no_standstill(tmp_path: Path) -> None:
    trace = opened(tmp_path, steps(JUMP).events)
    assert not len(trace.rank(0).standstills) and not trace.rank(0).doubtful_steps
    assert "host_stall" in set(overview(trace)["topic"])


def test_a_host_that_waits_for_a_long_kernel_is_no_standstill(tmp_path: Path) -> None:
    program = steps()
    program.launch(JUMP, "long")
    program.launch(MS, "after")
    program.synchronise()
    assert not len(opened(tmp_path, program.events).rank(0).standstills)


def test_without_launches_it_abstains(tmp_path: Path) -> None:
    """Nobody knows what was queued."""
    kernels = [each for each in steps().events if each["cat"] == "kernel"]
    trace = opened(tmp_path, jumped(kernels, 30 * MS))
    assert not len(trace.rank(0).standstills)
