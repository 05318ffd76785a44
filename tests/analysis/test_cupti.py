"""CUPTI counters: by hand, and on a recorded trace against the numbers in HTA's own tests."""

import pytest

from hta_widgets.analysis.calls.cupti import CUDA_SASS_INSTRUCTION_COUNTER_FLOPS, cupti_counters, sentence
from hta_widgets.analysis.registry import ANALYSES
from hta_widgets.errors import MissingDataError
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope
from tests.support import shared_trace
from tests.trace.helpers import slice_, write

FFMA = "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"
FADD = "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum"
EVENTS = [
    slice_("aten::conv2d", "cpu_op", 0, 20),
    slice_("aten::cudnn", "cpu_op", 1, 10),
    slice_("cudaLaunchKernelExC", "cuda_runtime", 2, 3, correlation=1),
    # The runtime calls the driver: one launch, not two.
    slice_("cuLaunchKernelEx", "cuda_driver", 3, 1, correlation=1),
    slice_("cudaLaunchKernel", "cuda_runtime", 30, 1, correlation=2),
    slice_("second", "cuda_profiler_range", 150, 50, tid=0, **{FFMA: 7, "ratio": 0.25}),
    slice_("first", "cuda_profiler_range", 100, 50, tid=0, **{FFMA: 10, FADD: 3, "ratio": 1}),
]


@pytest.fixture
def trace(tmp_path):
    return Trace.open(write(tmp_path / "rank0.json", EVENTS))


def test_ranges_are_paired_with_launches_in_order(trace):
    frame = cupti_counters(trace)
    assert frame["name"].tolist() == ["first", "second"]
    assert frame["launch_event_id"].tolist() == [2, 4]
    assert frame["op_stack"].tolist() == [["aten::conv2d", "aten::cudnn"], []]
    assert frame["top_level_op"].tolist() == ["aten::conv2d", ""]
    assert frame["bottom_level_op"].tolist() == ["aten::cudnn", ""]
    assert frame[FFMA].tolist() == [10, 7]
    assert frame["ratio"].tolist() == [1.0, 0.25]
    assert frame["flops"].iloc[0] == 23.0


def test_a_scope_chooses_by_the_launch(trace):
    assert cupti_counters(trace, Scope(window_ns=(0, 10_000)))["name"].tolist() == ["first"]
    assert cupti_counters(trace, Scope(names=("second",)))["launch_event_id"].tolist() == [4]
    empty = cupti_counters(trace, Scope(window_ns=(10**9, 10**9 + 1)))
    assert empty.empty
    assert sentence(empty) == "No measured kernel lies in the selection."


def test_unequal_counts_pair_nothing(tmp_path):
    frame = cupti_counters(Trace.open(write(tmp_path / "rank0.json", EVENTS[:4] + EVENTS[5:])))
    assert frame["launch_event_id"].tolist() == [-1, -1]
    assert frame["top_level_op"].tolist() == ["", ""]
    assert sentence(frame).startswith("2 kernels were measured, not paired with a launch")


def test_without_ranges_the_remedy_is_named(tmp_path):
    with pytest.raises(MissingDataError, match="profiler_metrics"):
        cupti_counters(Trace.open(write(tmp_path / "rank0.json", EVENTS[:5])))


def test_a_fused_multiply_add_counts_twice():
    assert len(CUDA_SASS_INSTRUCTION_COUNTER_FLOPS) == 9
    assert {name: factor for name, factor in CUDA_SASS_INSTRUCTION_COUNTER_FLOPS.items() if factor == 2} == {
        f"smsp__sass_thread_inst_executed_op_{kind}fma_pred_on.sum": 2 for kind in "fhd"
    }


def test_a_recorded_trace_has_htas_numbers():
    frame = cupti_counters(Trace.open(shared_trace("hta/cupti_profiler")))
    assert len(frame) == 77
    assert set(CUDA_SASS_INSTRUCTION_COUNTER_FLOPS) <= set(frame.columns)
    row = frame.iloc[5]
    assert "fft2d_r2c_32x32" in row["name"]
    assert row[FADD] == 86_114_304
    assert (row["top_level_op"], row["bottom_level_op"]) == ("aten::conv2d", "aten::cudnn_convolution")
    assert row["flops"] == 86_114_304 + 2 * 61_734_912 + 25_362_432
    (bars,) = ANALYSES["cupti_counters"].figure(frame).data
    assert sum(bars.x) == pytest.approx(frame["flops"].sum() / 1e9)
