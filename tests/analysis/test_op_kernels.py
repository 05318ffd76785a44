"""Operators and the kernels they launch."""

import pytest

from hta_widgets.analysis.launches.op_kernels import op_kernels, sentence
from hta_widgets.analysis.registry import ANALYSES
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope
from tests.analysis.test_launches import call, opened
from tests.support import shared_trace
from tests.trace.helpers import kernel, slice_

EVENTS = [
    slice_("aten::linear", "cpu_op", 0, 100),
    slice_("aten::addmm", "cpu_op", 10, 50),
    call("cudaLaunchKernel", 20, 5, 1),
    call("cudaLaunchKernel", 30, 5, 2),
    call("cudaMemcpyAsync", 40, 5, 3),
    slice_("triton_op", "cpu_op", 70, 20),
    call("cuLaunchKernel", 75, 5, 4),
    # Another thread at the same time: its innermost operator is its own.
    slice_("aten::mul", "cpu_op", 12, 100, tid=2),
    call("cudaLaunchKernel", 32, 2, 5, tid=2),
    # The same sequence once more.
    slice_("aten::addmm", "cpu_op", 200, 50),
    call("cudaLaunchKernel", 204, 5, 6),
    call("cudaLaunchKernel", 230, 5, 7),
    # A graph, and a launch in no operator.
    slice_("replay", "cpu_op", 300, 50),
    call("cudaGraphLaunch", 310, 5, 8),
    call("cudaLaunchKernel", 400, 5, 9),
    kernel("k<int>", 50, 10, 1), kernel("l", 60, 10, 2), kernel("t", 90, 10, 4), kernel("m", 100, 10, 5),
    {**kernel("Memcpy DtoD", 72, 2, 3), "cat": "gpu_memcpy"},
    kernel("k<int>", 210, 10, 6), kernel("l", 240, 10, 7),
    kernel("g", 320, 10, 8), kernel("g", 330, 10, 8), kernel("h", 340, 10, 8), kernel("x", 410, 1, 9),
]  # fmt: skip


def test_sequences_of_the_innermost_operator_on_the_thread(tmp_path):
    frame = op_kernels(opened(tmp_path, EVENTS), include_memory=False).set_index("op")
    assert frame["kernel_sequence"].to_dict() == {
        "aten::addmm": "k<int> -> l", "triton_op": "t", "aten::mul": "m", "replay": "g -> g -> h",
    }  # fmt: skip
    addmm = frame.loc["aten::addmm"]
    assert addmm[["kernels", "count", "op_delay_ns", "launch_latency_ns", "device_ns"]].tolist() == [
        2, 2, 14000, 36000, 40000,
    ]  # fmt: skip
    assert addmm[["mean_op_delay_ns", "mean_launch_latency_ns", "mean_device_ns"]].tolist() == [
        7000,
        18000,
        20000,
    ]
    assert frame.index[0] == "aten::addmm"
    replay = frame.loc["replay", ["kernels", "count", "device_ns", "mean_device_ns"]]
    assert replay.tolist() == [3, 1, 30000, 30000], "a mean per call, not per kernel"


def test_a_prefix_passes_launches_on_to_the_next_operator_outside(tmp_path):
    frame = op_kernels(opened(tmp_path, EVENTS), prefix="aten::", include_memory=False).set_index("op")
    assert frame["kernel_sequence"].to_dict() == {
        "aten::addmm": "k<int> -> l", "aten::linear": "t", "aten::mul": "m",
    }  # fmt: skip


def test_copies_are_kernels_unless_left_out(tmp_path):
    frame = op_kernels(opened(tmp_path, EVENTS))
    assert "k<int> -> l -> Memcpy DtoD" in set(frame["kernel_sequence"])


def test_instances_are_kept_whole_and_belong_where_their_operator_starts(tmp_path):
    trace = opened(tmp_path, EVENTS)
    whole = op_kernels(trace, by="instance")
    assert whole["op_id"].tolist() == [1, 7, 5, 9, 12]
    origin = 0
    early = op_kernels(trace, Scope(window_ns=(origin, 205_000)), by="instance")
    late = op_kernels(trace, Scope(window_ns=(205_000, 10**9)), by="instance")
    assert early["op_id"].tolist() == [1, 7, 5, 9] and late["op_id"].tolist() == [12]
    assert early["kernels"].tolist() == [3, 1, 1, 2]
    with pytest.raises(ValueError, match="sequence"):
        op_kernels(trace, by="thread")


def test_device_time_is_that_of_all_kernels_launched_in_operators(tmp_path):
    trace = Trace.open(shared_trace("hta/ns_resolution_trace"))
    frame, instances = op_kernels(trace), op_kernels(trace, by="instance")
    for column in ("device_ns", "op_delay_ns", "launch_latency_ns"):
        assert frame[column].sum() == instances[column].sum()
    assert frame["count"].sum() == len(instances)
    assert not frame.duplicated(["rank", "op", "kernel_sequence"]).any()
    # Names of copies hold an arrow of their own.
    frame = op_kernels(trace, include_memory=False)
    named = [text.split(" -> ") for text in frame["kernel_sequence"]]
    assert [len(names) for names in named] == frame["kernels"].tolist()


def test_words_picture_and_nothing(tmp_path):
    trace = opened(tmp_path, EVENTS)
    frame = op_kernels(trace)
    assert "5 operator calls" in sentence(frame)
    shown = str(ANALYSES["op_kernels"].figure(frame).to_dict())
    assert "k&lt;int" in shown and "k<int" not in shown
    empty = op_kernels(trace, Scope(streams=(99,)))
    assert empty.empty and list(empty) == list(frame)
    assert (empty.dtypes == frame.dtypes).all()
    assert "No operator" in sentence(empty)
