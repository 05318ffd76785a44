"""Breakdowns on recorded traces: exact sums, and HTA's numbers within what HTA's rounding can move them."""

import functools

import numpy as np
import pandas as pd
import pytest

from hta_widgets.analysis import comm_comp_overlap, temporal_breakdown
from hta_widgets.errors import MissingDataError
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope
from tests.support import EVERY_CASE, SOME_GPU_TRACES, shared_trace

PARTS = ["compute_ns", "exposed_communication_ns", "exposed_memory_ns", "idle_ns"]
HOST_ONLY_TRACES = ["hta/cpu_only", "hta/rank_non_gpu"]


@functools.cache
def opened(name: str) -> Trace:
    return Trace.open(shared_trace(name))


def assert_conserved(trace: Trace, scope: Scope, by: str = "rank") -> None:
    frame = temporal_breakdown(trace, scope, by=by)
    assert (frame[PARTS].sum(axis=1) == frame["window_ns"]).all()
    assert (frame[PARTS] >= 0).all(axis=None)
    assert (frame["busy_ns"] + frame["idle_ns"] == frame["window_ns"]).all()
    assert (frame["exposed_communication_ns"] <= frame["communication_ns"]).all()
    assert (frame["exposed_memory_ns"] <= frame["memory_ns"]).all()
    overlap = comm_comp_overlap(trace, scope)
    assert (overlap["overlapped_ns"] + overlap["exposed_ns"] == overlap["communication_ns"]).all()


@pytest.mark.parametrize("name", SOME_GPU_TRACES)
def test_parts_sum_to_the_window_to_the_nanosecond(name):
    trace = opened(name)
    assert_conserved(trace, Scope())
    assert_conserved(trace, Scope(), by="iteration")
    for iteration in trace.iterations["iteration"].unique()[: 5 if EVERY_CASE else 2]:
        assert_conserved(trace, Scope(iterations=(int(iteration),)))
    first, last = trace.extent_ns
    random = np.random.default_rng(7)
    for _ in range(10 if EVERY_CASE else 3):
        low, high = np.sort(random.integers(first - 1000, last + 1000, 2))
        if low < high:
            assert_conserved(trace, Scope(window_ns=(int(low), int(high))))


@pytest.mark.parametrize("name", SOME_GPU_TRACES)
def test_neighbouring_windows_add_up(name):
    trace = opened(name)
    first, last = trace.extent_ns
    middle = (first + last) // 2
    halves = [temporal_breakdown(trace, Scope(window_ns=w)) for w in ((first, middle), (middle, last))]
    whole = temporal_breakdown(trace, Scope(window_ns=(first, last)))
    assert (halves[0][PARTS] + halves[1][PARTS] == whole[PARTS]).all(axis=None)


@pytest.mark.parametrize("name", SOME_GPU_TRACES[:4])
def test_windows_without_device_work_are_idle(name):
    trace = opened(name)
    last = max(trace.rank(rank).device_span[1] for rank in trace.ranks)
    frame = temporal_breakdown(trace, Scope(window_ns=(last, last + 10**9)))
    assert (frame["idle_ns"] == frame["window_ns"]).all()
    assert (frame["busy_ns"] == 0).all()


@pytest.mark.parametrize("name", SOME_GPU_TRACES[:2])
def test_a_second_reading_gives_the_same_frame(name):
    again = Trace.open(shared_trace(name), cache=False)
    pd.testing.assert_frame_equal(temporal_breakdown(again), temporal_breakdown(opened(name)))
    pd.testing.assert_frame_equal(comm_comp_overlap(again), comm_comp_overlap(opened(name)))


@pytest.mark.parametrize("name", HOST_ONLY_TRACES)
def test_a_trace_without_device_names_the_remedy(name):
    with pytest.raises(MissingDataError, match="ProfilerActivity"):
        temporal_breakdown(opened(name))


# get_temporal_breakdown of HTA 0.6.1: rank -> idle, compute, non-compute, kernel time in us, on traces in
# which HTA counts no sync event and no host op as device work.
HTA_TEMPORAL = {
    "hta/trace_filter": {0: (321378, 106252, 172428, 600058), 1: (328671, 135548, 136455, 600674)},
    "tracelens/h100/gaunernst_bert-small-uncased__1016001.json.gz": {0: (3653, 252, 2, 3907)},
    "tracelens/inference/sglang_decode": {0: (464534, 9205, 10, 473749)},
    "tracelens/mi210/gpu_only_trace": {0: (1199, 4780, 0, 5979)},
    "hta/amd_trace": {0: (8780, 96, 35, 8911)},
}


def hta_scope(trace: Trace, rank: int) -> Scope:
    """HTA's window: the span of the kernels it keeps. Of several annotated steps it drops the last."""
    rank_trace = trace.rank(rank)
    kept = rank_trace.is_device
    steps = rank_trace.iterations.loc[rank_trace.iterations["source"] == "ProfilerStep", "iteration"]
    if len(steps) > 1:
        kept = kept & (rank_trace.iteration < steps.max())
    return Scope(
        ranks=(rank,), window_ns=(int(rank_trace.start[kept].min()), int(rank_trace.end[kept].max()))
    )


def rounding_bound_ns(trace: Trace, rank: int) -> int:
    """How far HTA's rounding can move any of its totals.

    If any timestamp of the file has a fraction, HTA turns [start, end) into [ceil(start), floor(end)) in us.
    That removes less than 1 us at either end of each device event, so a union of n events changes by less
    than 2n us; an event without a whole microsecond inside may become -1 us long, which is one more. Whole
    timestamps do not move.
    """
    rank_trace = trace.rank(rank)
    edges = np.concatenate([rank_trace.start, rank_trace.end]) + trace.origin_ns
    return 0 if (edges % 1000 == 0).all() else 3000 * int(rank_trace.is_device.sum())


@pytest.mark.parametrize("name", HTA_TEMPORAL)
def test_temporal_breakdown_agrees_with_hta(name):
    trace = opened(name)
    for rank, (idle, compute, non_compute, kernel) in HTA_TEMPORAL[name].items():
        bound = rounding_bound_ns(trace, rank)
        ours = temporal_breakdown(trace, hta_scope(trace, rank)).iloc[0]
        exposed = ours["exposed_communication_ns"] + ours["exposed_memory_ns"]
        assert abs(ours["window_ns"] - 1000 * kernel) <= min(bound, 2000)
        assert abs(ours["idle_ns"] - 1000 * idle) <= bound
        assert abs(ours["compute_ns"] - 1000 * compute) <= bound
        assert abs(exposed - 1000 * non_compute) <= bound


@pytest.mark.parametrize(("rank", "overlap"), [(0, 11.81), (1, 20.05)])
def test_overlap_agrees_with_hta(rank, overlap):
    """The timestamps of this trace are whole microseconds, so nothing excuses a difference."""
    trace = opened("hta/trace_filter")
    assert rounding_bound_ns(trace, rank) == 0
    frame = comm_comp_overlap(trace, hta_scope(trace, rank))
    assert frame["overlap_pct"].round(2).tolist() == [overlap]
