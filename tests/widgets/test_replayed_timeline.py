"""The timeline at the times of a replay: where `analysis.replayed_events` has them, or why not."""

import json
import zlib

import numpy as np
import pytest

from hta_widgets import Trace, TraceExplorer, analysis, edits
from hta_widgets.timeline import build_lanes
from hta_widgets.widgets.freezing import settle
from hta_widgets.widgets.timeline_scrubber import TimelineScrubber
from tests.support import shared_trace

CHANGES = [edits.kernels(2.0), edits.host(0.5)]


@pytest.fixture(scope="module")
def control() -> Trace:
    return Trace.open(shared_trace("hta/trace_diff/control"))


@pytest.fixture
def timeline(control: Trace) -> TimelineScrubber:
    widget = TimelineScrubber(control)
    settle([widget])
    return widget


def replay(widget: TimelineScrubber, changes: list[edits.Edit]) -> dict:
    """The outline after a switch to replayed times."""
    widget.edits = changes
    widget.times = "what_if"
    settle([widget])
    return outline(widget)


def outline(widget: TimelineScrubber) -> dict:
    layout, _ = widget.ask("meta", {})
    data = b"".join(widget.ask("meta", {"chunk": chunk})[1][0] for chunk in range(layout["chunks"]))
    return json.loads(zlib.decompress(data))


def test_every_slice_is_where_the_replay_has_its_event(timeline: TimelineScrubber, control: Trace) -> None:
    recorded = outline(timeline)
    found = replay(timeline, CHANGES)
    assert (found["replayed"], recorded["replayed"]) == (True, False)
    named = [(track["label"], track["kind"], sum(track["sizes"])) for track in found["tracks"]]
    assert named == [(track["label"], track["kind"], sum(track["sizes"])) for track in recorded["tracks"]]
    assert found["n"] == recorded["n"] == control.rank(control.ranks[0]).n
    frame = analysis.replayed_events(control, CHANGES)
    rng = np.random.default_rng(13)
    for row in frame.iloc[rng.choice(len(frame), 200, replace=False)].itertuples():
        timeline.focus = (row.rank, row.event_id)
        told = timeline.ask("slice", {"id": timeline.focus_slice})[0]["slice"]
        assert told["start"] == row.replayed_start_ns
        assert told["dur"] == row.replayed_end_ns - row.replayed_start_ns
        assert told["was"] == [row.start_ns, row.end_ns - row.start_ns]
    assert found["extent"] == [frame["replayed_start_ns"].min(), frame["replayed_end_ns"].max()]
    assert timeline.times_note == "Replayed times"
    assert found["extent"][0] == recorded["extent"][0]  # a faster host begins no earlier


def test_all_time_stays_visible_and_a_part_stays_a_part(timeline: TimelineScrubber) -> None:
    start, end = outline(timeline)["extent"]
    timeline.view = (start, end)
    assert replay(timeline, CHANGES)["extent"][1] < end
    assert timeline.view is None  # the browser then shows all
    timeline.view = part = (start, (start + end) // 4)
    timeline.times = "recorded"
    settle([timeline])
    assert timeline.view == part


def test_slices_of_a_lane_do_not_overlap_where_work_moved_to_another_stream(control: Trace) -> None:
    rank = control.rank(control.ranks[0])
    for change in (edits.overlap(), edits.own_stream("Mem*"), edits.kernels(0.25), edits.without("aten::*")):
        frame = analysis.replayed_events(control, change).sort_values("event_id")
        start, end = (frame[f"replayed_{name}_ns"].to_numpy() for name in ("start", "end"))
        lanes = build_lanes([rank], replayed={rank.rank: (start, end)})
        last = lanes.start + lanes.dur
        same_lane = np.ones(lanes.n - 1, np.bool_)
        same_lane[lanes.offsets[1:-1][(lanes.offsets[1:-1] > 0) & (lanes.offsets[1:-1] < lanes.n)] - 1] = (
            False
        )
        assert (last[:-1] <= lanes.start[1:])[same_lane].all()


def test_bands_window_and_path_follow(timeline: TimelineScrubber, control: Trace) -> None:
    first = control.iterations.iloc[1]
    timeline.window = (int(first["start_ns"]), int(first["end_ns"]))
    found = replay(timeline, CHANGES)
    bands = {band["iteration"]: band["end"] - band["start"] for band in found["iterations"]}
    answer = analysis.what_if(control, CHANGES)
    answer = answer[answer["iteration"].notna()]
    if set(answer["clock"]) == {control.rank(control.ranks[0]).iteration_clock}:
        for row in answer.itertuples():
            assert bands[row.iteration] == row.after_ns
    assert bands
    start, end = timeline.moved_window
    inside = next(band for band in found["iterations"] if band["iteration"] == first["iteration"])
    assert end - start < first["end_ns"] - first["start_ns"]
    assert abs(start - inside["start"]) < 0.1 * (end - start)
    assert abs(end - inside["end"]) < 0.1 * (end - start)
    assert timeline.window == (first["start_ns"], first["end_ns"])  # what is selected stays recorded time
    layout, _ = timeline.ask("path", {"ranks": [], "iterations": [], "window": None})
    assert layout["n"] == len(analysis.replayed_path(control, CHANGES))
    assert layout["message"].startswith("Of the whole replay: ")
    timeline.times = "recorded"
    settle([timeline])
    layout, _ = timeline.ask("path", {"ranks": [], "iterations": [], "window": None})
    assert layout["n"] == len(analysis.critical_path(control))


def test_it_says_why_recorded_times_are_shown(timeline: TimelineScrubber) -> None:
    assert not replay(timeline, [])["replayed"]
    assert timeline.times_note == "As recorded: No change is chosen"
    assert not replay(timeline, [edits.no_stragglers()])["replayed"]
    assert timeline.times_note.startswith("As recorded: Changes between ranks place no events")
    timeline.times = "recorded"
    settle([timeline])
    assert timeline.times_note == ""
    untrusted = TimelineScrubber(shared_trace("hta/mtia_inference_trace"))
    settle([untrusted])
    assert not replay(untrusted, CHANGES)["replayed"]
    assert untrusted.status == "idle"
    assert "simulated without changes" in untrusted.times_note


def test_arrangements_are_kept_until_the_edits_change(timeline: TimelineScrubber) -> None:
    replay(timeline, CHANGES)
    first = timeline._content
    timeline.times = "recorded"
    settle([timeline])
    assert timeline._content is not first
    replay(timeline, CHANGES)
    assert timeline._content is first
    replay(timeline, CHANGES[:1])
    assert timeline._content is not first


def test_the_kernel_answers_windows_of_a_replay(control: Trace) -> None:
    widget = TimelineScrubber(control, client_slices=100)
    settle([widget])
    found = replay(widget, CHANGES)
    assert found["mode"] == "kernel"
    start, end = found["extent"]
    layout, _ = widget.ask("window", {"t0": start, "t1": end, "px": 100, "lanes": [0]})
    assert layout["moved"]


def test_an_explorer_replays_its_edits(control: Trace) -> None:
    explorer = TraceExplorer(control, panels=[], edits=CHANGES)
    explorer.wait()
    settle([explorer])
    timeline = next(part for area, part in explorer.parts if area == "timeline")
    timeline.times = "what_if"
    settle([timeline])
    assert outline(timeline)["replayed"]
    explorer.edits = []
    settle([timeline])
    assert timeline.times_note == "As recorded: No change is chosen"
    timeline.set_state({"times": "recorded"})
    assert timeline.times == "recorded"
    explorer.close()
