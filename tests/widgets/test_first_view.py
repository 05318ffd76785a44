"""The time with which a timeline opens, where the steps are a small part of what was recorded."""

from pathlib import Path

import pytest

from hta_widgets import TraceExplorer, examples
from hta_widgets.widgets.first_view import first_view
from tests.analysis.kineto_file import Event, event, job, kernel, launch

STEP = 1_000_000  # ns


def steps(begin: int, device: bool = True) -> list[Event]:
    """Four steps in which a kernel runs, or only an operator."""
    found: list[Event] = []
    for at in range(4):
        start = begin + at * STEP
        found.append(event("user_annotation", f"ProfilerStep#{at}", start, STEP))
        found.append(event("cpu_op", "aten::mm", start + 1_000, STEP // 2))
        if device:
            found += [
                launch(start + 2_000, at + 1),
                kernel("gemm", start + 10_000, STEP // 2, correlation=at + 1),
            ]
    return found


def profiler(length: int) -> Event:
    return event("overhead", "PyTorch Profiler (0)", 0, length)


@pytest.mark.parametrize("device", [True, False])
def test_few_steps_of_a_long_recording_fill_the_view(device: bool, tmp_path: Path) -> None:
    trace = job(tmp_path, [profiler(100 * STEP), *steps(60 * STEP, device)])
    start, end = first_view(trace) or (0, 0)
    assert (start, end) == (60 * STEP - STEP // 5, 64 * STEP + STEP // 5)


@pytest.mark.parametrize("begin", [0, 60])
def test_it_stays_within_the_recording(begin: int, tmp_path: Path) -> None:
    """Of steps at its start, and at its end."""
    beside = event("overhead", "PyTorch Profiler (0)", 0 if begin else 4 * STEP, 60 * STEP)
    wanted = (60 * STEP - STEP // 5, 64 * STEP) if begin else (0, 4 * STEP + STEP // 5)
    assert first_view(job(tmp_path, [beside, *steps(begin * STEP)])) == wanted


def test_steps_that_are_most_of_the_recording_leave_the_view_as_it_is(tmp_path: Path) -> None:
    assert first_view(job(tmp_path, [profiler(8 * STEP), *steps(3 * STEP)])) is None
    assert first_view(examples.load("ddp_4ranks")) is None


def test_work_outside_of_the_steps_stays_in_sight(tmp_path: Path) -> None:
    beside = [kernel(f"other {at}", at * STEP, STEP // 2) for at in range(5)]
    assert first_view(job(tmp_path, [profiler(100 * STEP), *steps(60 * STEP), *beside])) is None


def test_the_timeline_of_an_explorer_opens_with_it(tmp_path: Path) -> None:
    trace = job(tmp_path, [profiler(100 * STEP), *steps(60 * STEP)])
    explorer = TraceExplorer(trace, panels=[]).wait()
    assert dict(explorer.parts)["timeline"].view == first_view(trace)
