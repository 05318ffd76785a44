"""Work that may be communication is counted as such by one click, in every part, and back again."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import traitlets as t

from hta_widgets import Scope, Trace, TraceExplorer, analysis
from hta_widgets.trace.class_rules import parse
from tests.widgets.decoded import numbers
from tests.widgets.exchanging_job import MARKUP, RING, write_job
from tests.widgets.test_explorer_clock import part
from tests.widgets.test_trace_explorer import settled

pytestmark = pytest.mark.slow

STEPS = Scope(iterations=(0, 1))  # which is what panels are about: steps, not all recorded device work


@pytest.fixture
def job(tmp_path: Path) -> Path:
    return write_job(tmp_path / "job", RING, "other_send")


@pytest.fixture
def explorer(job: Path, until: Any) -> TraceExplorer:
    explorer = TraceExplorer(job, panels=["temporal_breakdown", "comm_comp_overlap"])
    until(lambda: settled(explorer))
    return explorer


def suspected(explorer: TraceExplorer) -> set[str]:
    return {row["name"] for row in explorer.health if row["check"] == "maybe_communication"}


def test_one_click_counts_it_everywhere(explorer: TraceExplorer, job: Path, until: Any) -> None:
    assert suspected(explorer) == {RING, "other_send"}
    loaded = explorer.trace
    explorer.set_state({"communication": [RING]})  # as the browser does
    until(lambda: settled(explorer) and suspected(explorer) == {"other_send"})
    ruled = Trace.open(job, classes={"tokenSend": "communication"})
    expected = analysis.temporal_breakdown(ruled, STEPS)
    assert expected["exposed_communication_ns"].tolist() == [10_000, 10_000]  # the gaps between two kernels
    pd.testing.assert_frame_equal(explorer.frame("temporal_breakdown"), expected)
    overlap = next(panel for _, panel in explorer.parts if getattr(panel, "kind", "") == "comm_comp_overlap")
    pd.testing.assert_frame_equal(overlap.frame(), analysis.comm_comp_overlap(ruled, STEPS))
    column = "exposed_communication_ns"
    assert numbers(part(explorer, "ranks").table, column) == expected[column].tolist()
    (row,) = [row for row in explorer.health if row["check"] == "counted_as_communication"]
    assert (row["name"], row["count"], row["ranks"]) == (RING, 4, [0, 1])
    assert "no_communication" not in {row["check"] for row in explorer.health}
    assert f"communication=[{RING!r}]" in part(explorer, "breadcrumb").code
    explorer.set_state({"communication": []})
    until(lambda: settled(explorer) and suspected(explorer) == {RING, "other_send"})
    assert explorer.trace is loaded
    assert explorer.rules == ""


def test_the_rules_can_be_kept(explorer: TraceExplorer, job: Path, tmp_path: Path) -> None:
    explorer.communication = [RING]
    (rule,), wrong = parse(explorer.rules)
    assert (wrong, rule.event_class.label) == ([], "communication")
    assert rule.pattern.search(RING) and not rule.pattern.search("other_send")
    assert explorer.save_rules(job).read_text() == explorer.rules
    again = Trace.open(job)
    expected = analysis.temporal_breakdown(again, STEPS)
    pd.testing.assert_frame_equal(explorer.frame("temporal_breakdown"), expected)


def test_the_clock_and_the_classes_go_together(explorer: TraceExplorer, job: Path) -> None:
    explorer.clock, explorer.communication = "device", (RING,)
    both = Trace.open(job, clock="device", classes={"tokenSend": "communication"})
    first = Scope(iterations=(0,))  # on the device nothing says when the last step ends
    expected = analysis.temporal_breakdown(both, first)
    pd.testing.assert_frame_equal(explorer.frame("temporal_breakdown"), expected)
    assert set(explorer.trace.iterations["clock"]) == {"device"}


@pytest.mark.parametrize("junk", [3, [1], [None], {"a": {}, 4: 5}])
def test_what_is_no_name_is_refused(explorer: TraceExplorer, junk: Any) -> None:
    trace = explorer.trace
    with pytest.raises(t.TraitError):
        explorer.set_state({"communication": junk})
    assert (explorer.communication, explorer.trace) == ((), trace)


@pytest.mark.parametrize("name", [MARKUP, "(((", "a{9999999}", "tokenSend|gemm", ""])
def test_a_name_is_never_a_pattern(tmp_path: Path, until: Any, name: str) -> None:
    explorer = TraceExplorer(write_job(tmp_path, MARKUP), panels=["temporal_breakdown"])
    explorer.communication = [name]
    until(lambda: settled(explorer))
    (row,) = [row for row in explorer.health if row["check"] == "counted_as_communication"]
    assert row["count"] == (4 if name == MARKUP else 0)
