"""A panel says what the records do not support of its answer, as the verdict does."""

from __future__ import annotations

import pytest

from hta_widgets import Scope, Trace
from hta_widgets.analysis.registry import ANALYSES
from hta_widgets.widgets.breakdown_panel import BreakdownPanel
from hta_widgets.widgets.freezing import settle
from hta_widgets.widgets.notes import Note, notes_on
from tests.support import shared_input


def unsupported(trace: Trace, kind: str, scope: Scope | None = None) -> list[Note]:
    scope = scope or Scope()
    frame = ANALYSES[kind].answer(trace, scope)
    return [note for note in notes_on(trace, kind, scope, frame) if note.get("severity") == "open"]


@pytest.mark.parametrize(
    ("name", "kind", "why"),
    [
        ("recordings/captures", "idle_breakdown", "a graph is being captured, whose launches do not run."),
        (
            "recordings/captures",
            "temporal_breakdown",
            "a graph is being captured, whose launches do not run.",
        ),
        ("cases/h07_first_120_of_1000_lost", "gpu_utilization", "the work of 120 launches was not recorded."),
        ("recordings/captures", "roofline", "a graph is being captured, whose launches do not run."),
        ("cases/a07_device_clock_ahead", "idle_gaps", "clock runs at least 284 µs ahead of the host's."),
        (
            "cases/b02_xpu_kernels_missing_copies_only",
            "step_times",
            "such as step 2: the work of 4 launches was",
        ),
    ],
)
def test_what_records_do_not_support_is_told(name: str, kind: str, why: str) -> None:
    (note,) = unsupported(Trace.open(shared_input(name)), kind)
    assert note["text"].startswith("The records do not support what is said of ")
    assert why in note["text"] and note["hint"]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("recordings/captures", "kernel_breakdown"),  # kernels that ran
        ("cases/a07_device_clock_ahead", "step_times"),  # by the host's clock alone
        ("cases/a07_device_clock_ahead", "temporal_breakdown"),
        ("recordings/transformer_gh200", "idle_breakdown"),
    ],
)
def test_what_they_do_support_stands_alone(name: str, kind: str) -> None:
    assert unsupported(Trace.open(shared_input(name)), kind) == []


def test_steps_without_doubt_stand_alone() -> None:
    trace = Trace.open(shared_input("cases/j08_one_step_of_10_lost"))
    assert "step 6" in unsupported(trace, "idle_breakdown")[0]["text"]
    assert unsupported(trace, "idle_breakdown", Scope(iterations=(2, 3, 4))) == []
    assert unsupported(trace, "step_times") == [], "step 6 is left out"
    assert "step 6" in unsupported(trace, "step_times", Scope(iterations=(6,)))[0]["text"]


def test_the_panel_has_the_note() -> None:
    panel = BreakdownPanel(Trace.open(shared_input("cases/a07_device_clock_ahead")), "idle_breakdown")
    settle([panel])
    assert [note["severity"] for note in panel.notes] == ["open"]
