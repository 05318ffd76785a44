"""The explorer: loading, selecting, handing out frames, and what it says about bad input."""

import json
import shutil
import threading
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import traitlets as t

from hta_widgets import Scope, Trace, TraceExplorer, analysis, examples
from hta_widgets.errors import HtaWidgetsError, TraceFormatError, TraceNotFoundError
from hta_widgets.widgets.loading import LoadingCancelledError
from tests.analysis.kineto_file import job, kernel, launch
from tests.support import shared_input

pytestmark = pytest.mark.slow

DDP = examples.path("ddp_4ranks")
FIXED = ("breadcrumb", "ranks", "iterations", "timeline", "inspector", "story")


def settled(explorer: TraceExplorer) -> bool:
    return explorer.status != "busy" and all(part.status != "busy" for _, part in explorer.parts)


def test_loads_and_places_its_parts(until: Any) -> None:
    explorer = TraceExplorer(DDP)
    assert repr(explorer) == "TraceExplorer('ddp_4ranks': 4 files)"
    until(lambda: settled(explorer))
    assert [area for area, _ in explorer.parts] == [*FIXED, "panel", "panel"]
    assert explorer.panels == ("temporal_breakdown", "comm_comp_overlap")
    assert {fact["label"]: fact["value"] for fact in explorer.header}["Ranks"] == "4"
    assert all(part.selection is explorer.selection for _, part in explorer.parts)
    text = explorer._repr_mimebundle_()[0]["text/plain"]
    assert text == repr(explorer)


def test_selection_to_dataframe() -> None:
    explorer = TraceExplorer(DDP, selection={"ranks": [1]}).wait()
    start, end = explorer.trace.extent_ns
    explorer.selection.window = (start, (start + end) // 2)
    scope = Scope(ranks=(1,), window_ns=explorer.selection.window)
    pd.testing.assert_frame_equal(explorer.events, explorer.trace.events(scope))
    explorer.selection.query = "NCCL"
    assert explorer.events["name"].str.lower().str.contains("nccl").all()
    assert len(explorer.events)
    name = explorer.events["name"].iloc[0]
    explorer.selection.names = [name]
    assert set(explorer.events["name"]) == {name}
    frame = explorer.frame("comm_comp_overlap")
    pd.testing.assert_frame_equal(frame, analysis.comm_comp_overlap(explorer.trace, scope))
    assert explorer.figure("comm_comp_overlap").data


def test_flags_are_a_table_and_come_back_with_the_code(ddp: Trace, until: Any) -> None:
    explorer = TraceExplorer(ddp)
    until(lambda: explorer.parts)
    assert explorer.flags.dtypes.astype(str).to_dict() == {"time_ns": "int64", "note": "str"}
    parts: dict[str, Any] = dict(explorer.parts)
    parts["timeline"].set_state({"flags": [[2000, "late <b>"], [1000.0, ""]]})  # as the browser sends it
    assert explorer.flags.to_dict("list") == {"time_ns": [1000, 2000], "note": ["", "late <b>"]}
    assert "'flags': ((1000, ''), (2000, 'late <b>'))" in parts["breadcrumb"].code
    explorer.close()


def test_takes_an_open_trace(ddp: Trace) -> None:
    explorer = TraceExplorer(ddp, panels=["comm_comp_overlap"])
    assert repr(explorer).startswith("TraceExplorer('ddp_4ranks': 4 ranks, ")
    assert explorer.trace is ddp
    assert ddp.name == explorer.header[0]["value"] == "ddp_4ranks"
    assert [area for area, _ in explorer.parts] == [*FIXED, "panel"]


def test_missing_path_and_empty_folder_raise_at_once(tmp_path: Path) -> None:
    with pytest.raises(TraceNotFoundError):
        TraceExplorer(tmp_path / "nowhere")
    with pytest.raises(TraceNotFoundError):
        TraceExplorer(tmp_path)
    with pytest.raises(ValueError, match="no analysis 'nonsense'"):
        TraceExplorer(DDP, panels=["nonsense"])


@pytest.mark.parametrize(
    "text",
    ['{"hello": "world"}', '{"traceEvents": []}', "not json at all", ""],
    ids=["foreign", "none", "text", "empty"],
)
def test_nothing_usable_is_shown_and_raised(tmp_path: Path, until: Any, text: str) -> None:
    (tmp_path / "a.json").write_text(text)
    explorer = TraceExplorer(tmp_path)
    until(lambda: explorer.status == "error")
    assert "TraceFormatError" in explorer.message
    assert "a.json" in explorer.message
    with pytest.raises(TraceFormatError):
        _ = explorer.trace
    with pytest.raises(HtaWidgetsError):
        explorer.wait()


def test_one_broken_rank_does_not_sink_the_others(tmp_path: Path, until: Any) -> None:
    for file in sorted(DDP.iterdir())[:2]:
        shutil.copy(file, tmp_path)
    (tmp_path / "rank-2.pt.trace.json.gz").write_bytes(b"\x1f\x8b broken")
    explorer = TraceExplorer(tmp_path)
    until(lambda: settled(explorer))
    assert explorer.trace.ranks == [0, 1]
    assert any("rank-2" in notice["text"] for notice in explorer.notices)
    assert any(row["severity"] == "error" for row in explorer.health)


def test_what_several_ranks_have_in_common_is_counted_over_all(tmp_path: Path, until: Any) -> None:
    lost = {rank: [launch(1_000 * at, at) for at in range(1, 3 + rank)] for rank in range(3)}
    explorer = TraceExplorer(job(tmp_path, *([*calls, kernel("gemm", 9_000, 10)] for calls in lost.values())))
    until(lambda: settled(explorer))
    [row] = [row for row in explorer.health if row["check"] == "lost_launches"]
    assert (row["count"], row["ranks"]) == (2 + 3 + 4, [0, 1, 2])


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("traces/hta/cpu_only", "no work of an accelerator was recorded"),
        ("recordings/wsl_rows_lost", "20 launches of device work, but none of the work was recorded"),
    ],
)
def test_that_there_is_no_device_work_is_explained_once(name: str, words: str, until: Any) -> None:
    explorer = TraceExplorer(shared_input(name))
    until(lambda: settled(explorer))
    assert not explorer.notices  # the story says what is unknown without it
    row = next(row for row in explorer.health if row["check"] == "no_device_events")
    assert row["detail"] == words and row["remedy"]
    assert len(explorer.events)


def test_markup_in_a_trace_stays_text(tmp_path: Path, until: Any) -> None:
    slice_ = {
        "ph": "X",
        "cat": "kernel",
        "name": "<img src=x onerror=alert(1)>",
        "ts": 1,
        "dur": 2,
        "pid": 0,
        "tid": 7,
    }
    (tmp_path / "a.json").write_text(json.dumps({"traceEvents": [slice_]}))
    explorer = TraceExplorer(tmp_path)
    until(lambda: settled(explorer))
    assert explorer.status == "idle"
    assert explorer.events["name"].tolist() == ["<img src=x onerror=alert(1)>"]


def test_loading_can_be_cancelled_and_started_again(until: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    gate, opened = threading.Event(), Trace.open

    def slow(path: Any, progress: Any, **others: Any) -> Trace:
        progress(0, 4, "reading rank-0")
        gate.wait(10)
        progress(1, 4, "reading rank-1")
        return opened(path, progress=progress, **others)

    monkeypatch.setattr(Trace, "open", slow)
    explorer = TraceExplorer(DDP)
    until(lambda: explorer.progress == 0.0)
    assert explorer.message == "0 of 4 files: reading rank-0"
    explorer.cancel()
    assert (explorer.status, explorer.message) == ("empty", "Loading was cancelled.")
    with pytest.raises(LoadingCancelledError):
        explorer.wait()
    gate.set()
    explorer.load()
    until(lambda: settled(explorer))
    assert explorer.trace.ranks == [0, 1, 2, 3]


def test_panels_open_and_close(ddp: Trace, until: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hidden panel is gone: it follows no selection, and nothing is computed for it."""
    explorer = TraceExplorer(ddp, panels=["comm_comp_overlap"])
    (overlap,) = [part for area, part in explorer.parts if area == "panel"]
    explorer.set_state({"panels": ["comm_comp_overlap", "temporal_breakdown"]})
    panels = [part for area, part in explorer.parts if area == "panel"]
    assert panels[0] is overlap and [panel.kind for panel in panels] == list(explorer.panels)
    explorer.panels = ["temporal_breakdown"]
    assert [part for area, part in explorer.parts if area == "panel"] == panels[1:]
    assert overlap.comm is None
    until(lambda: settled(explorer))
    asked: list[str] = []
    monkeypatch.setattr(
        "hta_widgets.widgets.breakdown_panel.cached_analysis",
        lambda trace, kind, *_: asked.append(kind) or analysis.ANALYSES[kind].function(trace),
    )
    explorer.selection.ranks = (1,)
    until(lambda: bool(asked))
    until(lambda: settled(explorer))
    assert set(asked) == {"temporal_breakdown"}
    explorer.close()
    assert all(part.comm is None for _, part in explorer.parts)


def test_available_panels_list_every_analysis_in_groups(ddp: Trace) -> None:
    available = TraceExplorer(ddp, panels=[]).available_panels
    assert {entry["kind"] for entry in available} >= set(analysis.ANALYSES)
    groups = [entry["group"] for entry in available]
    assert sum(item != other for item, other in pairwise(groups)) == len(set(groups)) - 1
    assert all(entry["label"] and entry["title"] for entry in available)


def test_panels_are_known_and_once(ddp: Trace) -> None:
    explorer = TraceExplorer(ddp, panels=("temporal_breakdown", "temporal_breakdown"))
    assert explorer.panels == ("temporal_breakdown",)
    with pytest.raises(t.TraitError):
        explorer.panels = ["nonsense"]
    explorer.panels = "comm_comp_overlap"
    assert explorer.panels == ("comm_comp_overlap",)


def test_panels_chosen_while_loading_are_shown(until: Any) -> None:
    explorer = TraceExplorer(DDP)
    explorer.panels = ["comm_comp_overlap"]
    until(lambda: settled(explorer))
    assert [part.kind for area, part in explorer.parts if area == "panel"] == ["comm_comp_overlap"]
    placed = explorer.get_state(["parts"])["parts"]
    assert [kind for *_, kind in placed] == [*[""] * len(FIXED), "comm_comp_overlap"]


def test_selection_round_trips_as_a_small_dict(ddp: Trace) -> None:
    chosen = {"ranks": (1,), "window": (5, 90), "names": ("a", "b"), "query": "nccl", "focus": (0, 3)}
    explorer = TraceExplorer(ddp, selection=chosen)
    assert explorer.selection.to_dict() == chosen
    again = TraceExplorer(ddp, selection=json.loads(json.dumps(explorer.selection.to_dict())))
    assert again.selection.to_dict() == chosen


def test_undo_from_the_view(ddp: Trace, until: Any) -> None:
    explorer = TraceExplorer(ddp, panels=[])
    explorer.selection.ranks = (1,)
    explorer._handle_rpc(explorer, {"rpc": 1, "call": "a.1", "method": "undo"}, [])
    until(lambda: explorer.selection.ranks == ())
    explorer._handle_rpc(explorer, {"rpc": 1, "call": "a.2", "method": "redo"}, [])
    until(lambda: explorer.selection.ranks == (1,))


def test_frames_are_those_of_the_panels(ddp: Trace, until: Any) -> None:
    explorer = TraceExplorer(ddp, panels=["kernel_breakdown", "events"], selection={"query": "nccl"})
    until(lambda: settled(explorer))
    for _, panel in explorer.parts[len(FIXED) :]:
        kind = getattr(panel, "kind", "events")
        pd.testing.assert_frame_equal(explorer.frame(kind), panel.frame())
    explorer.panels = []
    pd.testing.assert_frame_equal(explorer.frame("events"), explorer.events)
    wanted = analysis.ANALYSES["kernel_sequences"].function(ddp, operator="aten::linear")
    pd.testing.assert_frame_equal(explorer.frame("kernel_sequences", operator="aten::linear"), wanted)
    with pytest.raises(ValueError, match="no analysis 'nonsense'"):
        explorer.frame("nonsense")
