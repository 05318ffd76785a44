"""Kernel sequences below operators: by hand, and on a recorded trace against HTA."""

import pandas as pd
import pytest

from hta_widgets.analysis.calls.sequences import kernel_sequences, sentence, sequence_instances
from hta_widgets.analysis.registry import ANALYSES
from hta_widgets.errors import MissingDataError
from hta_widgets.hta.methods.drop_last_step import without_last_step
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope
from tests.support import shared_trace
from tests.trace.helpers import kernel, slice_, write


def call(name, start, dur, *launches):
    """An operator and its launches 1 us after another, by correlation."""
    calls = [
        slice_("cudaLaunchKernel", "cuda_runtime", start + 1 + at, 1, correlation=correlation)
        for at, correlation in enumerate(launches)
    ]
    return [slice_(name, "cpu_op", start, dur), *calls]


EVENTS = [
    *call("aten::linear", 0, 10, 1, 2),
    *call("aten::linear", 20, 12, 3, 4),
    # One level deeper, and inside another match; the outer one counts.
    slice_("model", "cpu_op", 40, 40),
    slice_("aten::linear_outer", "cpu_op", 45, 30),
    *call("aten::linear", 50, 10, 5, 6),
    *call("aten::relu", 90, 5, 7),
    *call("aten::linear", 100, 5),
    kernel("gemm", 100, 5, 1),
    kernel("bias|add", 105, 2, 2, stream=8),
    kernel("gemm", 120, 6, 3),
    kernel("bias|add", 130, 3, 4),
    # Launched first, but runs second: the pattern tells the order on the device.
    kernel("bias|add", 160, 1, 5),
    kernel("gemm", 150, 2, 6),
    kernel("relu", 170, 9, 7),
]


@pytest.fixture
def trace(tmp_path):
    return Trace.open(write(tmp_path / "rank0.json", EVENTS))


def test_patterns_are_counted_and_summed(trace):
    frame = kernel_sequences(trace, None, "aten::linear", 1)
    assert frame["pattern"].tolist() == ["aten::linear|gemm|bias|add", "aten::linear_outer|gemm|bias|add"]
    assert frame["count"].tolist() == [2, 1]
    assert frame["length"].tolist() == [2, 2]
    assert frame["device_ns"].tolist() == [16_000, 3_000]
    assert frame["host_ns"].tolist() == [22_000, 30_000]
    assert frame["device_mean_ns"].tolist() == [8_000.0, 3_000.0]
    assert frame["first_event_id"].tolist() == [0, 7]
    assert sentence(frame).startswith(
        "3 calls launch 2 distinct sequences. The most frequent is also the costliest: it occurs 2"
    )


def test_instances_lead_back_to_the_events(trace):
    frame = sequence_instances(trace, None, "aten::linear", 1)
    assert frame["event_id"].tolist() == [0, 3, 7]
    assert frame["start_ns"].tolist() == [0, 20_000, 45_000]
    assert frame["depth"].tolist() == [0, 0, 1]


def test_min_length_and_top_leave_out(trace):
    assert kernel_sequences(trace, None, "aten::linear", 3).empty
    assert kernel_sequences(trace, None, "aten::", 1, top=1)["pattern"].tolist() == [
        "aten::linear|gemm|bias|add"
    ]
    assert kernel_sequences(trace, None, "aten::relu", 1)["pattern"].tolist() == ["aten::relu|relu"]


def test_shallowest_misses_calls_that_lie_deeper(trace):
    frame = kernel_sequences(trace, None, "aten::linear", 1, roots="shallowest")
    assert frame["count"].tolist() == [2]


def test_scopes_choose_calls_and_their_kernels(trace):
    early = kernel_sequences(trace, Scope(window_ns=(0, 20_000)), "aten::linear", 1)
    assert (early["count"].tolist(), early["device_ns"].tolist()) == ([1], [7_000])
    late = kernel_sequences(trace, Scope(window_ns=(20_000, 200_000)), "aten::linear", 1)
    assert early["count"].sum() + late["count"].sum() == 3
    one_stream = kernel_sequences(trace, Scope(streams=(8,)), "aten::linear", 1)
    assert one_stream["pattern"].tolist() == ["aten::linear|bias|add"]
    assert kernel_sequences(trace, Scope(names=("gemm",)), "aten::linear", 1)["device_ns"].sum() == 13_000
    assert kernel_sequences(trace, Scope(window_ns=(10**9, 2 * 10**9)), "aten::linear", 1).empty


def test_what_cannot_be_answered_is_reported(trace, tmp_path):
    with pytest.raises(ValueError, match="operator is empty"):
        kernel_sequences(trace)
    with pytest.raises(ValueError, match="topmost"):
        kernel_sequences(trace, None, "x", roots="deepest")
    host = Trace.open(write(tmp_path / "host" / "rank0.json", call("aten::linear", 0, 10, 1)))
    with pytest.raises(MissingDataError, match="ProfilerActivity"):
        kernel_sequences(host, None, "aten::linear")
    assert sentence(kernel_sequences(trace, None, "no such operator")).startswith("No such operator")


def test_the_order_of_the_file_does_not_matter(trace, tmp_path):
    again = Trace.open(write(tmp_path / "again" / "rank0.json", EVENTS[::-1]))
    pd.testing.assert_frame_equal(
        kernel_sequences(trace, None, "aten::", 1).drop(columns="first_event_id"),
        kernel_sequences(again, None, "aten::", 1).drop(columns="first_event_id"),
    )


def test_the_figure_draws_the_time_of_each_pattern_and_tells_its_count(trace):
    frame = kernel_sequences(trace, None, "aten::linear", 1)
    bars = ANALYSES["kernel_sequences"].figure(frame.assign(pattern=["<i>|b", "c"])).data[0]
    assert list(bars.x) == (frame["device_ns"] / 1e6).tolist()
    assert "pattern: &lt;i&gt;|b<br>" in bars.customdata[0]
    assert "<br>count: 2<br>" in bars.customdata[0]


# get_frequent_cuda_kernel_sequences("aten::linear", min_pattern_len=1) of HTA 0.6.1: count, GPU and CPU us.
HTA_FIRST = [(135, 1671, 7281), (35, 420, 1960), (30, 947, 1914)]


def test_shallowest_agrees_with_hta():
    job = without_last_step(Trace.open(shared_trace("hta/trace_diff/control")))
    frame = kernel_sequences(job, None, "aten::linear", 1, roots="shallowest")
    assert len(frame) == 17
    first = frame[["count", "device_ns", "host_ns"]].head(3).to_numpy()
    assert (first == [(count, gpu * 1000, cpu * 1000) for count, gpu, cpu in HTA_FIRST]).all()
    longer = kernel_sequences(job, None, "aten::linear", roots="shallowest")
    assert longer[["count", "device_ns", "host_ns"]].to_numpy().tolist() == [[10, 986_000, 1_123_000]]


def test_topmost_finds_every_call():
    job = without_last_step(Trace.open(shared_trace("hta/trace_diff/control")))
    rank_trace = job.rank(3)
    calls = sum(rank_trace.names[code] == "aten::linear" for code in rank_trace.name)
    assert calls == 505
    assert kernel_sequences(job, None, "aten::linear", 1)["count"].sum() == calls
    assert kernel_sequences(job, None, "aten::linear", 1, roots="shallowest")["count"].sum() == 355


def test_a_kernel_is_no_operator(trace):
    assert kernel_sequences(trace, None, "gemm", 1).empty


def test_calls_of_several_ranks_are_numbered_through(tmp_path):
    for rank in (0, 1):
        write(tmp_path / f"rank{rank}.json", EVENTS, distributedInfo={"rank": rank, "world_size": 2})
    frame = sequence_instances(Trace.open(tmp_path), None, "aten::linear", 1)
    assert frame["rank"].tolist() == [0, 0, 0, 1, 1, 1]
    assert frame.index.tolist() == [*range(6)]


def test_unasked_it_is_an_operator_with_a_name(tmp_path):
    events = [*call("", 0, 10, 1), *call("aten::relu", 20, 10, 2), kernel("long", 100, 50, 1)]
    trace = Trace.open(write(tmp_path / "rank0.json", [*events, kernel("relu", 160, 5, 2)]))
    assert ANALYSES["kernel_sequences"].function(trace)["pattern"].tolist() == ["aten::relu|relu"]


def test_unasked_calls_without_a_name_have_no_sequences(tmp_path):
    trace = Trace.open(write(tmp_path / "rank0.json", [*call("", 0, 10, 1), kernel("long", 100, 50, 1)]))
    assert ANALYSES["kernel_sequences"].function(trace).empty
