"""`get_cuda_kernel_launch_stats` and `get_aten_op_kernels_and_delay` against HTA's numbers."""

import warnings

import plotly.graph_objects as go
import pytest

from hta_widgets.errors import MissingDataWarning
from hta_widgets.hta.methods.drop_last_step import without_last_step
from hta_widgets.hta.methods.launches import (
    aten_op_kernels_and_delay,
    cuda_kernel_launch_stats,
    launch_figures,
    operator_table,
)
from hta_widgets.trace.model import Trace
from tests.analysis.test_launches import EVENTS, call, opened
from tests.analysis.test_op_kernels import EVENTS as OPERATOR_EVENTS
from tests.support import shared_trace
from tests.trace.helpers import slice_


@pytest.fixture(autouse=True)
def shown(monkeypatch):
    figures = []
    monkeypatch.setattr(go.Figure, "show", lambda self, *_, **__: figures.append(self))
    return figures


def job_of(name):
    return without_last_step(Trace.open(shared_trace(name)))


def launches(job, rank, include_memory_events=True, visualize=False):
    return cuda_kernel_launch_stats(job, [rank], 50, 100, include_memory_events, visualize)[rank]


# HTA 0.6.1: rows, sums of cpu_duration, gpu_duration and launch_delay in us. Traces in whole us: equal.
WHOLE = {
    ("hta/critical_path/alexnet", 0): (98, 3113616, 66203, 39283),
    ("hta/critical_path/simple_add", 0): (98, 4260778, 49816, 10264),
    ("hta/critical_path/cuda_event_sync", 0): (5, 96, 51, 5),
    ("hta/trace_filter", 0): (602, 5109, 302241, 9880122),
    ("hta/trace_filter", 1): (577, 4988, 306242, 9761662),
    ("hta/trace_diff/control", 3): (7875, 115050, 413947, 15865017),
    ("kineto/resnet50_num_workers_0", 0): (7735, 102030, 515467, 94465529),
}
# Traces in ns, whose times HTA rounds: it moves each duration by less than 2 us, each delay by less than 3.
ROUNDED = {
    ("hta/nccl_parser_config", 0): (2516, 21289, 100462, 70623),
    ("hta/ns_resolution_trace", 0): (4876, 192088, 374521, 322052817),
}


@pytest.mark.parametrize(("name", "rank"), sorted(WHOLE))
def test_launches_of_hta(name, rank):
    frame = launches(job_of(name), rank)
    assert list(frame) == ["correlation", "cpu_duration", "gpu_duration", "launch_delay"]
    sums = frame[["cpu_duration", "gpu_duration", "launch_delay"]].sum()
    assert (len(frame), *sums) == WHOLE[name, rank]
    assert frame.index.equals(frame.reset_index().index)


@pytest.mark.parametrize(("name", "rank"), sorted(ROUNDED))
def test_launches_of_hta_within_its_rounding(name, rank):
    frame = launches(job_of(name), rank)
    rows, *sums = ROUNDED[name, rank]
    assert len(frame) == rows
    for column, expected, bound in zip(frame.columns[1:], sums, (2, 2, 3), strict=True):
        assert abs(frame[column].sum() - expected) < bound * rows


@pytest.mark.parametrize(
    ("name", "hta", "ours"),
    [
        ("hta/amd_trace", 0, 16),
        ("hta/triton_example", 0, 1),
        ("tracelens/h100/gaunernst_bert-small-uncased__1016001.json.gz", 39, 61),
        ("tracelens/inference/sglang_decode", 0, 558),
        ("tracelens/mi210/gpu_only_trace", 0, 562),
        ("hta/mtia_inference_trace", 73, 730),
    ],
)
def test_launches_that_hta_does_not_know(name, hta, ours):
    """Q-13: driver launches, graphs and AMD's calls are launches too."""
    assert len(launches(job_of(name), 0)) == ours > hta


def test_launches_without_memory_events_and_their_pictures(tmp_path, shown):
    job = job_of("hta/ns_resolution_trace")
    whole, kernels = launches(job, 0), launches(job, 0, False, visualize=True)
    assert 0 < len(kernels) < len(whole)
    assert (whole["launch_delay"] >= 0).all()
    assert [figure.layout.title.text for figure in shown] == [
        "Short GPU kernels (gpu op duration < cpu op duration) on rank 0",
        "Runtime Event Duration Outliers (duration > 50 us)  on rank 0",
        "Launch Delay Outliers (duration > 100 us) on rank 0",
    ]
    short, slow, late = (figure.data[0].x for figure in launch_figures(kernels, 3, 50, 100))
    assert (short <= 50).all() and (slow > 50).all() and (late > 100).all()
    assert len(late) == (kernels["launch_delay"] > 100).sum()


def test_copies_and_fills_are_memory_events(tmp_path):
    memory = [
        call("cudaMemcpyAsync", 400, 2, 5), call("cudaMemsetAsync", 410, 2, 6),
        slice_("Memcpy HtoD (Pageable -> Device)", "gpu_memcpy", 405, 3, 7, stream=7, correlation=5),
        slice_("Memset (Device)", "gpu_memset", 415, 3, 7, stream=7, correlation=6),
    ]  # fmt: skip
    job = opened(tmp_path, [*EVENTS, *memory])
    assert launches(job, 0)["correlation"].tolist() == [1, 2, 3, 3, 4, 5, 6]
    assert launches(job, 0, include_memory_events=False)["correlation"].tolist() == [1, 2, 3, 3, 4]


def test_launch_delay_counts_from_the_end_of_the_call_and_not_below_zero(tmp_path):
    frame = launches(opened(tmp_path, EVENTS), 0)
    assert frame["launch_delay"].tolist() == [0.0, 0.0, 5.0, 8.0, 118.0]
    assert frame["correlation"].tolist() == [1, 2, 3, 3, 4]


def test_launches_of_a_trace_without_device(tmp_path):
    job = opened(tmp_path, [slice_("aten::add", "cpu_op", 0, 5)])
    with pytest.warns(MissingDataWarning, match="device events"):
        result = cuda_kernel_launch_stats(job, None, 50, 100, True, True)
    assert list(result) == [0] and result[0].empty
    with pytest.warns(MissingDataWarning, match="device events"):
        result = aten_op_kernels_and_delay(job, None, None)
    assert list(result) == [0] and result[0].columns[0] == "aten_op_name"


# HTA 0.6.1: rows, occurrences, and the first row's count and mean delays.
ATEN = {
    "hta/critical_path/alexnet": (0, 10, 53, ("aten::clamp_min_", 14, 9.357, 705.643)),
    "hta/critical_path/simple_add": (0, 10, 53, ("aten::clamp_min_", 14, 12.643, 265.286)),
    "hta/critical_path/cuda_event_sync": (0, 3, 3, None),
    "hta/trace_diff/control": (3, 153, 6075, None),
    "kineto/resnet50_num_workers_0": (0, 49, 6245, ("aten::add_", 2495, 7.847, 18529.75)),
    "hta/nccl_parser_config": (0, 59, 1160, None),
    "hta/ns_resolution_trace": (0, 64, 2320, None),
    "tracelens/h100/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz": (0, 27, 1029, None),
    "tracelens/h100/gaunernst_bert-small-uncased__1016001.json.gz": (0, 12, 60, None),
}


@pytest.mark.parametrize("name", sorted(ATEN))
def test_operators_of_hta(name, shown):
    rank, rows, occurrences, top = ATEN[name]
    frame = aten_op_kernels_and_delay(job_of(name), [rank], None)[rank]
    assert list(frame) == [
        "aten_op_name", "kernel_sequence", "occurrence_count", "avg_aten_op_launch_delay",
        "avg_runtime_delay",
    ]  # fmt: skip
    assert (len(frame), frame["occurrence_count"].sum()) == (rows, occurrences)
    assert frame["occurrence_count"].is_monotonic_decreasing
    assert sorted(frame.index) == list(range(rows))
    if top:
        first = frame.drop(columns="kernel_sequence").iloc[0]
        assert tuple(first) == top
    assert [figure.layout.title.text for figure in shown] == [
        f"ATen Operations, Associated Kernels, ATen and Runtime Delays for Rank {rank}"
    ]


def test_operators_of_each_rank_are_its_own():
    """Q-12: HTA returns the rows of ranks 0 and 1 for rank 1."""
    job = job_of("hta/trace_filter")
    both, alone = (aten_op_kernels_and_delay(job, ranks, None) for ranks in ([0, 1], [1]))
    assert both[1].equals(alone[1])
    assert alone[1]["occurrence_count"].sum() < both[0]["occurrence_count"].sum() + 10
    by_name = aten_op_kernels_and_delay(job, [0], ["aten_op_name", "avg_runtime_delay"])[0]
    assert by_name["aten_op_name"].is_monotonic_decreasing


def test_operators_of_another_thread_steal_no_launch():
    """Q-37: HTA lets aten::split_with_sizes own a launch of another thread here."""
    assert aten_op_kernels_and_delay(job_of("hta/mtia_inference_trace"), None, None)[0].empty


def test_graphs_belong_to_their_operator(tmp_path, shown):
    """Q-37: HTA raises where a launch has no kernel or several."""
    events = [{**item, "name": item["name"].replace("replay", "aten::replay")} for item in OPERATOR_EVENTS]
    frame = aten_op_kernels_and_delay(opened(tmp_path, events), None, None)[0]
    sequences = dict(zip(frame["aten_op_name"], frame["kernel_sequence"], strict=True))
    assert sequences["aten::replay"] == "g -> g -> h"
    cells = operator_table(frame, 0).data[0].cells.values
    assert not any("<" in text for text in cells[1])
    assert len(shown) == 1


def test_no_warning_where_nothing_is_missing(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        aten_op_kernels_and_delay(opened(tmp_path, OPERATOR_EVENTS), None, None)
