"""The inspector: what it shows follows the selection, and every figure is that of the analysis."""

import io
import json
from collections.abc import Callable, Iterator
from typing import Any

import pandas as pd
import pytest

from hta_widgets import (
    Inspector,
    Scope,
    Selection,
    TimelineScrubber,
    Trace,
    TraceExplorer,
    analysis,
    examples,
)
from hta_widgets.formatting import bandwidth, duration
from hta_widgets.widgets.freezing import settle

Until = Callable[[Callable[[], bool]], None]


@pytest.fixture(scope="module")
def trace() -> Trace:
    return examples.load("gpt2_ddp")


@pytest.fixture
def inspector(trace: Trace) -> Iterator[Inspector]:
    part = Inspector(trace)
    settle([part])
    yield part
    part.close()


def event_of(trace: Trace, text: str, rank: int = 0) -> int:
    rows = trace.events()
    found = rows[(rows["rank"] == rank) & rows["name"].str.contains(text, regex=False)]
    return int(found["event_id"].iloc[0])


def rows_of(part: Inspector, title: str) -> list[Any]:
    return next(section["rows"] for section in part.content["sections"] if section["title"] == title)


def pieces(rows: list[Any]) -> list[Any]:
    return [piece for _, pieces in rows for piece in pieces]


def test_nothing_then_an_event_with_its_replay(inspector: Inspector, trace: Trace) -> None:
    assert (inspector.content["kind"], inspector.facts, inspector.python) == ("none", None, "")
    number = event_of(trace, "xmma_gemm")
    inspector.selection.focus = (0, number)
    assert inspector.status == "busy"
    settle([inspector])
    assert inspector.facts == analysis.inspect_event(trace, 0, number)
    assert inspector.content["kind"] == "event" and inspector.message == ""
    assert inspector.content["title"] == inspector.facts.event.name
    assert rows_of(inspector, "Without it")
    result, _ = inspector.ask("json", {})
    assert json.loads(result) == json.loads(json.dumps(inspector.facts.to_dict()))
    assert eval(inspector.python, {"analysis": analysis, "trace": trace}) == inspector.facts


def test_links_are_events_that_can_be_inspected(inspector: Inspector, trace: Trace) -> None:
    inspector.selection.focus = (0, event_of(trace, "ncclDevKernel"))
    settle([inspector])
    assert inspector.facts is not None
    links = [piece["to"] for section in inspector.content["sections"] for piece in pieces(section["rows"])
             if isinstance(piece, dict)]  # fmt: skip
    assert [0, inspector.facts.launch.call.event_id] in links
    assert [1, inspector.facts.peers[0].event.event_id] in links
    for rank, number in {tuple(link) for link in links}:
        assert analysis.inspect_event(trace, rank, number, replay=False).event.event_id == number
    # the browser follows one
    inspector.set_state({"focus": links[0]})
    assert inspector.selection.focus == tuple(links[0])


def test_what_is_missing_is_said(inspector: Inspector, trace: Trace) -> None:
    inspector.selection.focus = (0, event_of(trace, "Memcpy"))
    settle([inspector])
    missing = dict(inspector.content["missing"])
    assert missing["Other ranks"] == "it is no communication kernel"
    assert not {section["title"] for section in inspector.content["sections"]} & missing.keys()


def test_the_last_choice_is_shown(inspector: Inspector, trace: Trace) -> None:
    for number in trace.events()["event_id"].iloc[:20].tolist():
        inspector.selection.focus = (0, number)
    settle([inspector])
    assert inspector.facts is not None and inspector.facts.event.event_id == number
    inspector.selection.focus = (0, 10**6)
    settle([inspector])
    assert inspector.status == "error" and "no event 1000000" in inspector.message
    assert inspector.content["kind"] == "none" and inspector.facts is None
    inspector.selection.focus = (0, number)
    settle([inspector])
    assert inspector.status == "idle" and inspector.message == ""


def test_a_gap_takes_the_place_of_an_event(inspector: Inspector, trace: Trace) -> None:
    selection = inspector.selection
    gaps = analysis.idle_gaps(trace)
    gap = gaps[(gaps["rank"] == 0) & (gaps["start_ns"] > 0)].iloc[0]
    selection.focus = (0, event_of(trace, "xmma_gemm"))
    selection.gap = (0, 7, int(gap["start_ns"]))
    assert selection.focus is None and selection.window is None and not selection.can_undo
    settle([inspector])
    assert inspector.facts == analysis.inspect_gap(trace, *selection.gap)
    assert inspector.content["kind"] == "gap"
    assert inspector.content["window"] == [inspector.facts.start_ns, inspector.facts.end_ns]
    selection.focus = (0, event_of(trace, "xmma_gemm"))
    assert selection.gap is None
    assert "gap" not in selection.to_dict()


def test_statistics_of_a_window(inspector: Inspector, trace: Trace) -> None:
    inspector.selection.window = (15_000_000, 18_000_000)
    settle([inspector])
    frame = analysis.inspect_window(trace, inspector.selection.scope)
    assert inspector.content["kind"] == "area" and inspector.table["rows"] == len(frame.head(100))
    inspector.set_state({"by": "class"})
    settle([inspector])
    classes = analysis.inspect_window(trace, inspector.selection.scope, by="class")
    names = next(column for column in inspector.table["columns"] if column["name"] == "name")
    assert names["values"] == classes["name"].tolist()
    busy = analysis.temporal_breakdown(trace, inspector.selection.scope)
    assert len(rows_of(inspector, "Devices")) == len(busy)
    assert len(rows_of(inspector, "The same part of iterations")) == 3
    inspector.selection.window = (0, 37_000_000)
    settle([inspector])
    assert dict(inspector.content["missing"]) == {
        "Other iterations": "the window lies in no complete iteration"
    }


def test_a_click_on_empty_ground_selects_the_gap_and_no_window(trace: Trace, until: Until) -> None:
    timeline = TimelineScrubber(trace)
    until(lambda: timeline.status == "idle")
    lanes = timeline._require().lanes
    track = next(track for track in lanes.tracks if track.label == "GPU 0 stream 7")
    first = lanes.offsets[track.first]
    end = int(lanes.start[first] + lanes.dur[first])
    timeline.set_state({"focus_gap": [track.first, end]})
    assert timeline.selection.gap == (track.rank, 7, end)
    assert timeline.selection.window is None
    timeline.set_state({"focus_slice": int(first)})
    assert timeline.selection.gap is None and timeline.focus_gap is None
    timeline.close()


def test_in_an_explorer_its_code_names_the_explorer(trace: Trace) -> None:
    explorer = TraceExplorer(trace, Selection(focus=(0, event_of(trace, "xmma_gemm"))), panels=[]).wait()
    settle([explorer])
    inspector = next(part for area, part in explorer.parts if area == "inspector")
    settle([inspector])
    assert inspector.python == f"analysis.inspect_event(explorer.trace, 0, {explorer.selection.focus[1]})"
    explorer.close()


def test_a_copy_says_how_much_it_moves_how_fast_and_between_which_memories(trace: Trace) -> None:
    events = trace.events()
    copies = events[events["name"].str.startswith("Memcpy HtoD (Pinned") & (events["rank"] == 0)]
    event = copies.iloc[0]
    with_size = Inspector(trace, selection=Selection(focus=(0, int(event["event_id"]))))
    settle([with_size])
    rows = {label: "".join(pieces) for label, pieces in rows_of(with_size, "Copy")}
    recorded = analysis.inspect_event(trace, 0, int(event["event_id"])).arguments
    size = next(argument.value for argument in recorded if argument.name == "bytes")
    assert rows["Size"].endswith(f"({size:,} bytes)")
    assert rows["Speed"] == bandwidth(size / event["dur_ns"])
    assert (rows["From"], rows["To"]) == ("pinned memory of the host", "memory of the device")
    with_size.close()


def test_two_iterations_are_compared_and_a_windows_events_saved(inspector: Inspector, trace: Trace) -> None:
    inspector.selection.iterations = (10, 12)
    settle([inspector])
    assert inspector.content["kind"] == "steps"
    frame = analysis.step_difference(trace, 10, 12, inspector.selection.scope)
    assert eval(inspector.python, {"analysis": analysis, "trace": trace, "Scope": Scope}).equals(frame)
    lengths = [
        int(analysis.temporal_breakdown(trace, Scope(iterations=(number,)))["window_ns"].sum())
        for number in (10, 12)
    ]
    shown = inspector.content["difference"]
    assert duration(abs(lengths[1] - lengths[0]) // len(trace.ranks)) in inspector.content["title"]
    assert shown["second_ns"] - shown["first_ns"] == sum(part[-1] for part in shown["parts"])
    inspector.selection.iterations = (10,)
    settle([inspector])
    assert inspector.content["kind"] == "none"
    inspector.selection.iterations = ()
    inspector.selection.window = (15_000_000, 15_300_000)
    settle([inspector])
    saved, buffers = inspector.ask("file", {"form": "csv", "key": "it", "chunk": 0})
    assert saved == {"chunks": 1}
    events = trace.events(inspector.selection.scope)
    read = pd.read_csv(io.BytesIO(buffers[0]))
    assert read["event_id"].tolist() == events["event_id"].tolist() and len(read) > 10
