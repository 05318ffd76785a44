"""The What if panel of an explorer: made when it is opened, for the selected ranks and iterations."""

import math
from typing import Any

import pandas as pd
import pytest

from hta_widgets import Scope, Trace, TraceExplorer, WhatIf, analysis, edits
from hta_widgets.errors import MissingDataError
from hta_widgets.widgets import runtime as runtimes
from hta_widgets.widgets.freezing import settle
from tests.support import shared_trace

pytestmark = pytest.mark.slow

CHANGES = [edits.kernels(2.0), edits.host(0.5)]


def opened(explorer: TraceExplorer) -> WhatIf:
    explorer.panels = [*explorer.panels, "what_if"]
    (panel,) = (part for _, part in explorer.parts if isinstance(part, WhatIf))
    settle([panel])
    return panel


def test_without_the_panel_nothing_of_it_is_made(ddp: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtimes, "_shared", {})
    explorer = TraceExplorer(ddp)
    assert "what_if" not in explorer.panels
    assert [entry["kind"] for entry in explorer.available_panels if entry["group"] == "What if"] == [
        "what_if"
    ]
    assert runtimes.WHAT_IF_BUNDLE not in runtimes._shared
    panel = opened(explorer)
    assert panel._runtime is runtimes._shared[runtimes.WHAT_IF_BUNDLE]
    explorer.panels = []
    assert panel.comm is None


def test_it_answers_for_the_selection_as_the_analysis_does(ddp: Trace) -> None:
    numbers = ddp.iterations["iteration"].unique().tolist()
    explorer = TraceExplorer(ddp, panels=[], selection={"ranks": [1, 3]}, edits=CHANGES)
    pd.testing.assert_frame_equal(explorer.what_if(), analysis.what_if(ddp, CHANGES, Scope(ranks=(1, 3))))
    one = explorer.what_if(edits.communication(0))
    assert explorer.what_if(path=True)["path_cpu_bound_ns"].notna().all()
    pd.testing.assert_frame_equal(one, analysis.what_if(ddp, edits.communication(0), Scope(ranks=(1, 3))))
    assert explorer.what_if([])["after_ns"].equals(explorer.what_if([])["before_ns"])
    explorer.selection.iterations = numbers[:2]
    scope = Scope(ranks=(1, 3), iterations=tuple(numbers[:2]))
    expected = analysis.what_if(ddp, CHANGES, scope)
    for frame in (explorer.what_if(), explorer.frame("what_if")):
        pd.testing.assert_frame_equal(frame, expected)
    named = {"explorer": explorer, "edits": edits}
    pd.testing.assert_frame_equal(eval(opened(explorer).expression, named), expected)


def test_the_panel_follows_the_selected_ranks_and_iterations(ddp: Trace) -> None:
    explorer = TraceExplorer(ddp, panels=[], selection={"ranks": [1, 3]})
    panel = opened(explorer)
    assert panel.about["rank"] == 1
    assert [option["rank"] for option in panel.options] == [1, 3]
    panel.rank = 3
    settle([panel])
    assert panel.about["rank"] == 3
    explorer.selection.ranks = [0, 2]
    settle([panel])
    assert (panel.rank, panel.about["rank"]) == (None, 0)
    every = panel.answer["step"]["count"]
    number = int(ddp.iterations["iteration"].iloc[-1])
    explorer.selection.iterations = [number]
    settle([panel])
    (step,) = panel.frame().to_dict("records")
    assert (step["rank"], step["iteration"]) == (0, number)
    assert panel.answer["step"]["before"] == step["before_ns"]
    assert panel.answer["step"]["count"] == 1 < every
    # the recording as a whole is always replayed
    assert panel.answer["before"] == analysis.what_if(ddp, [], Scope(ranks=(0,)))["before_ns"].iloc[0]


def test_the_edits_belong_to_the_explorer(ddp: Trace) -> None:
    explorer = TraceExplorer(ddp, panels=[], edits=edits.kernels(2.0))
    panel = opened(explorer)
    assert panel.settings == {"kernels": 0.5}
    panel.set_state({"settings": {"kernels": 0.5, "host": 0.5}})
    assert [edit.expression for edit in explorer.edits] == ["edits.host(0.5)", "edits.kernels(2.0)"]
    explorer.panels = []
    explorer.edits = [edits.syncs(), edits.kernels(math.inf)]
    again = opened(explorer)
    assert again.settings == {"syncs": 0, "kernels": 0}
    assert panel.settings != again.settings
    code = explorer._code()
    made: dict[str, Any] = {"trace": ddp}
    exec(code, made)
    assert made["explorer"].edits == explorer.edits
    assert made["explorer"].panels == ("what_if",)


def test_a_recording_that_cannot_be_replayed_says_why() -> None:
    explorer = TraceExplorer(shared_trace("hta/mtia_inference_trace"), panels=["what_if"]).wait()
    settle([explorer])
    (panel,) = (part for _, part in explorer.parts if isinstance(part, WhatIf))
    settle([panel])
    assert panel.status == "empty"
    assert "simulated without changes, its time is off by" in panel.message
    with pytest.raises(MissingDataError):
        explorer.what_if(CHANGES)


def test_ranks_that_are_not_there_are_missing(ddp: Trace) -> None:
    explorer = TraceExplorer(ddp, panels=[], selection={"ranks": [77]})
    assert opened(explorer).status == "empty"


def test_another_clock_times_the_steps_anew(ddp: Trace) -> None:
    explorer = TraceExplorer(ddp, panels=[], clock="host", edits=CHANGES)
    panel = opened(explorer)
    explorer.clock = "device"
    settle([panel])
    assert panel.answer["step"]["clock"] == "device"
    assert panel.frame()["clock"].iloc[-1] == "device"


def test_what_counts_as_communication_is_another_graph(ddp: Trace) -> None:
    explorer = TraceExplorer(ddp, panels=[])
    panel = opened(explorer)
    before = panel.about
    name = analysis.kernel_breakdown(ddp).query("event_class == 'compute'")["name"].iloc[0]
    explorer.communication = [name]
    settle([panel])
    assert panel.about["rank"] == before["rank"]
    assert panel.about["graph"] != before["graph"]


def test_the_picture_of_an_explorer_has_the_answer(ddp: Trace) -> None:
    explorer = TraceExplorer(ddp, panels=["what_if"], edits=CHANGES)
    svg = explorer.snapshot().to_svg()
    assert " per step with " in svg
