"""HTA's analyzer classes answer as the methods of `TraceAnalysis` that they stand behind."""

import json
import warnings
from functools import partial

import pandas as pd
import plotly.graph_objects as go
import pytest

from hta_widgets.hta.analyzers.breakdown_analysis import BreakdownAnalysis
from hta_widgets.hta.analyzers.communication_analysis import CommunicationAnalysis
from hta_widgets.hta.analyzers.cuda_kernel_analysis import CudaKernelAnalysis
from hta_widgets.hta.analyzers.cupti_counter_analysis import CuptiCounterAnalysis
from hta_widgets.hta.analyzers.trace_counters import TraceCounters
from hta_widgets.hta.common.constants import CUDA_MAX_LAUNCH_QUEUE_PER_STREAM
from hta_widgets.hta.trace_analysis import TraceAnalysis
from tests.support import shared_trace


@pytest.fixture(scope="module")
def analyzer():
    return TraceAnalysis(trace_dir=str(shared_trace("hta/trace_filter")))


def frames(answer):
    """All frames of an answer, in order."""
    if isinstance(answer, pd.DataFrame):
        return [answer]
    if isinstance(answer, dict):
        return [pd.DataFrame({"rank": list(answer)}), *answer.values()]
    return [frame for part in answer if part is not None for frame in frames(part)]


def test_same_answers(analyzer, tmp_path, monkeypatch):
    monkeypatch.setattr(go.Figure, "show", lambda *_, **__: None)
    t, quiet = analyzer.t, {"visualize": False}
    queue = analyzer.get_queue_length_time_series([0, 1])
    annotated = TraceAnalysis(trace_dir=str(shared_trace("hta/ns_resolution_trace")))
    operator = ("aten::linear", str(tmp_path))
    pairs = [
        (BreakdownAnalysis.get_temporal_breakdown(t, False), analyzer.get_temporal_breakdown(False)),
        (CommunicationAnalysis.get_comm_comp_overlap(t, False), analyzer.get_comm_comp_overlap(False)),
        (
            BreakdownAnalysis.get_gpu_kernel_breakdown(t, **quiet),
            analyzer.get_gpu_kernel_breakdown(include_memory_kernels=False, **quiet),
        ),
        (
            BreakdownAnalysis.get_idle_time_breakdown(t, 30, 1, show_idle_interval_stats=True, **quiet),
            analyzer.get_idle_time_breakdown([1], show_idle_interval_stats=True, **quiet),
        ),
        (
            BreakdownAnalysis.get_gpu_kernels_with_user_annotations(annotated.t, 0),
            annotated.get_gpu_kernels_with_user_annotations(0),
        ),
        (
            BreakdownAnalysis.get_gpu_user_annotation_breakdown(annotated.t, **quiet),
            annotated.get_gpu_user_annotation_breakdown(**quiet),
        ),
        (
            CudaKernelAnalysis.get_frequent_cuda_kernel_sequences(t, *operator, min_pattern_len=1),
            analyzer.get_frequent_cuda_kernel_sequences(*operator, min_pattern_len=1),
        ),
        (
            CudaKernelAnalysis.get_aten_op_kernels_and_delay(t, [1]),
            analyzer.get_aten_op_kernels_and_delay([1]),
        ),
        (
            CudaKernelAnalysis.cuda_kernel_launch_stats(t, [0, 1], **quiet),
            analyzer.get_cuda_kernel_launch_stats([0, 1], **quiet),
        ),
        (TraceCounters.get_queue_length_time_series(t, [0, 1]), queue),
        (TraceCounters.get_queue_length_summary(t, [1]), analyzer.get_queue_length_summary([1])),
        (
            TraceCounters.get_queue_length_summary_from_time_series(queue),
            analyzer.get_queue_length_summary_from_time_series(queue),
        ),
        (
            TraceCounters.get_time_spent_blocked_on_full_queue(t, queue, 2),
            analyzer.get_time_spent_blocked_on_full_queue(queue, 2),
        ),
        (TraceCounters.get_memory_bw_time_series(t, [0]), analyzer.get_memory_bw_time_series([0])),
        (TraceCounters.get_memory_bw_summary(t, [0]), analyzer.get_memory_bw_summary([0])),
    ]
    for number, (found, wanted) in enumerate(pairs):
        found, wanted = frames(found), frames(wanted)
        assert len(found) == len(wanted) and all(len(frame) for frame in wanted), number
        for one, other in zip(found, wanted, strict=True):
            pd.testing.assert_frame_equal(one, other)


def test_figures_of_launches(analyzer, monkeypatch):
    titles, sizes = [], []

    def show(figure: go.Figure, *_: object, **__: object) -> None:
        titles.append(figure.layout.title.text)
        sizes.append((figure.layout.width, figure.layout.height))

    monkeypatch.setattr(go.Figure, "show", show)
    launches = analyzer.get_cuda_kernel_launch_stats([1], visualize=False)[1]
    CudaKernelAnalysis.visualize_cuda_launch_kernel_info(1, launches, 50, 100)
    assert len(titles) == 3 and all("on rank 1" in title for title in titles)
    operators = analyzer.get_aten_op_kernels_and_delay([1])[1]
    CudaKernelAnalysis.visualize_aten_op_kernels_and_overhead(1, operators)
    # The method itself shows the same table.
    assert titles[3] == titles[4] == "ATen Operations, Associated Kernels, ATen and Runtime Delays for Rank 1"
    assert sizes == [(None, None)] * 3 + [(1500, 1500)] * 2  # as in HTA


def test_a_full_queue_is_htas(analyzer):
    queue = analyzer.get_queue_length_time_series([0])
    pd.testing.assert_frame_equal(
        analyzer.get_time_spent_blocked_on_full_queue(queue),
        TraceCounters.get_time_spent_blocked_on_full_queue(
            analyzer.t, queue, CUDA_MAX_LAUNCH_QUEUE_PER_STREAM
        ),
    )


def test_warnings_are_about_the_line_that_asks(tmp_path):
    """Through `TraceAnalysis` and through HTA's classes, which lie at different depths."""
    host = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 0, "dur": 5, "pid": 1, "tid": 1}
    path = tmp_path / "rank0.json"
    path.write_text(json.dumps({"traceEvents": [host]}))
    analyzer = TraceAnalysis({0: str(path)}, "")
    t, quiet = analyzer.t, {"visualize": False}
    for ask in (
        partial(analyzer.get_temporal_breakdown, **quiet),
        partial(BreakdownAnalysis.get_temporal_breakdown, t, **quiet),
        partial(analyzer.get_comm_comp_overlap, **quiet),
        partial(CommunicationAnalysis.get_comm_comp_overlap, t, **quiet),
        partial(analyzer.get_gpu_kernels_with_user_annotations, 0),
        partial(BreakdownAnalysis.get_gpu_kernels_with_user_annotations, t, 0),
        partial(analyzer.get_cuda_kernel_launch_stats, **quiet),
        partial(CudaKernelAnalysis.cuda_kernel_launch_stats, t, **quiet),
        partial(analyzer.get_frequent_cuda_kernel_sequences, "", str(tmp_path)),
        partial(CudaKernelAnalysis.get_frequent_cuda_kernel_sequences, t, "", str(tmp_path)),
        partial(analyzer.get_memory_bw_summary),
        partial(TraceCounters.get_memory_bw_summary, t),
        partial(analyzer.generate_trace_with_counters),
        partial(analyzer.get_cupti_counter_data_with_operators),
        partial(CuptiCounterAnalysis.get_counter_data_with_operators, t),
    ):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            ask()
        assert caught and {warning.filename for warning in caught} == {__file__}, ask
