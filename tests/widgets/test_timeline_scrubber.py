"""The scrubber's Python half: loads off-thread, answers the view's questions, translates focus."""

from __future__ import annotations

import itertools
import json
import time
import zlib

import numpy as np
import pytest

from hta_widgets.analysis import collectives, counters
from hta_widgets.analysis.critical_path.path import critical_path
from hta_widgets.analysis.idle.gaps import idle_gaps
from hta_widgets.analysis.inspect.longest import longest_events
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope
from hta_widgets.widgets.selection import Selection
from hta_widgets.widgets.timeline_scrubber import TimelineScrubber
from tests.analysis.kineto_file import event, job, kernel, launch
from tests.support import shared_trace

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def trace() -> Trace:
    return Trace.open(shared_trace("hta/trace_filter"), cache=False)


def ready(widget: TimelineScrubber) -> TimelineScrubber:
    deadline = time.monotonic() + 60
    while widget.status == "busy" and time.monotonic() < deadline:
        time.sleep(0.02)
    return widget


def ask(widget: TimelineScrubber, method: str, **params):
    return widget._rpc_method(method)(params)


def whole(widget: TimelineScrubber, method: str, **params):
    layout, buffers = ask(widget, method, chunk=0, **params)
    for chunk in range(1, layout["chunks"]):
        buffers += ask(widget, method, chunk=chunk, **params)[1]
    assert all(len(part) <= 1_000_000 for part in buffers)
    return layout, zlib.decompress(b"".join(buffers))


def test_a_small_trace_is_sent_whole(trace):
    widget = ready(TimelineScrubber(trace))
    assert (widget.status, widget.message) == ("idle", "")
    meta = json.loads(whole(widget, "meta")[1])
    assert meta["mode"] == "client"
    assert meta["n"] == sum(trace.rank(r).n for r in trace.ranks)
    assert [r["rank"] for r in meta["ranks"]] == trace.ranks
    assert whole(widget, "base")[0]["n"] == meta["n"]
    with pytest.raises(LookupError):
        ask(widget, "window", t0=0, t1=1, px=1, lanes=[0])
    widget.close()


def test_a_large_trace_is_answered_by_the_window(trace):
    widget = ready(TimelineScrubber(trace, client_slices=100))
    meta = json.loads(whole(widget, "meta")[1])
    assert meta["mode"] == "kernel"
    lanes = sum(len(t["sizes"]) for t in meta["tracks"])
    start, end = meta["extent"]
    layout, data = whole(widget, "window", t0=start, t1=end + 1, px=800, lanes=list(range(lanes)))
    assert layout["n"] == sum(layout["sizes"]) > 0
    assert len(layout["sizes"]) == lanes
    assert data
    with pytest.raises(LookupError):
        ask(widget, "base")
    widget.close()


def test_a_window_holds_the_lanes_that_are_asked_for(ddp):
    """As when the user scrolls down: other lanes of the same time."""
    widget = ready(TimelineScrubber(ddp, client_slices=100))
    meta = json.loads(whole(widget, "meta")[1])
    start, end = meta["extent"]

    def sizes(lanes: list[int]) -> list[int]:
        return whole(widget, "window", t0=start, t1=end, px=800, lanes=lanes)[0]["sizes"]

    lanes = list(range(sum(len(track["sizes"]) for track in meta["tracks"])))
    together = sizes(lanes)
    assert len(set(together)) > 1
    assert [sizes([lane]) for lane in lanes] == [[size] for size in together]
    widget.close()


def test_focus_and_the_timelines_own_number_follow_each_other(trace):
    selection = Selection()
    widget = ready(TimelineScrubber(trace, selection=selection))
    rank = trace.rank(1)
    device = int(rank.is_device.nonzero()[0][5])
    selection.focus = (1, int(rank.event_id[device]))
    found = ask(widget, "slice", id=widget.focus_slice)
    assert (found["slice"]["start"], found["slice"]["dur"]) == (rank.start[device], rank.dur[device])
    assert [flow[1]["id"] for flow in found["flows"]] == [widget.focus_slice]
    widget.focus_slice = found["flows"][0][0]["id"]
    assert selection.focus == (1, int(rank.event_id[rank.launch[device]]))
    widget.focus_slice = -1
    assert selection.focus is None
    selection.focus = (1, 10**9)
    assert (widget.focus_slice, selection.focus) == (-1, (1, 10**9))
    widget.close()


def test_the_brush_is_the_selections_window(trace):
    selection = Selection(ranks=[1])
    widget = TimelineScrubber(trace, selection=selection)
    assert widget.ranks == (1,)
    widget.set_state({"window": [5000, 9000.0]})
    assert selection.window == (5000, 9000)
    selection.window = None
    assert widget.window is None
    widget.close()


def test_slices_never_become_traits(trace):
    widget = ready(TimelineScrubber(trace))
    assert len(json.dumps(widget.get_state(), default=str)) < 5_000
    widget.close()


def test_an_empty_trace_explains_itself(tmp_path):
    event = {"ph": "i", "name": "mark", "ts": 1, "pid": 1, "tid": 1, "s": "t"}
    path = tmp_path / "rank_0.json"
    path.write_text(json.dumps({"traceEvents": [event], "distributedInfo": {"rank": 0}}))
    widget = ready(TimelineScrubber(path))
    assert widget.status == "empty"
    assert "nothing to draw" in widget.message
    widget.close()


def test_matches_are_counted_and_stepped_through_by_time(trace):
    widget = ready(TimelineScrubber(trace))
    events = trace.events()
    found = events[events["name"].astype(str).str.contains("addmm", case=False) & (events["rank"] == 1)]
    choice = {"names": [], "query": " AddMM ", "ranks": [1]}
    answer = ask(widget, "matches", bins=64, **choice)
    assert answer["count"] == sum(answer["bins"]) == len(found) > 2
    assert len(answer["bins"]) == 64

    place = {"start": -1.0, "id": -1}
    starts = []
    for _ in range(len(found)):
        place = ask(widget, "match", step=1, **choice, **place)["slice"]
        starts.append(place["start"])
    assert starts == sorted(found["start_ns"])
    first = ask(widget, "match", step=1, **choice, **place)["slice"]
    assert first["start"] == starts[0]
    assert ask(widget, "match", step=-1, **choice, **first)["slice"] == place
    name = str(found["name"].iloc[0])
    assert ask(widget, "matches", names=[name], query="", ranks=[], bins=8)["count"] == int(
        (events["name"] == name).sum()
    )
    nothing = {"names": [name], "query": "no such text", "ranks": []}
    assert ask(widget, "match", step=1, start=0, id=0, **nothing) == {"slice": None}
    widget.close()


def test_relatives_enclose_each_other(trace):
    widget = ready(TimelineScrubber(trace))
    outlined = json.loads(whole(widget, "meta")[1])
    called = 0
    for position in range(0, outlined["n"], 7):
        slice_ = ask(widget, "slice", id=position)["slice"]
        child = ask(widget, "relative", id=position, to="child")["slice"]
        parent = ask(widget, "relative", id=position, to="parent")["slice"]
        for outer, inner in ((slice_, child), (parent, slice_)):
            if outer and inner:
                called += 1
                assert outer["lane"] < inner["lane"]
                assert outer["start"] <= inner["start"]
                assert inner["start"] + inner["dur"] <= outer["start"] + outer["dur"]
    assert called > 100
    with pytest.raises(LookupError):
        ask(widget, "relative", id=outlined["n"], to="child")
    widget.close()


def test_gaps_lie_between_slices(trace):
    widget = ready(TimelineScrubber(trace))
    outlined = json.loads(whole(widget, "meta")[1])
    track = next(t for t in outlined["tracks"] if t["kind"] == "stream" and len(t["sizes"]) == 1)
    lanes = [track["first"]]
    device = trace.events()
    device = device[(device["rank"] == track["rank"]) & device["stream"].notna()]
    device = device[device["stream"] == int(track["label"].rsplit(" ", 1)[1])].sort_values("start_ns")
    ends, starts = device["end_ns"].tolist()[:-1], device["start_ns"].tolist()[1:]
    assert starts
    for end, start in zip(ends, starts, strict=True):
        expected = (end, start) if start > end else None
        assert ask(widget, "gap", lanes=lanes, t=(end + start) / 2)["gap"] == expected or start == end
        assert ask(widget, "gap", lanes=lanes, t=start)["gap"] is None or end == start
    extent = outlined["extent"]
    last = int(device["end_ns"].max())
    assert ask(widget, "gap", lanes=lanes, t=last + 1)["gap"] == (last, extent[1])
    widget.close()


@pytest.mark.parametrize("number", [0, 1])
def test_the_critical_path_lies_on_the_lanes_of_its_events(trace, number):
    widget = ready(TimelineScrubber(trace))
    layout, data = whole(widget, "path", ranks=[number], iterations=[552], window=None)
    expected = critical_path(trace, Scope(ranks=(number,), iterations=(552,)))
    n = layout["n"]
    assert n == len(expected) > 100
    assert len(data) == n * (8 + 8 + 3 * 4 + 2)
    assert np.frombuffer(data, "<f8", n).tolist() == expected["start_ns"].tolist()
    assert np.frombuffer(data, "<f8", n, 8 * n).tolist() == expected["end_ns"].tolist()
    lane, position, kind = (
        np.frombuffer(data, np.uint8, 4 * n, (16 + 4 * i) * n).reshape(4, n).T.copy().view("<i4").ravel()
        for i in range(3)
    )
    limit = np.frombuffer(data, np.uint8, n, 28 * n)
    assert [layout["limits"][i] for i in limit] == expected["bound_by"].tolist()
    assert "The path leads through" in layout["message"]
    meta = json.loads(whole(widget, "meta")[1])
    rank = trace.rank(number)
    for i in range(0, n, 37):
        event = int(expected["event_id"].iloc[i])
        assert (position[i] >= 0) == (event >= 0)
        if event < 0:
            continue
        found = ask(widget, "slice", id=int(position[i]))["slice"]
        row = int(np.flatnonzero(rank.event_id == event)[0])
        assert (found["start"], found["dur"]) == (rank.start[row], rank.dur[row])
        assert meta["names"][kind[i]] == expected["name"].iloc[i]
        if expected["kind"].iloc[i] != "host":
            assert lane[i] == found["lane"]
    assert (lane >= 0).all()
    waits = expected["kind"].isin(["launch_delay", "kernel_kernel", "dependency"])
    special = waits + 2 * expected["inferred"] + 4 * (expected["kind"] == "host")
    assert np.frombuffer(data, np.uint8, n, 29 * n).tolist() == special.tolist()
    widget.close()


def test_waits_for_a_launch_and_for_another_stream_are_drawn_as_waits(tmp_path):
    events = [
        event("user_annotation", "ProfilerStep#1", 0, 90_000),
        launch(0, 1, dur=1_000),
        launch(5_000, 2, dur=1_000),
        kernel("producer", 2_000, 58_000, stream=20, correlation=1),
        kernel("consumer", 61_000, 29_000, stream=7, correlation=2),
    ]
    widget = ready(TimelineScrubber(job(tmp_path, events)))
    layout, data = whole(widget, "path")
    n = layout["n"]
    spans = np.frombuffer(data, "<f8", 2 * n).reshape(2, n).T
    waits = np.frombuffer(data, np.uint8, n, 29 * n) & 1 == 1
    assert spans[waits].tolist() == [[1_000, 2_000], [60_000, 61_000]]
    widget.close()


def test_without_a_selection_the_path_says_whose_it_is(trace):
    widget = ready(TimelineScrubber(trace))
    layout, _ = whole(widget, "path")
    assert layout["message"].startswith("ProfilerStep#551: The path leads")
    widget.close()


def test_names_and_query_are_the_selections(trace):
    selection = Selection(names=["b", "a"])
    widget = TimelineScrubber(trace, selection=selection)
    assert widget.names == ("a", "b")
    selection.query = "gemm"
    assert widget.query == "gemm"
    assert widget.critical_path is False
    widget.close()


def test_the_longest_and_the_longest_gaps_come_one_by_one(ddp):
    """Of the last step; the gap is that of the stream that rests most briefly while the device does."""
    widget = ready(TimelineScrubber(ddp))
    selected = {"ranks": [0], "iterations": [13], "window": None}
    frame = longest_events(ddp, Scope(ranks=(0,), iterations=(13,)), most=5)
    found = ask(widget, "longest", **selected)["slices"]
    assert [item["dur"] for item in found[:5]] == frame["dur_ns"].tolist()
    lanes = widget._require().lanes
    assert [int(lanes.event_id[item["id"]]) for item in found[:5]] == frame["event_id"].tolist()

    gaps = idle_gaps(ddp, Scope(ranks=(0,), iterations=(13,))).sort_values("dur_ns", ascending=False)
    lane, start, end = ask(widget, "longest_gaps", **selected)["gaps"][0]
    device = gaps.iloc[0]
    assert start <= device["start_ns"] and device["end_ns"] <= end
    assert lanes.track_of(int(lanes.offsets[lane])).kind == "stream"
    events = ddp.rank(0)
    works = events.is_device & (events.event_class != EventClass.SYNC)
    streams = {int(stream) for stream in events.stream[works]}
    around = []
    for stream in streams:
        own = works & (events.stream == stream)
        ends, starts = events.end[own], events.start[own]
        before, after = ends[ends <= device["start_ns"]], starts[starts >= device["end_ns"]]
        first = int(before.max()) if len(before) else lanes.extent[0]
        around.append((int(after.min()) if len(after) else lanes.extent[1]) - first)
    assert end - start == min(around)
    widget.close()


def test_one_goes_on_to_the_next_of_the_same_name(ddp):
    widget = ready(TimelineScrubber(ddp))
    lanes = widget._require().lanes
    rank = ddp.rank(1)
    rows = [row for row in rank.by_start.tolist() if rank.names[rank.name[row]] == "aten::addmm"]
    ids = [lanes.find(1, int(rank.event_id[row])) for row in rows]
    assert len(ids) > 10
    for before, after in itertools.pairwise(ids[:10]):
        assert ask(widget, "same_name", id=before, step=1)["slice"]["id"] == after
        assert ask(widget, "same_name", id=after, step=-1)["slice"]["id"] == before
    assert ask(widget, "same_name", id=ids[-1], step=1)["slice"] is None
    with pytest.raises(LookupError):
        ask(widget, "same_name", id=lanes.n, step=1)
    widget.close()


def test_a_gap_that_others_choose_has_a_place_on_the_timeline(ddp):
    selection = Selection(gap=(1, 7, 20_000_000))
    widget = ready(TimelineScrubber(ddp, selection=selection))
    lane, time_ns = widget.focus_gap
    assert time_ns == 20_000_000
    lanes = widget._require().lanes
    assert (lanes.track_of(int(lanes.offsets[lane])).rank, selection.gap) == (1, (1, 7, 20_000_000))
    assert lanes.track_of(int(lanes.offsets[lane])).label.endswith("stream 7")
    selection.gap = (1, 4711, 20_000_000)  # a stream that is not there
    assert widget.focus_gap is None
    widget.close()


def test_lanes_are_chosen_by_words_and_pinned_one_by_one(ddp):
    widget = ready(TimelineScrubber(ddp))
    every = widget.lanes
    assert every["shown"].all() and not every["pinned"].any()
    assert every["slices"].sum() == sum(ddp.rank(rank).n for rank in ddp.ranks)
    widget.set_state(
        {"lane_filter": "STREAM, -sync,  rank 1,- annotation", "pinned": [[2, "GPU 2 stream 7"]]}
    )
    chosen = widget.lanes
    assert chosen[chosen["shown"]][["rank", "label"]].to_records(index=False).tolist() == [
        (1, "GPU 1 stream 7"), (1, "GPU 1 stream 20"), (1, "GPU 1 stream 40"), (2, "GPU 2 stream 7"),
    ]  # fmt: skip
    assert chosen[chosen["pinned"]]["label"].tolist() == ["GPU 2 stream 7"]
    widget.lane_filter = "stream 4"  # not stream 40
    assert widget.lanes["shown"].sum() == 1
    widget.lane_filter = "-rank 2 stream gpu 2 stream 7"  # as the key H has it
    hidden = widget.lanes[~widget.lanes["shown"]]
    assert (hidden["rank"].tolist(), hidden["label"].tolist()) == ([], [])  # it is pinned
    widget.pinned = []
    hidden = widget.lanes[~widget.lanes["shown"]]
    assert (hidden["rank"].tolist(), hidden["label"].tolist()) == ([2], ["GPU 2 stream 7"])
    widget.pinned = [(2, "GPU 2 stream 7")]
    widget.lane_filter = "-"  # a minus alone is a text as any other
    assert widget.lanes["shown"].sum() == 1
    widget.close()


def test_lanes_stand_in_groups_and_in_an_order_of_ones_own(ddp):
    widget = ready(TimelineScrubber(ddp))
    usual = widget.lanes
    assert usual["group"].drop_duplicates().tolist() == ["Rank 0", "Rank 1", "Rank 2", "Rank 3"]
    assert usual["label"].tolist()[:3] == ["GPU 0 stream 7", "GPU 0 stream 20", "GPU 0 stream 40"]
    widget.set_state({"lane_groups": "process"})
    processes = widget.lanes["group"].drop_duplicates().tolist()
    assert processes[:2] == ["Rank 0 · GPU 0", f"Rank 0 · process {_process(ddp)}"]
    assert processes[2] == "Rank 0 · Spans" and len(processes) == 12
    widget.set_state({"lane_groups": "lane"})
    alike = widget.lanes
    assert alike["group"].tolist()[:5] == ["stream 7 of each rank"] * 4 + ["stream 20 of each rank"]
    assert alike["rank"].tolist()[:4] == [0, 1, 2, 3]
    assert sorted(alike["slices"]) == sorted(usual["slices"])
    widget.set_state({"lane_order": [[3, "GPU 3 stream 7"], [1, "GPU 1 stream 7"]]})
    assert widget.lanes["rank"].tolist()[:4] == [3, 1, 0, 2]
    widget.set_state({"lane_groups": "rank", "lane_order": [[1, "GPU 1 stream 40"]]})
    of_one = widget.lanes[widget.lanes["rank"] == 1]["label"].tolist()
    assert of_one[:3] == ["GPU 1 stream 40", "GPU 1 stream 7", "GPU 1 stream 20"]
    widget.close()


def _process(trace):
    return trace.events(Scope(ranks=(0,)))["pid"].astype("str").value_counts().index[0]


def test_modules_and_python_have_lanes_of_their_own_when_asked():
    trace = Trace.open(shared_trace("tracelens/mi300"))
    widget = ready(TimelineScrubber(trace))
    events = trace.events()
    python = events[events["category"] == "python_function"]
    modules = python[python["name"].astype("str").str.startswith("nn.Module: ")]
    assert len(modules) and len(python) > len(modules)
    nested = widget.lanes
    widget.focus = (int(modules["rank"].iloc[0]), int(modules["event_id"].iloc[0]))
    version = widget.version
    widget.set_state({"python": "apart"})
    assert ready(widget).version == version + 1
    apart = widget.lanes
    count = lambda start: apart[apart["label"].str.startswith(start)]["slices"].sum()  # noqa: E731
    assert count("modules · ") == len(modules)
    assert count("Python · ") == len(python) - len(modules)
    assert apart["slices"].sum() == nested["slices"].sum()
    # the event that is focused stays the same one, on its new lane
    lanes = widget._require().lanes
    assert lanes.track_of(widget.focus_slice).label.startswith("modules · ")
    assert int(lanes.event_id[widget.focus_slice]) == widget.focus[1]
    widget.set_state({"python": "nested"})
    assert ready(widget).lanes.equals(nested)
    widget.close()


@pytest.mark.parametrize("most", [1_500_000, 0])
def test_counters_stand_under_their_streams_and_are_drawn_to_the_nanosecond(ddp, most):
    widget = ready(TimelineScrubber(ddp, client_slices=most))
    listed = ask(widget, "counter_list", ranks=[1])["counters"]
    assert {each["rank"] for each in listed} == {1}
    everywhere = ask(widget, "counter_list", ranks=[])["counters"]
    assert [each for each in everywhere if each["rank"] == 1] == listed
    tracks = {track.first: track for track in widget._require().lanes.tracks}
    frame = counters(ddp, Scope(ranks=(1,)))
    for each in listed:
        rows = frame[(frame["counter"] == each["name"]) & (frame["key"] == each["key"])]
        assert (each["least"], each["most"]) == (rows["value"].min(), rows["value"].max())
        assert each["bottom"] <= min(0, each["least"]) and each["top"] >= each["most"]
        if each["name"] == "queue length":
            assert tracks[each["lane"]].rank == 1 and each["key"] in tracks[each["lane"]].label
        else:
            assert each["lane"] == -1
        # a pixel per ns around a change: before it one value, from it on the other
        at = len(rows) // 2
        time, value = int(rows["time_ns"].iloc[at]), rows["value"].iloc[at]
        wanted = [[1, each["name"], each["key"]]]
        layout, data = whole(widget, "counter_values", counters=wanted, t0=time - 2, t1=time + 2, px=4)
        assert (layout["t0"], layout["t1"], layout["px"]) == (time - 2, time + 2, 4)
        planes = np.frombuffer(data, np.uint8).reshape(2, 8, 4)
        least, greatest = (plane.T.copy().view("<f8").ravel() for plane in planes)
        known = rows["value"].iloc[at - 1] if at else np.nan
        assert np.array_equal(least, greatest, equal_nan=True)
        assert np.array_equal(least[1:3], [known, value], equal_nan=True)
    scales = {(each["key"], each["top"]) for each in listed if each["unit"] == "bytes"}
    assert len(scales) == len({key for key, _ in scales})  # allocated and reserved can be compared
    with pytest.raises(LookupError):
        ask(widget, "counter_values", counters=[[1, "no such", ""]], t0=0, t1=1, px=1)
    with pytest.raises(ValueError, match="no time"):
        ask(widget, "counter_values", counters=[], t0=1, t1=1, px=1)
    widget.close()


def test_a_collective_tells_who_waits_for_whom(ddp):
    widget = ready(TimelineScrubber(ddp))
    lanes = widget._require().lanes
    frame = collectives(ddp, Scope(ranks=(0,), iterations=(11,)))
    longest = frame.loc[frame["dur_ns"].idxmax()]
    position = lanes.find(0, int(longest["event_id"]))
    found = ask(widget, "waits", id=position)
    assert lanes.track_of(found["last"]["id"]).rank == 2  # the planted straggler
    waited = {lanes.track_of(one["id"]).rank: ns for one, ns in found["waiting"]}
    assert set(waited) == {0, 1, 3} and min(waited.values()) > 1_000_000
    for one, ns in found["waiting"]:
        assert one["start"] + ns == pytest.approx(found["last"]["start"], abs=20_000)  # one clock here
    kernel_of_compute = next(i for i in range(lanes.n) if lanes.classes[i] == EventClass.COMPUTE)
    assert ask(widget, "waits", id=kernel_of_compute) == {"last": None, "waiting": [], "through": []}
    widget.close()


@pytest.mark.parametrize("most", [1_500_000, 0])
def test_matches_are_listed_by_start_or_by_length(ddp, most):
    widget = ready(TimelineScrubber(ddp, client_slices=most))
    widget.set_state({"ranks": [1, 2], "query": "gemm"})
    frame = widget.matches
    events = ddp.events().query("rank in (1, 2) and name.str.contains('gemm')", engine="python")
    events = events[events["dur_ns"].notna()]
    assert len(frame) == len(events) > 100
    assert set(zip(frame["rank"], frame["event_id"], strict=True)) == set(
        zip(events["rank"], events["event_id"], strict=True)
    )
    assert frame["start_ns"].is_monotonic_increasing
    first = ddp.rank(1)
    row = frame[frame["rank"] == 1].iloc[0]
    at = int(np.searchsorted(first.event_id, row["event_id"]))
    assert (first.names[first.name[at]], first.start[at], first.dur[at]) == (
        row["name"], row["start_ns"], row["dur_ns"],
    )  # fmt: skip
    assert row["lane"] == "GPU 1 stream 7"

    def listed(order, offset, limit):
        params = {"names": [], "query": "gemm", "ranks": [1, 2], "order": order}
        return ask(widget, "match_page", offset=offset, limit=limit, **params)["slices"]

    by_start = listed("start", 0, 40) + listed("start", 40, 1000)
    assert [(one["start"], one["dur"]) for one in by_start] == list(
        zip(frame["start_ns"], frame["dur_ns"], strict=True)
    )
    longest = [(-one["dur"], one["start"], one["id"]) for one in listed("dur", 0, 1000)]
    assert longest == sorted(longest) and len(longest) == len(frame)
    assert listed("dur", len(frame), 10) == []
    widget.close()
