"""Whatever fails, a part says so and comes to rest; the browser cannot change what Python owns."""

import contextlib
import gc
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ipywidgets
import pytest
import traitlets

from hta_widgets import BreakdownPanel, EventsTable, RankSelector, TimelineScrubber, TraceExplorer
from hta_widgets.errors import NotAnsweredError
from hta_widgets.trace import Trace
from hta_widgets.widgets.freezing import freeze, settle
from hta_widgets.widgets.selection import FARTHEST_NS, Selection
from tests.report.reading import content

pytestmark = pytest.mark.slow

Until = Callable[[Callable[[], bool]], None]


def test_an_answer_that_cannot_be_shown_is_an_error(
    ddp: Trace, until: Until, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_panel: BreakdownPanel, _shown: object) -> None:
        raise ZeroDivisionError("no room")

    monkeypatch.setattr(BreakdownPanel, "_show", broken)
    panel = BreakdownPanel(ddp, "temporal_breakdown")
    until(lambda: panel.status == "error")
    assert panel.message == "ZeroDivisionError: no room"
    monkeypatch.undo()
    panel.selection.ranks = (0,)
    until(lambda: panel.status == "idle")
    assert panel.message == ""


@pytest.mark.parametrize("name", ["status", "message", "sentence", "table"])
def test_an_observer_that_fails_leaves_no_part_busy(ddp: Trace, until: Until, name: str) -> None:
    panel = BreakdownPanel(ddp, "temporal_breakdown")
    settle([panel])

    def observer(_change: object) -> None:
        raise ZeroDivisionError("in an observer")

    panel.observe(observer, name)
    with contextlib.suppress(ZeroDivisionError):  # it is the caller's own, and the caller may hear of it
        panel.selection.ranks = (1,)
    settle([panel], timeout=20)
    assert panel.status in ("idle", "error")


def test_a_report_of_a_broken_panel_says_so(
    ddp: Trace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_panel: BreakdownPanel, _question: object) -> None:
        raise ZeroDivisionError("no answer")

    monkeypatch.setattr(BreakdownPanel, "_compute", broken)
    explorer = TraceExplorer(ddp, panels=["temporal_breakdown"])
    saved = content(explorer.to_html(tmp_path / "report.html", timeout=30).read_text())
    (note,) = saved["about"]["notes"]
    assert note.startswith("No answer from the panel “") and note.endswith("ZeroDivisionError: no answer")


def test_waiting_for_a_part_has_a_limit(ddp: Trace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compute = BreakdownPanel._compute

    go_on = threading.Event()

    def slow(panel: BreakdownPanel, question: Any) -> Any:
        assert go_on.wait(60)
        return compute(panel, question)

    monkeypatch.setattr(BreakdownPanel, "_compute", slow)
    explorer = TraceExplorer(ddp, panels=["temporal_breakdown"])
    with pytest.raises(NotAnsweredError, match=r"no answer within 0\.2 s from .*the panel “") as caught:
        explorer.to_html(tmp_path / "report.html", timeout=0.2)
    # on a busy machine others may be late as well
    assert caught.value.parts[-1].startswith("the panel “") and isinstance(caught.value, TimeoutError)
    go_on.set()
    explorer.to_html(tmp_path / "report.html", timeout=60)


OWNED = {
    RankSelector: {
        "options": 5,
        "series": [1],
        "whole": "x",
        "table": None,
        "status": "busy",
        "message": "x",
    },
    TimelineScrubber: {"version": 99, "status": "busy", "_view": "breakdown"},
    EventsTable: {"rows": 10**9, "total": -1, "available_columns": [], "expression": "import os"},
}


@pytest.mark.parametrize("kind", OWNED)
def test_the_browser_cannot_write_what_python_owns(ddp: Trace, kind: Any) -> None:
    part = kind(ddp)
    settle([part])
    before = {name: getattr(part, name) for name in OWNED[kind]}
    part.set_state({**OWNED[kind], "ranks": [1]} if kind is not EventsTable else OWNED[kind])
    settle([part], timeout=20)
    assert {name: getattr(part, name) for name in OWNED[kind]} == before
    if kind is not EventsTable:
        assert part.selection.ranks == (1,)  # what is the browser's is taken
    part.selection.window = (0, 10**6)
    settle([part], timeout=20)
    assert part.status in ("idle", "empty")


def test_facts_and_health_of_an_explorer_are_pythons(ddp: Trace) -> None:
    explorer = TraceExplorer(ddp)
    settle([explorer, *(part for _, part in explorer.parts)])
    owned = (
        "header",
        "health",
        "notices",
        "message",
        "parts",
        "rules",
        "clocks",
        "available_panels",
        "layout",
    )
    before = {name: getattr(explorer, name) for name in owned}
    explorer.set_state(dict.fromkeys(owned, "junk") | {"panels": ["temporal_breakdown"]})
    assert {name: getattr(explorer, name) for name in owned if name != "parts"} == {
        name: value for name, value in before.items() if name != "parts"
    }
    assert explorer.panels == ("temporal_breakdown",) or explorer.panels == ["temporal_breakdown"]


NAN, INF = float("nan"), float("inf")
BAD: dict[str, list[Any]] = {
    "window": [
        (0, 1e19),
        (0, 1 << 63),
        (-1e300, 0),
        (NAN, 1),
        (0, INF),
        (0, 1, 2),
        "ab",
        5,
        ("0", "1"),
        (0, 0),
    ],
    "ranks": [[1e19], [1 << 63], [NAN], [INF], ["1"], [[1]], [1.5], [True], "12", b"12", {"a": 1}],
    "iterations": [[-(1 << 63)], [None], object()],
    "streams": [[1e300], 1.5],
    "names": [[1], 5, [None]],
    "query": [5, None],
    "focus": [(0, INF), (0, NAN), (0, 1e19), (-1, 0), (0, -1), (0,), "ab"],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name in BAD for value in BAD[name]])
def test_values_out_of_range_are_refused_from_python_and_the_browser(name: str, value: Any) -> None:
    selection = Selection(ranks=[1], window=(5, 9))
    before = selection.to_dict()
    with pytest.raises(traitlets.TraitError):
        setattr(selection, name, value)
    assert selection.to_dict() == before


def test_a_focused_slice_that_is_a_truth_value_is_refused(ddp: Trace, until: Until) -> None:
    timeline = TimelineScrubber(ddp)
    until(lambda: timeline.status == "idle")
    with pytest.raises(traitlets.TraitError):
        timeline.set_state({"focus_slice": True})
    timeline.set_state({"focus_slice": 1})
    assert timeline.focus is not None


def test_a_junk_window_from_the_browser_changes_no_part(ddp: Trace) -> None:
    panel = BreakdownPanel(ddp, "temporal_breakdown")
    for junk in ([0, 1e19], [0, "x"], {"a": 1}, [None, 5]):
        with pytest.raises(traitlets.TraitError):
            panel.set_state({"window": junk})
        assert panel.window is None and panel.selection.window is None
    settle([panel], timeout=20)
    assert panel.status == "idle"


@pytest.mark.parametrize("window", [(-FARTHEST_NS, FARTHEST_NS), (0, FARTHEST_NS), (-5.5, 9e15)])
def test_the_widest_windows_break_no_part(ddp: Trace, window: Any) -> None:
    explorer = TraceExplorer(ddp, panels=["temporal_breakdown", "idle_breakdown", "kernel_breakdown"])
    settle([explorer])
    explorer.selection.window = window
    parts = [part for _, part in explorer.parts]
    settle(parts, timeout=30)
    assert [part.status for part in parts if part.status == "error"] == []
    explorer.close()


def test_no_model_stays_after_close(ddp: Trace) -> None:
    def models() -> set[str]:
        return set(ipywidgets.widgets.widget._instances)

    warm = TraceExplorer(ddp)
    warm.close()
    before = models()
    for _ in range(3):
        explorer = TraceExplorer(ddp)
        settle([explorer])
        explorer.panels = ["temporal_breakdown", "kernel_breakdown"]
        explorer.close()
    left = models() - before
    assert not left, [type(ipywidgets.widgets.widget._instances[name]) for name in left]


def test_no_object_stays_from_a_cycle_of_open_and_close(ddp: Trace) -> None:
    """But dead references: pandas keeps weak ones of a frame's views, and drops those that died at times."""

    def cycle() -> None:
        explorer = TraceExplorer(ddp, panels=["temporal_breakdown"])
        settle([explorer, *(part for _, part in explorer.parts)], timeout=60)
        explorer.close()

    def living() -> Counter[str]:
        gc.collect()
        return Counter(
            str(type(each))
            for each in gc.get_objects()
            if not (type(each) is weakref.ReferenceType and each() is None)
        )

    for _ in range(4):
        cycle()
    before, cycles = living(), 6
    for _ in range(cycles):
        cycle()
    # the last one goes once the thread that answered it last has left its work
    deadline = time.monotonic() + 10
    while (more := _at_least(living() - before, cycles)) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert more == {}


def _at_least(found: Counter[str], least: int) -> dict[str, int]:
    return {kind: count for kind, count in found.items() if count >= least}


def test_freezing_a_part_that_answered_has_no_note(ddp: Trace) -> None:
    panel = BreakdownPanel(ddp, "temporal_breakdown")
    settle([panel])
    assert freeze(panel)[1] == []
