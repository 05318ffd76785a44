"""The frame of `what_if`: its rows for a scope, its parts, its clocks, and when there is no answer."""

import pandas as pd
import pytest

from hta_widgets import Scope, Trace, analysis, edits, examples
from hta_widgets.errors import MissingDataError
from tests.analysis.kineto_file import event, job
from tests.replay.program import call, only_a_script, operator, steps_of, work
from tests.replay.recordings import EXAMPLES
from tests.support import TEXT_DTYPE, shared_trace

PARTS = ["compute_ns", "exposed_communication_ns", "exposed_memory_ns", "idle_ns"]
TRUSTED = ["hta/trace_diff/control", "hta/trace_diff/test", "kineto/resnet50_num_workers_0"]
COLUMNS = {
    "rank": "int64",
    "iteration": "Int64",
    "clock": TEXT_DTYPE,
    "before_ns": "int64",
    "low_ns": "int64",
    "after_ns": "int64",
    "high_ns": "int64",
    **dict.fromkeys(PARTS, "int64"),
    "model_error_pct": "float64",
    "inferred": "int64",
}


def opened(name: str) -> Trace:
    return examples.load(name) if name in EXAMPLES else Trace.open(shared_trace(name))


@pytest.mark.parametrize("name", [*TRUSTED, *EXAMPLES])
def test_no_change_changes_nothing(name):
    trace = opened(name)
    frame = analysis.what_if(trace, [])
    assert frame.dtypes.astype(str).to_dict() == COLUMNS
    for column in ("low_ns", "after_ns", "high_ns"):
        assert frame[column].tolist() == frame["before_ns"].tolist()
    assert frame["rank"].unique().tolist() == trace.ranks


@pytest.mark.parametrize("name", [*TRUSTED, *EXAMPLES])
def test_where_the_time_goes_is_what_the_breakdown_says(name):
    """Of an unchanged recording the iterations are the same windows, so their parts are the same."""
    trace = opened(name)
    found = analysis.what_if(trace, []).dropna(subset="iteration")
    theirs = analysis.temporal_breakdown(trace, by="iteration").set_index(["rank", "iteration"])
    assert len(found)
    for row in found.to_dict("records"):
        same = theirs.loc[(row["rank"], row["iteration"])]
        assert row["before_ns"] == same["window_ns"]
        assert [row[part] for part in PARTS] == [same[part] for part in PARTS]


CHANGES = [edits.host(0.5), edits.kernels(3.0), edits.communication(0), edits.copies(0.5), edits.launches()]


@pytest.mark.parametrize("name", [*TRUSTED, "ddp_4ranks", "inference_cuda_graphs"])
def test_parts_add_up_and_the_estimate_lies_between(name):
    trace = opened(name)
    for change in CHANGES:
        frame = analysis.what_if(trace, change)
        assert frame[PARTS].sum(axis=1).tolist() == frame["after_ns"].tolist()
        assert (frame[PARTS] >= 0).all(axis=None)
        assert (frame["low_ns"] <= frame["after_ns"]).all()
        assert (frame["after_ns"] <= frame["high_ns"]).all()
        if change.bound:
            assert (frame["high_ns"] >= frame["before_ns"]).all()


def test_a_scope_chooses_rows_and_not_what_is_replayed():
    trace = opened("ddp_4ranks")
    change = edits.kernels(2.0)
    everything = analysis.what_if(trace, change)
    assert everything.groupby("rank")["iteration"].apply(lambda some: some.isna().sum()).tolist() == [1] * 4
    numbers = everything["iteration"].dropna().unique().tolist()
    two = analysis.what_if(trace, change, Scope(ranks=(1, 3)))
    pd.testing.assert_frame_equal(two, everything[everything["rank"].isin([1, 3])].reset_index(drop=True))
    some = analysis.what_if(trace, change, Scope(ranks=(1,), iterations=tuple(numbers[1:3])))
    expected = everything[(everything["rank"] == 1) & everything["iteration"].isin(numbers[1:3])]
    pd.testing.assert_frame_equal(some, expected.reset_index(drop=True))


def test_a_window_chooses_the_iterations_that_overlap_it():
    trace = opened("ddp_4ranks")
    steps = trace.rank(0).iterations
    number, begin, end = (steps[column].tolist() for column in ("iteration", "start_ns", "end_ns"))
    for window, expected in (
        ((begin[1], end[1]), number[1:2]),
        ((begin[1] + 1, begin[1] + 2), number[1:2]),
        ((begin[1], begin[2] + 1), number[1:3]),
    ):
        frame = analysis.what_if(trace, edits.kernels(2.0), Scope(ranks=(0,), window_ns=window))
        assert frame["iteration"].tolist() == expected


def test_one_edit_is_a_list_of_one():
    trace = opened("gpt2_baseline")
    pd.testing.assert_frame_equal(
        analysis.what_if(trace, edits.host(0.5)), analysis.what_if(trace, [edits.host(0.5)])
    )


def test_steps_that_the_host_times(tmp_path):
    events, end = steps_of(kernel_ns=40_000)
    events.append(call("cudaDeviceSynchronize", end, end + 5_000))
    frame = analysis.what_if(job(tmp_path, events), edits.host(0.75)).iloc[1:]
    assert set(frame["clock"]) == {"host"}
    # Each until the next one begins, 100 ns after its own mark ends.
    assert frame["before_ns"].tolist() == [100_000] * 3 + [99_900]
    assert frame["after_ns"].tolist()[:3] == [75_000] * 3
    assert frame["compute_ns"].tolist()[:3] == [40_000] * 3


def test_a_device_that_times_the_recording_times_the_replay(tmp_path):
    events, _ = steps_of(kernel_ns=300_000)
    frame = analysis.what_if(job(tmp_path, events), edits.kernels(2.0)).iloc[1:]
    assert set(frame["clock"]) == {"device"}
    # From first work to first work, and of the last to its end; 1 us lies between kernels.
    assert frame["before_ns"].tolist() == [301_000] * 3 + [300_000]
    assert frame["after_ns"].tolist() == [151_000] * 3 + [150_000]


def test_a_device_that_falls_behind_is_timed_by_its_period(tmp_path):
    """The host is ten times as fast and the device cannot follow: its steps follow each other by 41 us."""
    events, end = steps_of(kernel_ns=40_000, count=6)
    events.append(call("cudaDeviceSynchronize", end, end + 5_000))
    frame = analysis.what_if(job(tmp_path, events), edits.host(0.1)).iloc[1:]
    assert set(frame["clock"]) == {"device period"}
    # Both times from the first kernel of a step to that of the next, of the last to its end.
    assert frame["before_ns"].tolist() == [100_000] * 5 + [40_000]
    assert frame["after_ns"].tolist() == [41_000] * 5 + [40_000]
    assert frame["idle_ns"].tolist() == [1_000] * 5 + [0]


def test_a_device_that_falls_behind_a_little_is_timed_by_its_period(tmp_path):
    """7.2 us of the last kernel then run after its step: the host's windows would miss that of 168 us."""
    events, end = steps_of(kernel_ns=40_000)
    events.append(call("cudaDeviceSynchronize", end, end + 5_000))
    frame = analysis.what_if(job(tmp_path, events), edits.host(0.42)).iloc[1:]
    assert set(frame["clock"]) == {"device period"}
    assert frame["before_ns"].tolist() == [100_000] * 3 + [40_000]
    assert frame["after_ns"].tolist() == [42_000] * 3 + [40_000]


def test_a_device_as_far_behind_as_recorded_leaves_the_clock_to_the_host(tmp_path):
    """Of each kernel 10.1 us run after its step as recorded, and 11.7 us then: hardly more."""
    events, end = steps_of(kernel_ns=95_000, count=12)
    events.append(call("cudaDeviceSynchronize", end + 15_000, end + 20_000))
    frame = analysis.what_if(job(tmp_path, events), edits.host(0.98)).iloc[1:]
    assert set(frame["clock"]) == {"host"}
    assert frame["after_ns"].tolist()[:3] == [98_000] * 3


def test_a_rank_that_cannot_be_trusted_says_why(tmp_path):
    trace = job(tmp_path, only_a_script())
    with pytest.raises(MissingDataError, match="on the host, where nothing is recorded") as raised:
        analysis.what_if(trace, [])
    assert "ProfilerActivity.CUDA" in raised.value.remedy
    assert raised.value.detail.startswith("for 100 % of the time")
    assert not analysis.replay_quality(trace)["trusted"].any()


@pytest.mark.parametrize(
    ("calls", "reason"),
    [
        (
            [("cpu_op", "aten::ones", 1, 701), ("cpu_op", "aten::empty", 1, 700)],
            "for 69.9 % of the time the critical path is in one call of the host (aten::empty). For "
            "30.0 % of it nothing is recorded",
        ),
        (
            [("user_annotation", "clear_cache", 1, 998)],
            "for 99.7 % of the time the critical path is in one call of the host (clear_cache)",
        ),
        (  # a region around a call is no call
            [("user_annotation", "train", 1, 998), ("cpu_op", "aten::empty", 2, 300)],
            "for 70.2 % of the time the critical path is on the host, where nothing is recorded",
        ),
        ([("cpu_op", "aten::ones", 1, 495), ("cpu_op", "aten::empty", 500, 990)], ""),
    ],
)
def test_a_call_as_long_as_half_of_the_recording_is_named(tmp_path, calls, reason):
    """It tells nothing about what happens in it, but it is recorded."""
    more = [
        event(kind, name, begin * 1_000_000, (end - begin) * 1_000_000) for kind, name, begin, end in calls
    ]
    trace = job(tmp_path, [*only_a_script(), *more])
    assert analysis.replay_quality(trace)["reason"].tolist() == [reason]


def test_of_several_ranks_those_answer_that_can_be_trusted(tmp_path):
    events, _ = steps_of(kernel_ns=300_000)
    trace = job(tmp_path, only_a_script(), events)
    assert analysis.what_if(trace, edits.kernels(2.0))["rank"].unique().tolist() == [1]
    assert analysis.replay_quality(trace)["trusted"].tolist() == [False, True]
    assert analysis.replay_quality(trace, Scope(ranks=(1,)))["rank"].tolist() == [1]
    with pytest.raises(MissingDataError) as raised:
        analysis.what_if(trace, [], Scope(ranks=(0,)))
    assert raised.value.detail.startswith("for 100 % of the time")


def test_of_several_ranks_that_cannot_be_trusted_the_first_is_named(tmp_path):
    trace = job(tmp_path, only_a_script(), only_a_script())
    with pytest.raises(MissingDataError) as raised:
        analysis.what_if(trace, [])
    assert raised.value.detail.startswith("rank 0: for 100 % of the time")


def test_without_device_work_there_is_nothing_to_replay(tmp_path):
    trace = job(tmp_path, [operator("aten::mm", 0, 10_000)])
    for ask in (lambda: analysis.what_if(trace, []), lambda: analysis.replay_quality(trace)):
        with pytest.raises(MissingDataError, match="device events"):
            ask()


def test_most_of_the_work_without_a_launch(tmp_path):
    events, _ = steps_of(kernel_ns=300_000, count=2)
    orphans = [work(f"o{at}", 90 + at, 617_000 + 301_000 * at, 917_000 + 301_000 * at) for at in range(3)]
    with pytest.raises(MissingDataError, match=r"60\.0 % of the device work has no recorded launch"):
        analysis.what_if(job(tmp_path, [*events, *orphans]), [])
    # Half of it is not most of it.
    assert len(analysis.what_if(job(tmp_path, [*events, *orphans[:2]]), []))
