"""What time a panel is about: that of the findings is not that of the panels beside them."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hta_widgets import BreakdownPanel, Scope, Selection, Trace, analysis, examples
from hta_widgets.analysis.findings import judged_scope
from hta_widgets.analysis.wholes import coverage_of, shown_scope, whole_of
from hta_widgets.formatting import duration
from tests.verdicts.planted.host_program import MS, Program


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    """Work of 10 ms before the steps, then five of 20 ms each."""
    program = Program()
    program.launch(10 * MS)
    program.synchronise()
    for number in range(5):
        with program.step(number):
            program.launch(10 * MS)
            program.synchronise()
            program.operator("aten::slow_op", 10 * MS)
    program.launch(1 * MS)
    program.synchronise()
    return program.open(tmp_path_factory.mktemp("job"))


def test_findings_and_panels_name_their_times(program: Trace) -> None:
    assert whole_of(program, "overview", Scope()) == "over 5 steps, 100 ms"
    for kind in ("temporal_breakdown", "idle_gaps", "kernel_breakdown", "operators", "launch_stats"):
        assert whole_of(program, kind, shown_scope(program, kind, Scope())) == "over 5 steps, 100 ms"
        assert whole_of(program, kind, Scope()) == "over all recorded device work, 111 ms"
    recorded = f"over the whole recording, {duration(program.summary['duration_ns'])}"
    for kind in ("op_counts", "call_stacks", "user_annotations"):
        assert shown_scope(program, kind, Scope()) == Scope()
        assert whole_of(program, kind, Scope()) == recorded
        assert whole_of(program, kind, Scope(iterations=(2,))) == "over 1 step, 20.0 ms"
    for kind in ("step_times", "memory_peak", "critical_path"):
        assert whole_of(program, kind, Scope()) == ""


def test_a_selection_is_named(program: Trace) -> None:
    assert whole_of(program, "idle_breakdown", Scope(iterations=(2,))) == "over 1 step, 20.0 ms"
    window = Scope(window_ns=(0, 20 * MS))
    assert whole_of(program, "idle_breakdown", window) == "within the time window, 20.0 ms"
    both = replace(window, iterations=(0, 1))
    assert whole_of(program, "idle_breakdown", both).startswith("over 2 steps within the time window, ")


def test_the_header_says_how_much_of_the_recording_is_judged(program: Trace) -> None:
    recorded = duration(program.summary["duration_ns"])
    assert coverage_of(program, Scope()) == f"5 steps, 100 ms of {recorded} recorded"
    assert coverage_of(program, Scope(iterations=(2,))) == f"1 step, 20.0 ms of {recorded} recorded"
    window = Scope(window_ns=(0, 20 * MS))  # whose first half lies before the steps
    assert coverage_of(program, window) == f"1 step within the time window, 9.99 ms of {recorded} recorded"


@pytest.mark.parametrize("kind", ["overview", "temporal_breakdown"])
def test_the_time_is_that_of_the_answer(kind: str) -> None:
    trace = examples.load("ddp_4ranks")
    scope = judged_scope(trace) if kind == "overview" else Scope()
    each = sorted(analysis.temporal_breakdown(trace, scope)["window_ns"])
    least, most = duration(int(each[0])), duration(int(each[-1]))
    time = most if least == most else f"{least} to {most}"
    assert whole_of(trace, kind, Scope()).endswith(f", {time} on each rank")


def test_nothing_is_judged_of_a_file_that_lost_events(tmp_path: Path) -> None:
    program = Program()
    for _ in range(100):
        with program.inside("cpu_op", "aten::mm", **{"External id": 5 * program._operators}):
            program.launch(MS)
    trace = program.open(tmp_path)
    assert trace.rank(trace.ranks[0]).recording.filtered
    assert whole_of(trace, "overview", Scope()) == ""
    assert whole_of(trace, "temporal_breakdown", Scope()).startswith("over all recorded device work")


def test_a_panel_shows_it(program: Trace, until: Any) -> None:
    selection = Selection()
    panel = BreakdownPanel(program, "temporal_breakdown", selection=selection)
    until(lambda: panel.status == "idle" and panel.whole == "over 5 steps, 100 ms")
    selection.iterations = (1,)
    until(lambda: panel.whole == "over 1 step, 20.0 ms")


def test_what_could_not_be_read_is_told_with_every_answer(tmp_path: Path) -> None:
    for file in examples.path("ddp_4ranks").iterdir():
        shutil.copy(file, tmp_path)
    max(tmp_path.iterdir()).write_text("<html>not a trace</html>")
    trace = Trace.open(tmp_path, cache=False)
    missing = "without rank 3 of 4, 1 file that could not be read"
    assert whole_of(trace, "memory_peak", Scope()) == missing
    assert whole_of(trace, "idle_breakdown", Scope()).endswith(f" on each rank, {missing}")
    assert whole_of(trace, "overview", Scope()).endswith(missing)
