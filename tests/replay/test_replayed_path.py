"""The critical path of a replay: no gaps, as long as the answer; without an edit, that of the recording."""

from itertools import pairwise

import pandas as pd
import pytest

from hta_widgets import Scope, Trace, analysis, edits, examples
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
    with pytest.raises(MissingDataError, match="simulated without changes"):
        analysis.replayed_path(Trace.open(shared_trace("hta/mtia_inference_trace")), edits.kernels(2.0))


def test_the_answer_says_where_the_path_leads(control: Trace) -> None:
    """Of each step, too: from where the replay puts the annotation that marks it to the next of these."""
    change = edits.kernels(2.0)
    answer = analysis.what_if(control, change, path=True)
    parts = [column for column in answer if column.startswith("path_")]
    assert answer[parts].sum(axis=1).tolist() == answer["after_ns"].tolist()
    pd.testing.assert_frame_equal(answer.drop(columns=parts), analysis.what_if(control, change))
    path = analysis.replayed_path(control, change)
    events = analysis.replayed_events(control, change)
    marks = list(events[events["name"].str.startswith("ProfilerStep#")].itertuples())
    windows = {"": (path["start_ns"].min(), path["end_ns"].max())} | {
        event.name: (event.replayed_start_ns, following.replayed_start_ns)
        for event, following in pairwise(sorted(marks, key=lambda event: event.replayed_start_ns))
    }
    assert len(answer) > 3 and answer["clock"].tolist()[1:] == ["host"] * (len(answer) - 1)
    segments = list(zip(path["bound_by"], path["start_ns"].tolist(), path["end_ns"].tolist(), strict=True))
    for row in answer.head(3).to_dict("records"):
        step = "" if pd.isna(row["iteration"]) else f"ProfilerStep#{row['iteration']}"
        begin, end = windows[step]
        summed = dict.fromkeys(parts, 0)
        for limit, since, until in segments:
            summed[f"path_{limit}_ns"] += max(0, min(until, end) - max(since, begin))
        assert {part: row[part] for part in parts} == summed, step


def test_where_it_leads_in_chosen_steps(control: Trace) -> None:
    every = analysis.what_if(control, edits.host(0.5), path=True)
    number = int(every["iteration"].iloc[2])
    one = analysis.what_if(control, edits.host(0.5), Scope(iterations=(number,)), path=True)
    pd.testing.assert_frame_equal(one, every.iloc[[2]].reset_index(drop=True))


def test_several_ranks_together_have_no_path() -> None:
    answer = analysis.what_if(examples.load("ddp_4ranks"), edits.no_stragglers(), path=True)
    parts = [column for column in answer if column.startswith("path_")]
    assert len(answer) and len(parts) == 8 and answer[parts].isna().all(axis=None)
