"""`get_cupti_counter_data_with_operators`: HTA's frames."""

import pytest

from hta_widgets.analysis.calls.cupti import CUDA_SASS_INSTRUCTION_COUNTER_FLOPS
from hta_widgets.errors import MissingDataWarning
from hta_widgets.hta.analyzers.cupti_counter_analysis import (
    CuptiCounterAnalysis,
    cupti_counter_data_with_operators,
)
from hta_widgets.hta.common.trace import Trace
from tests.analysis.test_cupti import EVENTS, FFMA
from tests.support import shared_trace
from tests.trace.helpers import write


def opened(tmp_path, *jobs):
    files = {rank: str(write(tmp_path / f"rank{rank}.json", events)) for rank, events in enumerate(jobs)}
    trace = Trace(files, "")
    trace.load_traces()
    return trace


def test_htas_numbers_on_a_recorded_trace():
    trace = Trace(None, str(shared_trace("hta/cupti_profiler")))
    trace.load_traces()
    (frame,) = cupti_counter_data_with_operators(trace)
    assert len(frame) == 77
    assert set(CUDA_SASS_INSTRUCTION_COUNTER_FLOPS) <= set(frame.columns)
    row = frame.sort_values("ts").iloc[5]
    assert "fft2d_r2c_32x32" in row["name"]
    assert row["cat"] == "cuda_profiler_range"
    assert row["smsp__sass_thread_inst_executed_op_fadd_pred_on.sum"] == 86_114_304
    assert (row["top_level_op"], row["bottom_level_op"]) == ("aten::conv2d", "aten::cudnn_convolution")
    assert row["index_runtime"] == 3737
    assert row["op_stack"] == [
        "aten::conv2d", "aten::convolution", "aten::_convolution", "aten::cudnn_convolution",
    ]  # fmt: skip
    stack = ["depth", "height", "parent", "num_kernels", "kernel_dur_sum", "kernel_span"]
    assert set(stack) <= set(frame.columns)


def test_each_rank_has_its_own_stacks(tmp_path):
    """HTA looks up every rank's stacks in the first rank (Q-33)."""
    renamed = [{**event, "name": event["name"].replace("conv2d", "conv3d")} for event in EVENTS]
    frames = cupti_counter_data_with_operators(opened(tmp_path, EVENTS, renamed), [0, 1])
    assert [frame["top_level_op"].iloc[0] for frame in frames] == ["aten::conv2d", "aten::conv3d"]
    assert frames[0][FFMA].tolist() == [10, 7]


def test_a_launch_without_an_operator_has_an_empty_stack(tmp_path):
    """HTA raises IndexError."""
    (frame,) = CuptiCounterAnalysis.get_counter_data_with_operators(opened(tmp_path, EVENTS))
    assert frame["op_stack"].tolist() == [["aten::conv2d", "aten::cudnn"], []]
    assert frame["top_level_op"].tolist() == ["aten::conv2d", ""]


def test_ranks_that_cannot_be_paired_are_left_out(tmp_path):
    with pytest.warns(MissingDataWarning, match="rank 1: 2 measured kernels"):
        frames = cupti_counter_data_with_operators(opened(tmp_path, EVENTS, EVENTS[:4] + EVENTS[5:]), [0, 1])
    assert len(frames) == 1


def test_no_ranges_is_an_empty_list_and_the_remedy(tmp_path):
    with pytest.warns(MissingDataWarning, match="profiler_metrics"):
        assert cupti_counter_data_with_operators(opened(tmp_path, EVENTS[:5])) == []
