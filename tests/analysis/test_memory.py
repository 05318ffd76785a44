"""Memory over time, at its peak, and by category: small cases by hand, real files, HTA's numbers."""

import gzip
import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hta_widgets import examples
from hta_widgets.analysis.memory.categories import CATEGORIES, memory_categories
from hta_widgets.analysis.memory.usage import (
    BEFORE,
    NO_OPERATOR,
    memory_peak,
    memory_timeline,
    sentence,
)
from hta_widgets.analysis.registry import ANALYSES
from hta_widgets.errors import MissingDataError, TraceFormatError, TraceNotFoundError
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope
from tests.analysis.multirank import RankFile, job
from tests.support import shared_trace, tried

RECORDED = [
    "tracelens/h100/gaunernst_bert-small-uncased__1016001.json.gz",
    "tracelens/h100/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz",
    "tracelens/mi300/gaunernst_bert-small-uncased__1016001.json.gz",
    "tracelens/mi300/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz",
]


def small(tmp_path) -> Trace:
    """100 bytes from before; linear takes 30 and, inside addmm, 50; the 30 are freed; a loose 7 at last."""
    recorded = RankFile(0).step(1, 0, 1000).step(2, 1000, 2000)
    recorded.add("cpu_op", "aten::linear", 100, 400).add("cpu_op", "aten::addmm", 200, 200)
    recorded.add("user_annotation", "forward", 90, 500)
    recorded.memory(150, 30, 0x10, 130).memory(250, 50, 0x20, 180).memory(700, -30, 0x10, 150)
    recorded.memory(1100, 7, 0x30, 157).memory(1200, -100, 0x40, 57)
    return job(tmp_path / "job", recorded)


def test_the_timeline_is_what_the_allocator_recorded(tmp_path):
    frame = memory_timeline(small(tmp_path))
    assert frame["time_ns"].tolist() == [150, 250, 700, 1100, 1200]
    assert frame["change_bytes"].tolist() == [30, 50, -30, 7, -100]
    assert frame["allocated_bytes"].tolist() == [130, 180, 150, 157, 57]
    assert frame["reserved_bytes"].tolist() == [4096] * 5
    assert frame["iteration"].tolist() == [1, 1, 1, 2, 2]
    assert set(frame["device"]) == {"cuda:0"}


def test_the_peak_names_its_holders(tmp_path):
    frame = memory_peak(small(tmp_path))
    assert frame["peak_ns"].tolist() == [250] * 3
    assert frame["peak_bytes"].tolist() == [180] * 3
    by_operator = frame.set_index("operator")
    assert by_operator["bytes"].to_dict() == {BEFORE: 100, "aten::addmm": 50, "aten::linear": 30}
    assert by_operator["top_operator"].to_dict() == {
        BEFORE: BEFORE, "aten::addmm": "aten::linear", "aten::linear": "aten::linear",
    }  # fmt: skip
    assert by_operator.loc["aten::addmm", "annotation"] == "forward"
    assert by_operator.loc["aten::addmm", "iteration"] == 1
    assert pd.isna(by_operator.loc[BEFORE, "iteration"])
    assert sentence(frame) == (
        "Rank 0 needs most memory, 180 B on cuda:0; "
        "55.6 % of it is held by memory allocated before the recording."
    )


def test_of_equal_peaks_the_first_is_told(tmp_path):
    item = RankFile(0).step(1, 0, 1000)
    item.add("cpu_op", "aten::first", 5, 20).add("cpu_op", "aten::second", 45, 20)
    item.memory(10, 8, 0x10, 8).memory(30, -8, 0x10, 0).memory(50, 8, 0x20, 8)
    trace = job(tmp_path / "job", item)
    for scope in (Scope(), Scope(window_ns=(5, 900))):
        frame = memory_peak(trace, scope)
        assert frame[["peak_ns", "peak_bytes", "operator"]].to_numpy().tolist() == [[10, 8, "aten::first"]]
    # of a window that begins at its highest, it is the begin
    assert memory_peak(trace, Scope(window_ns=(12, 900)))["peak_ns"].tolist() == [12]


def test_the_top_operator_is_the_outermost_of_all(tmp_path):
    item = RankFile(0).step(1, 0, 1000)
    for depth, name in enumerate(("aten::linear", "aten::addmm", "aten::mm")):
        item.add("cpu_op", name, 100 + depth, 400 - 2 * depth)
    frame = memory_peak(job(tmp_path / "job", item.memory(150, 30, 0x10, 30)))
    assert frame[["top_operator", "operator"]].to_numpy().tolist() == [["aten::linear", "aten::mm"]]


def test_a_scope_starts_with_what_is_allocated_then(tmp_path):
    trace = small(tmp_path)
    frame = memory_peak(trace, Scope(iterations=(2,)))
    assert frame["peak_ns"].tolist() == [1100] * 3
    assert frame.set_index("operator")["bytes"].to_dict() == {BEFORE: 100, "aten::addmm": 50, NO_OPERATOR: 7}
    # Nothing changes in this window: its level is the one it began with.
    frame = memory_peak(trace, Scope(window_ns=(300, 400)))
    assert frame["peak_ns"].tolist() == [300] * 3
    assert frame["peak_bytes"].iloc[0] == 180
    frame = memory_peak(trace, Scope(window_ns=(1, 2)))
    assert frame["operator"].tolist() == [BEFORE]
    assert frame["bytes"].tolist() == [100]


def test_times_are_on_the_axis_of_the_job(tmp_path):
    ranks = [
        RankFile(rank, clock).step(1, 0, 1000).memory(500, 8, 1, 8) for rank, clock in ((0, 0), (1, 10_000))
    ]
    frame = memory_timeline(job(tmp_path / "job", *ranks))
    assert frame["time_ns"].tolist() == [500, 10_500]
    assert frame["iteration"].tolist() == [1, 1]


def test_without_totals_changes_are_added_up(tmp_path):
    recorded = RankFile(0).step(1, 0, 1000).memory(10, 8, 1).memory(20, 4, 2).memory(30, -8, 1)
    frame = memory_timeline(job(tmp_path / "job", recorded))
    assert frame["allocated_bytes"].tolist() == [8, 12, 4]
    assert frame["reserved_bytes"].isna().all()
    assert memory_peak(job(tmp_path / "job", recorded))["bytes"].tolist() == [12]


def test_devices_are_distinguished(tmp_path):
    recorded = RankFile(0).step(1, 0, 1000).memory(10, 8, 1, 8).memory(20, 4, 1, 4, device=0)
    frame = memory_peak(job(tmp_path / "job", recorded))
    assert frame[["device", "bytes"]].to_numpy().tolist() == [["cpu", 4], ["cuda:0", 8]]
    assert sentence(frame).startswith("Rank 0 needs most memory, 8 B on cuda:0")


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_changes_lead_from_total_to_total(name):
    trace = Trace.open(shared_trace(name))
    for _, rows in memory_timeline(trace).groupby("device"):
        assert (rows["allocated_bytes"].diff().iloc[1:] == rows["change_bytes"].iloc[1:]).all()
    scopes = [Scope(), *(Scope(iterations=(int(number),)) for number in trace.iterations["iteration"])]
    for scope in scopes:
        assert_conserved(memory_peak(trace, scope))


def assert_conserved(frame: pd.DataFrame) -> None:
    by = frame.groupby(["rank", "device"])
    assert (by["bytes"].sum() == by["peak_bytes"].first()).all()
    assert (by["peak_bytes"].min() == by["peak_bytes"].max()).all()
    assert (frame["bytes"] > 0).all()


def test_the_peak_of_the_example_is_the_greatest_of_its_timeline():
    trace = examples.load("ddp_4ranks")
    timeline, peak = memory_timeline(trace), memory_peak(trace)
    assert_conserved(peak)
    greatest = timeline.groupby("rank")["allocated_bytes"].max()
    assert (peak.groupby("rank")["peak_bytes"].first() == greatest).all()
    for number in (10, 11, 12):
        of_step = memory_peak(trace, Scope(iterations=(number,)))
        assert_conserved(of_step)
        assert (of_step["peak_bytes"] <= peak["peak_bytes"].max()).all()


changes = st.lists(st.tuples(st.integers(0, 6), st.integers(1, 1000)), min_size=1, max_size=40)


@settings(max_examples=tried(20), deadline=None)
@given(changes)
def test_live_blocks_add_up_to_the_peak(tmp_path_factory, each):
    recorded, held, total, highest = RankFile(0).step(1, 0, 10_000), {}, 0, 0
    for time, (address, size) in enumerate(each):
        change = -held.pop(address) if address in held else held.setdefault(address, size)
        total += change
        highest = max(highest, total)
        recorded.memory(time, change, address, total, reserved=1 << 20)
    frame = memory_peak(job(tmp_path_factory.mktemp("job"), recorded))
    assert frame["peak_bytes"].iloc[0] == frame["bytes"].sum() == highest
    assert BEFORE not in set(frame["operator"])


@pytest.mark.parametrize("name", ["hta/cpu_only", "hta/trace_filter"])
def test_without_memory_events_the_remedy_is_named(name):
    for function in (memory_timeline, memory_peak):
        with pytest.raises(MissingDataError, match="profile_memory=True"):
            function(Trace.open(shared_trace(name)))


# -- files of export_memory_timeline -----------------------------------------------------------------------


def test_the_file_of_hta_gives_its_numbers():
    frame = memory_categories(shared_trace("hta/memory_analysis/memory_timeline.raw.gz"))
    assert len(frame) == 7721
    assert frame[list(CATEGORIES)].iloc[744].tolist() == [
        102440608, 102228128, 19395584, 0, 2618160128, 58417152, 41811968, 25494440,
    ]  # fmt: skip
    assert frame[list(CATEGORIES)].sum(axis=1).max() == 3_082_832_104
    assert frame["time_ns"].is_monotonic_increasing
    assert (frame.dtypes == np.int64).all()


def written(tmp_path, content: object, zipped: bool = True):
    path = tmp_path / "timeline.raw.json.gz"
    text = json.dumps(content).encode()
    path.write_bytes(gzip.compress(text) if zipped else text)
    return path


@pytest.mark.parametrize("zipped", [True, False])
def test_records_of_one_time_are_one_change(tmp_path, zipped):
    records = [[-1, 1, 8, 7], [-1, 1, 2, 0], [50, 2, 4, 3], [50, 2, 1, 3], [90, 4, -8, 7]]
    frame = memory_categories(written(tmp_path, records, zipped))
    assert frame["time_ns"].tolist() == [50, 50, 90]
    assert frame[["Parameter", "Temporary", "Unknown"]].to_numpy().tolist() == [
        [2, 0, 8],
        [2, 5, 8],
        [2, 5, 0],
    ]


def test_an_empty_list_is_an_empty_frame(tmp_path):
    assert memory_categories(written(tmp_path, [])).empty


@pytest.mark.parametrize(
    "content",
    [
        {},
        [1, 2],
        [[1, 2, 3]],
        [[1, 2, 3, 8]],
        [[1, 2, 3, -1]],
        [[1, 2, 3, 0], [1, 2, 3, 8]],
        [["a", 1, 2, 3]],
        [[1, [2]]],
    ],
)
def test_other_files_are_refused(tmp_path, content):
    with pytest.raises(TraceFormatError):
        memory_categories(written(tmp_path, content))


def test_no_json_and_no_file_are_refused(tmp_path):
    path = tmp_path / "x"
    with pytest.raises(TraceNotFoundError):
        memory_categories(path)
    path.write_bytes(b"\x1f\x8bnonsense")
    with pytest.raises(TraceFormatError):
        memory_categories(path)


def test_pictures():
    trace = examples.load("ddp_4ranks")
    timeline = ANALYSES["memory_timeline"].figure(memory_timeline(trace))
    assert [line.name for line in timeline.data[:2]] == ["rank 0, allocated", "rank 0, reserved"]
    assert len(timeline.data) == 8
    held = memory_peak(trace)
    peak = ANALYSES["memory_peak"].figure(held)
    assert peak.layout.xaxis.title.text == "Memory (GiB)"
    longest = held.groupby(["rank", "top_operator"])["bytes"].sum().nlargest(20)
    assert sum(sum(bar.x) for bar in peak.data) == pytest.approx(longest.sum() / 1024**3)
