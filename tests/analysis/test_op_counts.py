"""Counts and durations per name: by hand, additive over scopes, consistent with the event table."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hta_widgets import examples
from hta_widgets.analysis import ANALYSES
from hta_widgets.analysis.calls.op_counts import (
    counts_by_name,
    exclusive,
    is_counted,
    op_counts,
    sentence,
)
from hta_widgets.trace import Scope, Trace
from tests.support import shared_input, shared_trace, tried
from tests.trace.helpers import kernel, slice_, write


def job(folder, events):
    return Trace.open(write(folder / "t.json", events), cache=False, repair=False)


CALLS = [
    slice_("ProfilerStep#1", "user_annotation", 0, 100),
    slice_("outer", "cpu_op", 10, 50),
    slice_("inner", "cpu_op", 15, 10.5),
    slice_("inner", "cpu_op", 30, 5),
    slice_("cudaLaunchKernel", "cuda_runtime", 16, 2, correlation=1),
    slice_("forward", "user_annotation", 10, 60),
    kernel("k", 40, 30, correlation=1),
    kernel("orphan", 50, 1, correlation=2),
    slice_("Stream Sync", "cuda_sync", 60, 9, correlation=3, stream=7),
    slice_("forward", "gpu_user_annotation", 40, 30, 7, stream=7),
    slice_("PyTorch Profiler (0)", "Trace", 0, 200),
]


def test_counts_by_hand(tmp_path):
    frame = op_counts(job(tmp_path, CALLS)).set_index("name")
    assert frame["count"].to_dict() == {
        "ProfilerStep#1": 1, "cudaLaunchKernel": 1, "forward": 1, "inner": 2, "k": 1, "orphan": 1, "outer": 1
    }  # fmt: skip
    assert frame.loc["inner", ["total_duration_ns", "exclusive_duration_ns"]].tolist() == [15_500, 13_500]
    assert frame.loc["outer", ["total_duration_ns", "exclusive_duration_ns"]].tolist() == [50_000, 34_500]
    # of the step what is outside `forward`, and of that what is outside `outer`: the thread's 100 us once
    assert frame.loc["ProfilerStep#1", "exclusive_duration_ns"] == 40_000
    assert frame.loc["forward", "exclusive_duration_ns"] == 10_000
    assert op_counts(job(tmp_path, CALLS), device="cpu")["exclusive_duration_ns"].sum() == 100_000
    assert frame.loc["k", "exclusive_duration_ns"] == 30_000


def test_devices(tmp_path):
    trace = job(tmp_path, CALLS)
    assert op_counts(trace, device="gpu")["name"].tolist() == ["k", "orphan"]
    assert op_counts(trace, device="gpu", launched=True)["name"].tolist() == ["k"]
    everything = op_counts(trace)["count"].sum()
    assert op_counts(trace, device="cpu")["count"].sum() == everything - 2
    with pytest.raises(ValueError, match="tpu"):
        op_counts(trace, device="tpu")


def test_counts_by_name_are_those_of_all_categories():
    trace = Trace.open(shared_trace("hta/trace_filter"))
    for scope in (None, Scope(ranks=trace.ranks[:1]), Scope(iterations=(551,)), Scope(iterations=(9,))):
        for device in ("all", "cpu", "gpu"):
            for launched in (False, True):
                frame = op_counts(trace, scope, device, launched).groupby("name")
                sums = frame[["count", "total_duration_ns"]].sum()
                expected = {name: tuple(row) for name, *row in sums.itertuples()}
                assert counts_by_name(trace, scope, device, launched) == expected


def test_nothing_selected(tmp_path):
    trace = job(tmp_path, CALLS)
    for scope in (Scope(ranks=(9,)), Scope(iterations=(9,))):
        frame = op_counts(trace, scope)
        assert frame.empty and frame["count"].dtype == np.int64
    assert sentence(frame) == "Nothing ran."
    assert sentence(op_counts(trace)) == (
        "7 operations ran 8 times. The most host time goes to ProfilerStep#1 itself: 40.0 % of it, in 1 run. "
        "The most device time goes to k: 96.8 % of it, in 1 run."
    )


def test_sums_that_a_profiler_adds_are_no_operations():
    trace = Trace.open(shared_input("recordings/ascend_trace_view"))
    assert {"Free", "Computing"} <= set(trace.events()["name"])
    assert not {"Free", "Computing"} & set(op_counts(trace)["name"])


def test_waits_of_a_device_are_none_of_its_work():
    counts = op_counts(Trace.open(shared_trace("hta/mtia_inference_trace")))
    assert not {"event_wait", "event_record"} & set(counts["name"])
    assert "The most device time goes to merge: " in sentence(counts)


@pytest.mark.parametrize(
    "name",
    ["ddp_4ranks", "gpt2_fsdp_full_shard", "inference_cuda_graphs", "tracelens/torch_compile_triton"],
)
def test_shares_are_those_of_the_other_panels(name):
    trace = Trace.open(shared_trace(name)) if "/" in name else examples.load(name)
    counts, calls, kernels = (
        ANALYSES[kind].sentence(ANALYSES[kind].function(trace))
        for kind in ("op_counts", "call_stacks", "kernel_breakdown")
    )
    host, device = re.findall(r"([\d.]+ %) of it", counts)
    assert f"{host} of the time of all calls" in calls
    assert f": {device} in " in kernels


def test_callees_that_overlap_count_once(tmp_path):
    # The second call ends after the first one's end: damaged nesting, still no time twice.
    events = [slice_("f", "cpu_op", 0, 100), slice_("a", "cpu_op", 10, 50), slice_("b", "cpu_op", 40, 40)]
    rank_trace = job(tmp_path, events).rank(0)
    assert exclusive(rank_trace)[0] == 30_000


@settings(max_examples=tried(25), deadline=None)
@given(st.data())
def test_exclusive_times_of_nested_calls_add_up(tmp_path_factory, data):
    events = []

    def nest(start, end, depth):
        events.append(slice_(f"d{depth}", "cpu_op", start, end - start))
        at = start
        while depth < 4 and at < end and data.draw(st.booleans()):
            first = data.draw(st.integers(at, end))
            last = data.draw(st.integers(first, end))
            nest(first, last, depth + 1)
            at = last + 1

    nest(0, 60, 0)
    frame = op_counts(job(tmp_path_factory.mktemp("nest"), events))
    assert frame["exclusive_duration_ns"].sum() == 60_000
    assert (frame["exclusive_duration_ns"] >= 0).all()
    assert frame["count"].sum() == len(events)


@pytest.mark.parametrize(
    "name", ["hta/trace_diff/control", "hta/amd_trace", "tracelens/inference/sglang_decode"]
)
def test_neighbouring_scopes_add_up(name):
    trace = Trace.open(shared_trace(name))
    first, last = trace.extent_ns
    middle = (first + last) // 2
    parts = [op_counts(trace, Scope(window_ns=window)) for window in ((first, middle), (middle, last + 1))]
    whole = op_counts(trace)
    columns = ["count", "total_duration_ns", "exclusive_duration_ns"]
    assert sum(part[columns].sum() for part in parts).tolist() == whole[columns].sum().tolist()
    assert (whole["exclusive_duration_ns"] <= whole["total_duration_ns"]).all()
    assert (whole["exclusive_duration_ns"] >= 0).all()


def test_counts_are_those_of_the_event_table():
    trace = Trace.open(shared_trace("hta/nccl_parser_config"))
    events = trace.events()
    kernels = events[events["category"].isin(["kernel", "gpu_memcpy", "gpu_memset"])]
    expected = kernels.groupby(["name", "category"], observed=True)["dur_ns"].agg(["size", "sum"])
    frame = op_counts(trace, device="gpu").set_index(["name", "category"])
    assert frame["count"].to_dict() == expected["size"].to_dict()
    assert frame["total_duration_ns"].to_dict() == expected["sum"].to_dict()


@pytest.mark.parametrize("name", ["ddp_4ranks", "gpt2_fsdp_full_shard", "continuous_batching"])
def test_each_moment_of_a_thread_counts_once(name):
    rank_trace = examples.load(name).rank(0)
    counted = np.flatnonzero(is_counted(rank_trace, np.arange(rank_trace.n), "cpu"))
    own = exclusive(rank_trace)
    for thread in np.unique(rank_trace.thread[counted]):
        rows = counted[rank_trace.thread[counted] == thread]
        covered, until = 0, 0
        for row in rows[np.argsort(rank_trace.start[rows])]:
            start, end = int(rank_trace.start[row]), int(rank_trace.end[row])
            covered += max(end - max(start, until), 0)
            until = max(until, end)
        assert own[rows].sum() == covered > 0
