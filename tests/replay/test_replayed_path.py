"""The critical path of a replay: no gaps, as long as the answer; without an edit, that of the recording."""

import pytest

from hta_widgets import Scope, Trace, analysis, edits
from hta_widgets.errors import MissingDataError
from tests.support import shared_trace


@pytest.fixture(scope="module")
def control() -> Trace:
    return Trace.open(shared_trace("hta/trace_diff/control"))


@pytest.mark.parametrize(
    "change",
    [edits.kernels(2.0), edits.host(0.5), edits.host(0), edits.communication(0), edits.without("aten::mm")],
    ids=str,
)
def test_it_adds_up_to_the_answer(control: Trace, change: edits.Edit) -> None:
    frame = analysis.replayed_path(control, change)
    assert frame.columns.tolist() == analysis.critical_path(control).columns.tolist()
    assert (frame["end_ns"].to_numpy()[:-1] == frame["start_ns"].to_numpy()[1:]).all()
    assert (frame["dur_ns"] > 0).all()
    answer = analysis.what_if(control, change).iloc[0]
    assert frame["dur_ns"].sum() == answer["after_ns"]
    # a call or kernel on the path is there where its event is
    places = analysis.replayed_events(control, change).set_index("event_id")
    on = frame[frame["kind"].isin(["operator", "kernel"])].join(
        places[["replayed_start_ns", "replayed_end_ns"]], on="event_id"
    )
    assert len(on) > 10
    assert (on["start_ns"] >= on["replayed_start_ns"]).all()
    assert (on["end_ns"] <= on["replayed_end_ns"]).all()


def test_without_an_edit_it_is_that_of_the_recording(control: Trace) -> None:
    frame = analysis.replayed_path(control, [])
    window = (int(frame["start_ns"].iloc[0]), int(frame["end_ns"].iloc[-1]))
    recorded = analysis.critical_path(control, Scope(window_ns=window))
    for kind in ("kernel", "sync"):
        one, two = (rows[rows["kind"] == kind]["dur_ns"].sum() for rows in (frame, recorded))
        assert one == two, kind
    host = [rows[rows["kind"].isin(["operator", "host"])]["dur_ns"].sum() for rows in (frame, recorded)]
    # of a launch the recorded path counts the time until the call has ended as the host's
    delay = [rows[rows["kind"] == "launch_delay"]["dur_ns"].sum() for rows in (frame, recorded)]
    assert host[0] + delay[0] == host[1] + delay[1]


def test_a_faster_host_leaves_the_path_to_the_device(control: Trace) -> None:
    on_host = []
    for change in ([], [edits.host(0.25)]):
        frame = analysis.replayed_path(control, change)
        on_host.append(frame[frame["bound_by"] == "cpu_bound"]["dur_ns"].sum() / frame["dur_ns"].sum())
    assert on_host[1] < on_host[0] / 2


def test_it_abstains_as_the_replay_does() -> None:
    with pytest.raises(MissingDataError, match="dependencies miss the recorded time"):
        analysis.replayed_path(Trace.open(shared_trace("hta/mtia_inference_trace")), edits.kernels(2.0))
