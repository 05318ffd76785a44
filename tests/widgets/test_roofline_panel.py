"""The panel of the roofline: the devices that it knows, and peaks stated in Python or in the page."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from traitlets import TraitError

from hta_widgets import Scope, Trace, TraceExplorer, analysis
from hta_widgets.widgets.breakdown_panel import BreakdownPanel
from hta_widgets.widgets.freezing import freeze, settle
from hta_widgets.widgets.notes import notes_on
from hta_widgets.widgets.roofline_panel import RooflinePanel
from tests.analysis.test_roofline import COPY, SQUARE, TF32, US, opened, operator

pytestmark = pytest.mark.slow

OWN = {"A100 40GB": {"tflops": {"tensor_tf32": 100.0}}}


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    return opened(
        tmp_path_factory.mktemp("job"),
        operator("aten::mm", 1, TF32, 100 * US, *SQUARE),
        operator("aten::add", 2, COPY, 60 * US, *SQUARE),
        operator("aten::mine", 3, COPY, 40 * US),
    )


def shown(explorer: TraceExplorer) -> RooflinePanel:
    (panel,) = (part for _, part in explorer.parts if isinstance(part, RooflinePanel))
    settle([panel])
    return panel


def test_it_knows_the_devices_and_where_their_peaks_are_from(trace: Trace) -> None:
    panel = RooflinePanel(trace)
    settle([panel])
    (device,) = panel.devices
    assert (device["name"], device["source"]) == ("A100 40GB", "NVIDIA A100 datasheet")
    assert device["memory_gb_s"] == 1555
    units = {unit["unit"]: unit["peak"] for unit in device["units"]}
    assert (units["tensor_tf32"], units["simt_fp32"], units["simt_fp16"]) == (156, 19.5, None)
    assert panel.marks["rows"] == 2
    # a report keeps them, and the view has no other source
    assert freeze(panel)[0].state["devices"] == panel.devices


def test_what_has_no_formula_is_one_line(trace: Trace) -> None:
    (note,) = notes_on(trace, "roofline", Scope(), analysis.roofline(trace))
    assert note == {
        "text": "20.0 % of device time has no formula: it is of operators without one.",
        "kind": "formula_coverage",
    }


def test_stated_peaks_are_those_of_the_explorer_and_of_python(trace: Trace) -> None:
    explorer = TraceExplorer(trace, panels=["roofline"])
    panel = shown(explorer)
    assert panel.expression == 'explorer.frame("roofline")'
    panel.set_state({"peaks": OWN})  # as the page does
    settle([panel])
    assert explorer.peaks == OWN
    expected = analysis.roofline(trace, peaks=OWN)
    assert expected["peak_tflops_s"].iloc[0] == 100
    for frame in (panel.frame(), explorer.frame("roofline"), eval(panel.expression, {"explorer": explorer})):
        pd.testing.assert_frame_equal(frame, expected)
    again: dict[str, Any] = {}
    assert f"peaks={OWN!r}" in explorer._fixed[0][1].code
    exec(explorer._code().replace(repr(explorer._source), "trace"), again | {"trace": trace}, again)
    assert again["explorer"].peaks == OWN
    # the panel is closed and opened again
    explorer.panels = []
    pd.testing.assert_frame_equal(explorer.frame("roofline"), expected)
    explorer.panels = ["roofline"]
    assert shown(explorer).peaks == OWN
    explorer.peaks = {}
    pd.testing.assert_frame_equal(shown(explorer).frame(), analysis.roofline(trace))


@pytest.mark.parametrize(
    "wrong", [{"A100 40GB": {"memory_gb_s": -1}}, {"A100 40GB": 3}, [1], {"X": {"no": {}}}]
)
def test_peaks_that_cannot_be_are_refused(trace: Trace, wrong: Any) -> None:
    explorer = TraceExplorer(trace, panels=["roofline"], peaks=OWN)
    panel = shown(explorer)
    for owner in (explorer, panel):
        with pytest.raises(TraitError, match="peaks"):
            owner.peaks = wrong
    with pytest.raises(TraitError, match="peaks"):
        panel.set_state({"peaks": wrong})
    assert explorer.peaks == panel.peaks == OWN


def test_peaks_that_contradict_the_datasheet_are_an_error_that_can_be_taken_back(trace: Trace) -> None:
    panel = RooflinePanel(trace, peaks={"A100 40GB": {"achievable": {"tensor_tf32": 200}}})
    settle([panel])
    assert panel.status == "error"
    assert "achievable 200 is above the peak, 156 TFLOP/s" in panel.message
    panel.peaks = {}
    settle([panel])
    assert (panel.status, panel.message) == ("idle", "")


def test_an_unknown_device_is_named_and_has_no_peaks(tmp_path: Path) -> None:
    unknown = opened(tmp_path, operator("aten::mm", 1, TF32, 100 * US, *SQUARE), device="Future 1")
    panel = RooflinePanel(unknown)
    settle([panel])
    (device,) = panel.devices
    assert (device["name"], device["source"], device["memory_gb_s"]) == ("Future 1", "", None)
    assert panel.status == "idle"
    assert panel.marks["rows"] == 1


def test_rows_of_operators_select_events_where_they_are_some(trace: Trace) -> None:
    panel = BreakdownPanel(trace, "operators")
    (form,) = panel.form
    assert form["choices"] == ("name", "shapes", "module", "module_class", "category", "call_path")
    for by, names in (("name", True), ("shapes", True), ("category", False), ("call_path", True)):
        panel.options = {"by": by}
        settle([panel])
        assert panel.status == "idle"
        columns = [column["name"] for column in panel.marks["columns"]]
        assert ("names" in columns) == names
    for by in ("module", "module_class"):
        panel.options = {"by": by}
        settle([panel])
        assert (panel.status, "with_stack=True" in panel.message) == ("empty", True)
