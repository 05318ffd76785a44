"""Runs side by side: linked panels and timelines that refuse in words, stop, and leave nothing."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from hta_widgets import (
    ComparisonPanel,
    DiffViewer,
    Scope,
    Selection,
    TimelineScrubber,
    Trace,
    TraceExplorer,
    analysis,
    examples,
)
from hta_widgets.analysis import COMPARISONS
from hta_widgets.analysis.compare.events import event_names
from hta_widgets.errors import MissingDataError, NotComparableError, TraceNotFoundError
from hta_widgets.widgets.loading import LoadingCancelledError, open_all
from hta_widgets.widgets.runs import default_names
from tests.analysis.kineto_file import event, job, kernel, launch
from tests.report.reading import content
from tests.support import shared_trace
from tests.widgets.comparing import SETUPS, Until, counted

pytestmark = pytest.mark.slow


@pytest.fixture
def viewer(pair: dict[str, Trace], until: Until) -> Iterator[DiffViewer]:
    made = DiffViewer(pair)
    until(lambda: at_rest(made))
    yield made
    made.close()


def at_rest(viewer: DiffViewer) -> bool:
    return viewer.status != "busy" and all(part.status != "busy" for _, part, _ in viewer.parts)


def panel_of(viewer: DiffViewer, kind: str) -> ComparisonPanel:
    return next(part for area, part, own in viewer.parts if area == "panel" and own == kind)


def test_the_headline_is_the_change_of_a_step(viewer: DiffViewer, until: Until) -> None:
    """Without its parts, which the panel has; none where steps cannot be compared."""
    until(lambda: at_rest(viewer) and bool(viewer.headline))
    waterfall = panel_of(viewer, "step_waterfall")
    assert waterfall.sentence.startswith(f"{viewer.headline}: ")
    assert viewer.headline.endswith(f"than one of {next(iter(viewer.selections))}")
    assert viewer.headline in viewer.snapshot().to_svg()
    waterfall.status = "error"
    assert viewer.headline == ""


def test_the_story_is_of_what_is_selected_in_each_run(
    viewer: DiffViewer, pair: dict[str, Trace], until: Until
) -> None:
    """Its bars are the steps of `step_waterfall`, and it settles: what it shows asks for nothing anew."""
    story = viewer.parts[0][1]
    for ranks in ((), (1,)):
        viewer.selections["two"].ranks = ranks
        until(lambda: at_rest(viewer))
        frame = viewer.frame("step_waterfall")
        steps = frame[frame["part"] == "step"].set_index("run")["time_ns"].to_dict()
        bars = story.content["runs"]
        assert {bar["name"]: bar["ns"] for bar in bars} == steps
        assert all(sum(piece["ns"] for piece in bar["pieces"]) == bar["ns"] for bar in bars)
        assert story.content["longest_ns"] == max(steps.values())
    assert story.content["cause"] in viewer.snapshot().to_svg()


def test_every_comparison_has_its_panel_and_every_run_its_timeline(viewer: DiffViewer) -> None:
    state = viewer.get_state()
    assert state["_view"] == "diff"
    areas = [(area, kind) for area, _, kind in state["parts"]]
    assert sorted(kind for area, kind in areas if area == "panel") == sorted(COMPARISONS)
    assert areas[0] == ("story", "")
    assert [kind for area, kind in areas if area == "timeline"] == ["one", "two"]
    assert all(reference.startswith("anywidget:") for _, reference, _ in state["parts"])
    assert [run["name"] for run in viewer.runs] == ["one", "two"]
    assert viewer.runs[1]["detail"] == "2 ranks, 3 iterations"
    assert {notice["severity"] for notice in viewer.notices} == {"warning"}
    assert any("World sizes differ" in notice["text"] for notice in viewer.notices)


def test_frames_and_figures_are_those_of_the_analysis(viewer: DiffViewer, pair: dict[str, Trace]) -> None:
    for kind in COMPARISONS:
        pd.testing.assert_frame_equal(viewer.frame(kind), COMPARISONS[kind].function(pair))
        assert viewer.figure(kind).layout.title.text == COMPARISONS[kind].title
    pd.testing.assert_frame_equal(viewer.frame("diff", by="op"), analysis.diff(pair, "op"))
    with pytest.raises(ValueError, match="no comparison"):
        viewer.frame("temporal_breakdown")
    given = viewer.frame("diff")
    given["change_ns"] = 7.0
    assert (viewer.frame("diff")["change_ns"] != 7.0).any()


def test_the_panels_expression_brings_its_frame_back(viewer: DiffViewer, until: Until) -> None:
    panel = panel_of(viewer, "diff")
    panel.set_state({"options": {"by": "op", "time": "host"}})
    until(lambda: at_rest(viewer))
    assert panel.expression == "viewer.frame(\"diff\", by='op', time='host')"
    shown = eval(panel.expression, {"viewer": viewer})
    pd.testing.assert_frame_equal(shown, panel.frame())
    assert panel.drawing.startswith("viewer.figure(")


def test_one_run_is_narrowed_alone(viewer: DiffViewer, pair: dict[str, Trace], until: Until) -> None:
    viewer.selections["two"].ranks = (1,)
    until(lambda: at_rest(viewer))
    pd.testing.assert_frame_equal(
        viewer.frame("run_table"), analysis.run_table(pair, {"two": Scope(ranks=(1,))})
    )
    assert viewer.frame("run_table")["ranks"].tolist() == [1, 1]
    timelines = {kind: part for area, part, kind in viewer.parts if area == "timeline"}
    assert (timelines["one"].ranks, timelines["two"].ranks) == ((), (1,))


def test_a_chosen_line_lights_up_in_every_timeline(
    viewer: DiffViewer, pair: dict[str, Trace], until: Until
) -> None:
    frame = viewer.frame("diff")
    both = frame[(frame["change"] == "same") & (frame["run"] == "two") & (frame["before_count"] > 0)].iloc[0]
    panel = panel_of(viewer, "diff")
    panel.set_state({"line": [both["kind"], both["line"]]})
    assert viewer.line == (both["kind"], both["line"])
    until(lambda: viewer.selections["two"].names == (both["line"],))
    assert viewer.selections["one"].names == (both["line"],)
    events = viewer.events
    assert next(iter(events)) == "run"
    assert set(events["name"]) == {both["line"]}
    assert set(events["run"]) == {"one", "two"}
    viewer.line = None
    assert panel.line is None
    assert viewer.selections["one"].names == viewer.selections["two"].names == ()


def test_a_line_that_a_run_lacks_lights_nothing_there(viewer: DiffViewer, until: Until) -> None:
    frame = viewer.frame("diff")
    added = frame[(frame["change"] == "added") & (frame["run"] == "two")].iloc[0]
    viewer.line = (added["kind"], added["line"])
    until(lambda: viewer.selections["two"].names != ())
    timeline = next(part for area, part, kind in viewer.parts if kind == "one")
    question = {"bins": 8, "names": list(timeline.names), "query": "", "ranks": []}
    assert timeline.names and timeline.ask("matches", question)[0]["count"] == 0
    assert set(viewer.events["run"]) == {"two"}


def test_what_others_chose_is_left_alone(pair: dict[str, Trace], until: Until) -> None:
    """A viewer takes back the names that it lit, from an explorer's selection too, and no others."""
    shared = {name: Selection() for name in pair}
    viewer = DiffViewer(pair, selections=shared)
    until(lambda: at_rest(viewer))
    frame = viewer.frame("diff")
    same = frame[(frame["change"] == "same") & (frame["run"] == "two")].iloc[0]
    line = same["kind"], same["line"]
    viewer.line = line
    until(lambda: shared["one"].names == shared["two"].names == (line[1],))
    shared["two"].names = ("chosen in an explorer",)
    viewer.line = None
    assert (shared["one"].names, shared["two"].names) == ((), ("chosen in an explorer",))
    viewer.line = line
    until(lambda: shared["two"].names == (line[1],))
    viewer.close()
    viewer.close()
    assert shared["one"].names == shared["two"].names == ()


def test_another_selection_pairs_anew(viewer: DiffViewer, until: Until) -> None:
    """The browser keeps the anchors until it is notified that others apply."""
    ranks = list(viewer.traces["two"].ranks)
    before = viewer.pairing
    viewer.selections["two"].ranks = ranks[-1:]
    viewer.selections["one"].window = (0, 5_000_000)
    viewer.selections["one"].iterations = (10,)
    assert viewer.pairing == before + 3
    viewer.selections["one"].names = ("gemm",)  # lights up, and moves nothing
    viewer.selections["two"].focus = (0, 1)
    assert viewer.pairing == before + 3


def test_what_is_looked_at_in_one_run_is_looked_at_in_the_other(viewer: DiffViewer, until: Until) -> None:
    (first, base), (second, other) = viewer.traces.items()
    kernels = base.events(Scope(ranks=0)).query("event_class == 'compute'")
    chosen = int(kernels.iloc[len(kernels) // 2]["event_id"])
    viewer.selections[first].focus = (0, chosen)
    until(lambda: viewer.selections[second].focus is not None)
    rank, event_id = viewer.selections[second].focus or (0, 0)
    rows = other.events(Scope(ranks=rank))
    same = rows[rows["event_id"] == event_id]["name"].item()
    assert viewer.align == "op"  # else they would stand apart by what the steps do before
    assert rank == 0 and same == kernels[kernels["event_id"] == chosen]["name"].item()
    viewer.align = "step"
    viewer.selections[second].focus = None
    until(lambda: viewer.selections[first].focus is None)
    assert viewer.align == "step"  # there is nothing to align by


def test_anchors_are_by_what_the_browser_asks(viewer: DiffViewer) -> None:
    """Its question may come before its change of `align`."""
    view = {"run": 0, "t0": 0, "t1": 10_000_000}
    by_step, by_work = (viewer.ask("anchors", view | {"align": by})[0]["n"] for by in ("step", "op"))
    assert viewer.align == "step"
    assert by_work > by_step == viewer.ask("anchors", view)[0]["n"]


def test_the_picture_tells_what_the_panels_do(viewer: DiffViewer) -> None:
    viewer.selections["two"].ranks = (1,)
    picture = viewer.snapshot()
    assert picture.selected == "ranks 1 of two"
    shown = {answer.title: answer for answer in picture.answers}
    panels = {panel.title: panel for area, panel, _ in viewer.parts if area == "panel"}
    assert {title: answer.sentence for title, answer in shown.items()} == {
        "Mean step of each run": viewer.parts[0][1].content["cause"],
        **{title: panel.sentence for title, panel in panels.items()},
    }
    (fall,) = shown[panel_of(viewer, "step_waterfall").title].falls
    frame = viewer.frame("step_waterfall")
    rows = frame[(frame["run"] == "two") & (frame["part"] != "step")]
    *parts, whole = fall.steps
    assert whole.end - whole.start == sum(step.end - step.start for step in parts) == rows["change_ns"].sum()
    assert [step.start for step in parts] == [0, *(step.end for step in parts[:-1])]
    svg = picture.to_svg()
    assert viewer.headline in svg and whole.text in svg
    ElementTree.fromstring(svg)


def test_a_picture_of_runs_that_cannot_be_compared_says_so(until: Until) -> None:
    viewer = DiffViewer(examples.load("gpt2_ddp"), examples.load("inference_cuda_graphs"))
    until(lambda: at_rest(viewer))
    answers = viewer.snapshot().answers
    assert sum("cannot be compared" in answer.sentence for answer in answers) >= 3
    assert not any(answer.falls for answer in answers)
    viewer.close()


def test_the_events_of_an_operator_are_found_by_its_names(
    viewer: DiffViewer, pair: dict[str, Trace], until: Until
) -> None:
    panel_of(viewer, "diff").options = {"by": "op"}
    viewer.line = ("op", "aten::addmm")
    expected = event_names(pair, "op", "op", "aten::addmm")
    assert all(expected.values())
    until(lambda: viewer.selections["one"].names == tuple(sorted(expected["one"])))
    assert set(viewer.events["name"]) == {name for names in expected.values() for name in names}


def test_a_line_without_recorded_calls_says_why(
    viewer: DiffViewer, until: Until, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(*_: Any) -> None:
        raise MissingDataError("calls", "Record them.")

    monkeypatch.setattr("hta_widgets.widgets.diff_viewer.event_names", missing)
    viewer.line = ("op", "aten::mm")
    until(lambda: viewer.message != "")
    assert viewer.message == "The line's events cannot be found: the trace has no calls. Record them."
    assert viewer.status == "idle"
    viewer.line = None
    assert viewer.message == ""


def anchors(viewer: DiffViewer, run: int, start: float, end: float) -> tuple[dict[str, Any], np.ndarray]:
    layout, (data,) = viewer.ask("anchors", {"run": run, "t0": start, "t1": end})
    return layout, np.frombuffer(data, "<f8").reshape(layout["runs"], layout["n"])


@pytest.mark.parametrize("align", ["step", "op"])
def test_anchors_rise_in_every_run_and_hold_the_steps(
    jobs: dict[str, Trace], until: Until, align: str
) -> None:
    viewer = DiffViewer(jobs)
    until(lambda: at_rest(viewer))
    viewer.align = align
    for run, trace in enumerate(jobs.values()):
        steps = trace.rank(0).iterations
        start, end = steps["start_ns"].iloc[1], steps["end_ns"].iloc[1]
        layout, times = anchors(viewer, run, start, end)
        assert times.shape == (4, layout["n"])
        assert (np.diff(times, axis=1) > 0).all()
        assert layout["from"] <= start < end <= layout["to"]
        starts = [item.rank(0).iterations["start_ns"].tolist() for item in jobs.values()]
        corresponding = set(map(tuple, times.T.tolist()))
        assert set(zip(*starts, strict=True)) <= corresponding
    assert (layout["n"] > 20) == (align == "op")
    viewer.close()


def test_anchors_rise_where_one_run_pauses_between_steps_and_the_other_does_not(
    tmp_path: Path, until: Until
) -> None:
    def run(name: str, pause: int) -> Trace:
        events = []
        for step in range(4):
            start = step * (100_000 + pause)
            events += [
                event("user_annotation", f"ProfilerStep#{step}", start, 100_000),
                launch(start + 10_000, step + 1),
                kernel("gemm", start + 20_000, 50_000, correlation=step + 1),
            ]
        folder = tmp_path / name
        folder.mkdir()
        return job(folder, events)

    viewer = DiffViewer({"with pauses": run("with", 5_000), "without": run("without", 0)})
    until(lambda: at_rest(viewer))
    _, times = anchors(viewer, 0, 0, 1e6)
    assert (np.diff(times, axis=1) > 0).all()
    begins = {(105_000 * step, 100_000 * step) for step in range(4)}
    assert begins <= set(map(tuple, times.T.tolist()))
    viewer.close()


def test_a_run_corresponds_to_itself(until: Until) -> None:
    path = examples.path("gpt2_ddp")
    viewer = DiffViewer(path, path)
    assert list(viewer.selections) == ["gpt2_ddp", "gpt2_ddp (2)"]
    viewer.wait()
    until(lambda: at_rest(viewer) and len(viewer.parts) > 0)
    for align in ("step", "op"):
        viewer.align = align
        _, times = anchors(viewer, 0, 0, 1e7)
        assert (times[0] == times[1]).all()
    assert viewer.notices == []
    for kind in ("run_table", "step_waterfall", "diff"):
        assert not viewer.frame(kind)["change_ns"].any()
    assert not panel_of(viewer, "diff").frame()["significant"].any()
    viewer.close()


def test_what_cannot_be_compared_says_so_and_still_shows_its_timelines(until: Until) -> None:
    pair = {"training": examples.load("gpt2_baseline"), "serving": examples.load("inference_cuda_graphs")}
    viewer = DiffViewer(pair)
    until(lambda: at_rest(viewer))
    assert viewer.status == "idle"
    assert viewer.notices[0]["severity"] == "error"
    assert "a step is not the same" in viewer.notices[0]["text"].lower()
    for kind in ("run_table", "step_waterfall", "diff"):
        panel = panel_of(viewer, kind)
        assert panel.status == "empty"
        assert panel.message.startswith("These runs cannot be compared: ")
        with pytest.raises(NotComparableError):
            viewer.frame(kind)
    assert panel_of(viewer, "comparability").status == "idle"
    assert all(part.status == "idle" for area, part, _ in viewer.parts if area == "timeline")
    layout, times = anchors(viewer, 0, 0, 1e6)
    assert times.shape == (2, layout["n"])
    viewer.close()


def test_runs_without_device_events_compare_by_host_time(until: Until) -> None:
    path = shared_trace("hta/cpu_only")
    viewer = DiffViewer(path, path)
    viewer.wait()
    until(lambda: at_rest(viewer) and len(viewer.parts) > 0)
    for kind in ("run_table", "step_waterfall"):
        assert panel_of(viewer, kind).status == "empty"
        assert panel_of(viewer, kind).message
    panel = panel_of(viewer, "diff")
    panel.options = {"by": "op"}
    until(lambda: at_rest(viewer))
    assert panel.status == "idle", panel.message
    assert not panel.frame()["change_ns"].any()
    layout, _ = anchors(viewer, 0, 0, 1e6)
    assert layout["runs"] == 2
    viewer.close()


def test_four_setups_stand_side_by_side(jobs: dict[str, Trace], until: Until) -> None:
    viewer = DiffViewer(*(examples.path(name) for name in SETUPS))
    assert repr(viewer) == (
        "DiffViewer('gpt2_baseline': 1 file; 'gpt2_ddp': 2 files; "
        "'gpt2_fsdp_full_shard': 2 files; 'gpt2_fsdp_shard_grad_op': 2 files)"
    )
    viewer.wait()
    until(lambda: at_rest(viewer) and len(viewer.parts) > 0)
    assert panel_of(viewer, "step_waterfall").legend == list(SETUPS[1:])
    assert panel_of(viewer, "run_table").rows == 4
    assert "run" in [column["name"] for column in panel_of(viewer, "diff").table["columns"]]
    pd.testing.assert_frame_equal(viewer.frame("run_table"), analysis.run_table(jobs))
    viewer.close()


def test_real_runs_of_a_change(until: Until) -> None:
    viewer = DiffViewer(shared_trace("hta/trace_diff/control"), shared_trace("hta/trace_diff/test"))
    viewer.wait()
    until(lambda: at_rest(viewer) and len(viewer.parts) > 0)
    for kind in COMPARISONS:
        panel = panel_of(viewer, kind)
        assert panel.status in ("idle", "empty"), panel.message
    assert all(part.status == "idle" for area, part, _ in viewer.parts if area == "timeline")
    viewer.close()


def test_an_explorer_compares_its_run_and_shares_its_selection(until: Until) -> None:
    explorer = TraceExplorer(examples.path("gpt2_baseline"))
    viewer = explorer.diff(examples.path("gpt2_ddp"))
    assert list(viewer.selections) == ["gpt2_baseline", "gpt2_ddp"]
    assert viewer.selections["gpt2_baseline"] is explorer.selection
    viewer.wait()
    until(lambda: at_rest(viewer) and len(viewer.parts) > 0)
    assert viewer.traces["gpt2_baseline"] is explorer.trace
    explorer.selection.iterations = explorer.trace.iterations["iteration"][:1]
    until(lambda: at_rest(viewer))
    assert viewer.frame("run_table")["steps"].tolist()[0] == 1
    named = explorer.diff(examples.path("gpt2_ddp"), names=("before", "after"))
    assert named.selections["before"] is explorer.selection
    for widget in (named, viewer, explorer):
        widget.close()


def test_names_tell_runs_apart(tmp_path: Path, pair: dict[str, Trace]) -> None:
    paths = [tmp_path / item / "trace" for item in "ab"]
    assert default_names(paths) == ("a/trace", "b/trace")
    assert default_names([str(paths[0]), "s3://bucket/run/x/", paths[0]]) == ("trace", "x", "trace (2)")
    assert default_names(list(pair.values())) == ("run 1", "run 2")
    with pytest.raises(ValueError, match="distinct names"):
        DiffViewer(*pair.values(), names=("same", "same"))
    with pytest.raises(ValueError, match="distinct names"):
        DiffViewer(*pair.values(), names=("one",))
    with pytest.raises(ValueError, match="at least 2 runs"):
        DiffViewer(pair["one"])
    with pytest.raises(ValueError, match="no run 'three'"):
        DiffViewer(pair, selections={"three": Selection()})


def test_ranks_by_file_are_one_run(until: Until) -> None:
    files = sorted(examples.path("gpt2_ddp").iterdir())
    viewer = DiffViewer({0: files[0]}, {0: files[1]}, names=("first", "second"))
    assert viewer.wait().traces["second"].ranks == [0]
    until(lambda: at_rest(viewer) and len(viewer.parts) > 0)
    viewer.close()


def test_a_path_that_is_not_there_raises_at_once(tmp_path: Path, pair: dict[str, Trace]) -> None:
    with pytest.raises(TraceNotFoundError):
        DiffViewer(pair["one"], tmp_path / "nothing")


def test_loading_can_be_stopped_and_begun_again(until: Until, monkeypatch: pytest.MonkeyPatch) -> None:
    held, opened = threading.Event(), Trace.open

    def slow(path: Any, progress: Any = None, **others: Any) -> Trace:
        held.wait(20)
        progress(0, 1, "reading")
        return opened(path, progress=progress, **others)

    monkeypatch.setattr("hta_widgets.widgets.loading.Trace.open", slow)
    viewer = DiffViewer(examples.path("gpt2_baseline"), examples.path("gpt2_ddp"))
    assert viewer.status == "busy" and viewer.parts == []
    viewer.ask("cancel", {})
    assert viewer.status == "empty"
    with pytest.raises(LoadingCancelledError):
        _ = viewer.traces
    held.set()
    viewer.ask("load", {})
    viewer.wait(30)
    until(lambda: at_rest(viewer) and len(viewer.parts) > 0)
    assert viewer.status == "idle"
    viewer.close()


def test_progress_counts_the_files_of_all_runs(until: Until) -> None:
    reported: list[tuple[float | None, str]] = []
    sources = {"one": examples.path("gpt2_baseline"), "two": examples.path("gpt2_ddp")}
    traces = open_all(sources, lambda done, total, text: reported.append((done / total, text)))
    assert list(traces) == ["one", "two"]
    shares = [share for share, _ in reported]
    assert shares == sorted(shares) and shares[-1] == 1.0
    assert {text.split(":")[0] for _, text in reported} == {"one", "two"}
    assert (1.0, "two: read") in reported, "the files of the first run are counted while the second is read"


def test_a_report_holds_the_panels_and_timelines_as_they_are(viewer: DiffViewer, tmp_path: Path) -> None:
    viewer.selections["two"].window = (0, 20_000_000)
    path = viewer.to_html(tmp_path / "runs.html", title="Before & <after>")
    html = path.read_text(encoding="utf-8")
    assert "<title>Before &amp; &lt;after&gt;</title>" in html
    saved = content(html)
    root = saved["parts"][saved["root"]]
    assert (root["state"]["_view"], root["state"]["runs"]) == ("diff", viewer.runs)
    shown = [(area, kind) for area, _, kind in root["state"]["parts"]]
    assert shown == [(area, kind) for area, _, kind in viewer.parts]
    parts = {kind: saved["parts"][reference]["state"] for _, reference, kind in root["state"]["parts"]}
    assert {parts[run]["run"]: parts[run]["window"] for run in ("one", "two")} == {
        "one": None,
        "two": [0, 20_000_000],
    }
    for kind in COMPARISONS:
        assert parts[kind]["sentence"] == panel_of(viewer, kind).sentence
        assert parts[kind]["rows"] == panel_of(viewer, kind).rows
    (question,) = root["questions"]
    assert question["method"] == "anchors" and not question["once"]
    layout = question["result"]
    times = np.frombuffer(question["buffers"][0], "<f8").reshape(layout["runs"], layout["n"])
    assert (np.diff(times, axis=1) > 0).all()
    assert layout["from"] < times.min() and times.max() < layout["to"]  # it holds wherever one looks


def test_what_a_report_lacks_of_both_runs_is_said_once(
    pair: dict[str, Trace], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(TimelineScrubber.__init__.__kwdefaults__, "client_slices", 100)
    viewer = DiffViewer({"before": pair["one"], "after": pair["one"]})
    notes = content(viewer.to_html(tmp_path / "runs.html").read_text(encoding="utf-8"))["about"]["notes"]
    assert len(notes) == 1 and "too many for a report" in notes[0]


def test_a_closed_viewer_computes_nothing_more(
    pair: dict[str, Trace], until: Until, monkeypatch: pytest.MonkeyPatch
) -> None:
    selections = {name: Selection() for name in pair}
    viewer = DiffViewer(pair, selections=selections)
    until(lambda: at_rest(viewer))
    parts = [part for _, part, _ in viewer.parts]
    asked = [counted(monkeypatch, kind) for kind in COMPARISONS]
    viewer.close()
    for selection in selections.values():
        selection.ranks = (0,)
        selection.window = (0, 5_000_000)
    assert all(part.comm is None for part in [viewer, *parts])
    assert not any(asked)
    assert all(part.status == "idle" for part in parts)


def test_closing_at_once_stops_the_work(pair: dict[str, Trace], until: Until) -> None:
    before = {thread for thread in threading.enumerate() if thread.name == "hta_widgets_loading"}
    viewer = DiffViewer(*(examples.path(name) for name in SETUPS))
    viewer.close()
    with pytest.raises(LoadingCancelledError):
        viewer.wait()
    until(
        lambda: (
            not {thread for thread in threading.enumerate() if thread.name == "hta_widgets_loading"} - before
        )
    )
    assert viewer.parts == []


def test_names_from_outside_stay_text(pair: dict[str, Trace], until: Until) -> None:
    hostile = {"<img src=x onerror=alert(1)>": pair["one"], "</script>": pair["two"]}
    viewer = DiffViewer(hostile)
    until(lambda: at_rest(viewer))
    assert [run["name"] for run in viewer.runs] == list(hostile)
    bundle = viewer._repr_mimebundle_()
    data = bundle[0] if isinstance(bundle, tuple) else bundle
    assert "text/html" not in (data or {})
    viewer.close()
