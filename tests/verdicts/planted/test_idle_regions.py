"""Programs whose hosts are late in one of their regions, in all of them, or in no region."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest

from hta_widgets.analysis.findings.overview import overview
from hta_widgets.analysis.findings.story import story
from tests.claims.checking import faults_of
from tests.verdicts.planted.host_program import US, Program


@pytest.mark.parametrize("late_in", ["generate", "both", "loop", ""])
@pytest.mark.parametrize(
    ("host_ns", "call_ns", "topic"), [(0, 30 * US, "launch_bound"), (40 * US, 2 * US, "idle_host")]
)
def test_the_region_in_which_a_host_is_late(
    late_in: str, host_ns: int, call_ns: int, topic: str, tmp_path: Path
) -> None:
    program = Program()
    for number in range(1, 6):
        around = program.inside("user_annotation", "loop") if late_in == "loop" else nullcontext()
        with program.step(number), around:
            for region in ("generate", "update"):
                late = region == "generate" or late_in == "both"
                with (
                    program.inside("user_annotation", region)
                    if late_in not in ("", "loop")
                    else nullcontext()
                ):
                    for at in range(100):
                        with program.inside("cpu_op", f"aten::op_{at % 7}"):
                            program.silence(host_ns if late else US)
                            program.launch((5 if late else 100) * US, call=call_ns if late else 2 * US)
                    program.synchronise()
    trace = program.open(tmp_path)
    frame = overview(trace)
    assert not list(faults_of(trace, frame))
    row = frame.set_index("topic").loc[topic]
    assert late_in != "generate" or " % of it lies in generate." in row["text"]
    assert ("(mostly generate)" in story(trace).headline) is (late_in == "generate")
    assert "loop" not in row["text"] and "update" not in row["text"]


def test_a_region_is_named_once(tmp_path: Path) -> None:
    """The host is in it all the time, for long, with nothing else recorded in it."""
    program = Program()
    for number in range(1, 6):
        with program.step(number):
            for _ in range(5):
                program.launch(200 * US)
            program.synchronise()
            with program.inside("user_annotation", "log_metrics"):
                program.silence(3_000 * US)
    headline = story(program.open(tmp_path)).headline
    assert headline.count("log_metrics") == 1 and "(mostly log_metrics)" in headline
