"""Recordings in which the device's clock runs ahead of the host's: causes of idle time cannot be told."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from hta_widgets.analysis.findings.overview import overview
from hta_widgets.analysis.findings.story import story
from hta_widgets.trace import Trace
from tests.verdicts.planted.devices import H100, opened
from tests.verdicts.planted.host_program import MS, US, Program


def recorded(folder: Path, ahead_ns: int, late_ns: int = 3 * MS) -> Trace:
    """A host that is late by so much in each step, and a device whose times are this much too early."""
    program = Program(at=10 * MS)
    for number in range(1, 6):
        with program.step(number):
            program.operator("aten::slow", late_ns)
            for _ in range(40):
                program.operator("aten::mm", 5 * US)
                program.launch(100 * US)
            program.synchronise()
    for event in program.events:
        if event["cat"] == "kernel":
            whole, _, part = event["ts"].partition(".")
            at = int(whole) * US + int(part) - ahead_ns
            event["ts"] = f"{at // US}.{at % US:03d}"
    return opened(folder, program, H100)


def frame(folder: Path, ahead_ns: int, late_ns: int = 3 * MS) -> pd.DataFrame:
    return overview(recorded(folder, ahead_ns, late_ns))


@pytest.mark.parametrize("ahead_ns", [0, 5 * US], ids=["agree", "agree within a launch's latency"])
def test_a_late_host_is_told_where_clocks_agree(tmp_path: Path, ahead_ns: int) -> None:
    assert "idle_host" in set(frame(tmp_path, ahead_ns)["topic"])


def test_gaps_far_longer_than_clocks_disagree_have_their_cause(tmp_path: Path) -> None:
    assert "idle_host" in set(frame(tmp_path, 500 * US, 20 * MS)["topic"])


def test_no_cause_is_told_where_work_begins_before_its_launch(tmp_path: Path) -> None:
    trace = recorded(tmp_path, 500 * US)
    rows = overview(trace)
    assert not {"idle_host", "sync_calls"} & set(rows["topic"])
    texts = rows.loc[rows["topic"] == "not_judged", "text"]
    assert any("it is unknown why devices are idle" in text for text in texts)
    assert "the device's clock runs at least 493 µs ahead of the host's" in story(trace, frame=rows).trust
