"""Where a replay puts the events: against the plain JSON, and against a slow reading of its own points."""

import bisect
import gzip
import json
from decimal import Decimal
from fractions import Fraction
from math import floor
from operator import itemgetter
from pathlib import Path

import pytest

from hta_widgets import Scope, Trace, analysis, edits, examples
from hta_widgets.errors import MissingDataError
from tests.support import shared_trace

CHANGES = [edits.kernels(2.0), edits.host(0.5), edits.communication(0)]


@pytest.fixture(scope="module")
def control() -> Trace:
    return Trace.open(shared_trace("hta/trace_diff/control"))


def plain_times(path: Path) -> list[tuple[int, int]]:
    """Start and end of each complete event of a file, in ns from the first one, sorted; read by hand."""
    spans = []
    for event in json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]:
        if event.get("ph") == "X":
            start = Decimal(str(event["ts"])) * 1000
            spans.append((int(start), int(start + Decimal(str(event["dur"])) * 1000)))
    return sorted(spans)


def test_without_an_edit_everything_stays_where_the_file_has_it(control: Trace) -> None:
    frame = analysis.replayed_events(control, [])
    assert (frame["start_ns"] == frame["replayed_start_ns"]).all()
    assert (frame["end_ns"] == frame["replayed_end_ns"]).all()
    spans = plain_times(next(shared_trace("hta/trace_diff/control").glob("*.json.gz")))
    zero = spans[0][0] - int(frame["start_ns"].min())
    assert sorted(zip(frame["replayed_start_ns"], frame["replayed_end_ns"], strict=True)) == [
        (start - zero, end - zero) for start, end in spans
    ]


def test_device_work_takes_what_the_edit_leaves_and_ends_with_the_answer(control: Trace) -> None:
    frame = analysis.replayed_events(control, CHANGES)
    before, after = (frame[f"{p}end_ns"] - frame[f"{p}start_ns"] for p in ("", "replayed_"))
    kernels = frame["event_class"] == "compute"
    assert kernels.sum() > 1000
    assert (after[kernels] == (before[kernels] + 1) // 2).all()  # half, rounded up
    assert (after[frame["event_class"] == "communication"] == 0).all()
    assert (
        after[frame["event_class"] == "memory copy"] == before[frame["event_class"] == "memory copy"]
    ).all()
    points = frame[frame["placed"] == "replayed"]
    answer = analysis.what_if(control, CHANGES).iloc[0]
    began = points["end_ns"].max() - answer["before_ns"]
    assert points["replayed_end_ns"].max() - answer["after_ns"] == began


def slow_place(points: list[tuple[int, int]], at: int, *, end: bool) -> int:
    """Between the points around it, by hand: (recorded, replayed) ascending."""
    i = (bisect.bisect_left if end else bisect.bisect_right)(points, at, key=itemgetter(0)) - 1
    if i in (-1, len(points) - 1):
        recorded, replayed = points[max(i, 0)]
        return replayed + at - recorded
    (a, a2), (b, b2) = points[i], points[i + 1]
    return a2 + floor(Fraction(at - a, b - a) * (b2 - a2) + Fraction(1, 2))


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_other_calls_lie_between_the_points_of_their_thread(control: Trace, change: edits.Edit) -> None:
    frame = analysis.replayed_events(control, change)
    events = control.events().set_index(["rank", "event_id"])
    frame = frame.join(events[["pid", "tid"]], on=["rank", "event_id"])
    host = frame[frame["stream"].isna()]
    checked = 0
    for _, rows in host.groupby(["pid", "tid"]):
        own = rows[rows["placed"] == "replayed"]
        between = rows[rows["placed"] == "between"]
        marks = sorted(
            {*zip(own["start_ns"], own["replayed_start_ns"], strict=True),
             *zip(own["end_ns"], own["replayed_end_ns"], strict=True)}
        )  # fmt: skip
        for row in between.head(400).itertuples():
            inside = marks[0][0] <= row.start_ns and row.end_ns <= marks[-1][0]
            if not inside:
                continue
            start, stop = slow_place(marks, row.start_ns, end=False), slow_place(marks, row.end_ns, end=True)
            assert abs(row.replayed_start_ns - start) <= 1
            assert abs(row.replayed_end_ns - stop) <= 1
            checked += 1
    assert checked > 100


@pytest.mark.parametrize(
    "change",
    [*CHANGES, edits.syncs(), edits.without("*DataLoader*"), edits.launches(0), edits.graphs()],
    ids=str,
)
def test_what_is_nested_stays_nested_and_a_stream_in_order(control: Trace, change: edits.Edit) -> None:
    rank_trace = control.rank(control.ranks[0])
    frame = analysis.replayed_events(control, change).set_index("event_id")
    start, end = (frame[f"replayed_{name}_ns"].to_dict() for name in ("start", "end"))
    assert all(start[event] <= end[event] for event in start)
    nested = 0
    for row, parent in enumerate(rank_trace.parent.tolist()):
        if parent >= 0:
            child, outer = int(rank_trace.event_id[row]), int(rank_trace.event_id[parent])
            assert start[outer] <= start[child]
            assert end[child] <= end[outer]
            nested += 1
    assert nested > 1000
    on_stream = frame[(frame["placed"] == "replayed") & frame["stream"].notna()]
    for _, rows in on_stream.sort_values(["start_ns", "end_ns"], kind="stable").groupby("stream"):
        assert rows["replayed_start_ns"].is_monotonic_increasing


def test_time_that_is_cut_out_is_taken_from_where_it_was() -> None:
    trace = examples.load("single_gpu_dataloader_stall")
    frame = analysis.replayed_events(trace, edits.without("*DataLoader*"))
    loading = frame["name"].str.contains("DataLoader")
    length = frame["replayed_end_ns"] - frame["replayed_start_ns"]
    assert loading.sum() > 0
    assert (length[loading] <= 1).all()
    before = (frame["end_ns"] - frame["start_ns"])[loading].sum()
    answer = analysis.what_if(trace, edits.without("*DataLoader*")).iloc[0]
    assert before >= answer["before_ns"] - answer["after_ns"] > 0


def test_a_scope_chooses_by_recorded_times(control: Trace) -> None:
    iteration = int(control.iterations["iteration"].iloc[0])
    scope = Scope(iterations=(iteration,))
    part, whole = (analysis.replayed_events(control, CHANGES, each) for each in (scope, None))
    assert set(part["event_id"]) == set(control.events(scope)["event_id"])
    both = part.merge(whole, on=["rank", "event_id"], suffixes=("", "_whole"))
    assert len(both) == len(part) < len(whole)
    assert (both["replayed_start_ns"] == both["replayed_start_ns_whole"]).all()


def test_it_abstains_as_the_replay_does() -> None:
    with pytest.raises(MissingDataError, match="simulated without changes"):
        analysis.replayed_events(Trace.open(shared_trace("hta/mtia_inference_trace")), CHANGES)
