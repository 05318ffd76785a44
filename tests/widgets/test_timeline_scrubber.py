"""The scrubber's Python half: loads off-thread, answers the view's questions, translates focus."""

from __future__ import annotations

import json
import time
import zlib

import pytest

from hta_widgets.trace.model import Trace
from hta_widgets.widgets.selection import Selection
from hta_widgets.widgets.timeline_scrubber import TimelineScrubber
from tests.support import shared_trace


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


def test_focus_and_the_timelines_own_number_follow_each_other(trace):
    selection = Selection()
    widget = ready(TimelineScrubber(trace, selection=selection))
    rank = trace.rank(1)
    device = int(rank.is_device.nonzero()[0][5])
    selection.focus = (1, int(rank.event_id[device]))
    facts = ask(widget, "slice", id=widget.focus_slice)
    assert (facts["slice"]["start"], facts["slice"]["dur"]) == (rank.start[device], rank.dur[device])
    assert [flow[1]["id"] for flow in facts["flows"]] == [widget.focus_slice]
    widget.focus_slice = facts["flows"][0][0]["id"]
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
