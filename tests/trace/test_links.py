"""Launches, nesting and the forest they make."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hta_widgets.trace.links import forward_calls, launches, nesting, windows_of
from hta_widgets.trace.reader.schema import NULL
from tests.trace.helpers import kernel, rank_of, slice_


def nest(*spans):
    start, end = np.array(spans, np.int64).T.copy()
    zeros = np.zeros(len(start), np.int64)
    parent, depth = nesting(start, end, zeros, zeros)
    return parent.tolist(), depth.tolist()


def test_containment():
    assert nest((0, 10), (1, 5), (2, 3), (5, 9)) == ([-1, 0, 1, 0], [0, 1, 2, 1])


def test_touching_calls_are_siblings_and_zero_length_ones_children():
    assert nest((0, 5), (5, 10), (2, 2), (10, 10)) == ([-1, -1, 0, -1], [0, 0, 1, 0])


def test_partial_overlap_goes_one_deeper_without_a_false_parent():
    assert nest((0, 10), (2, 6), (4, 8), (6, 7)) == ([-1, 0, 0, 2], [0, 1, 2, 3])


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 30), st.integers(0, 2)), max_size=60))
def test_any_events_make_a_forest(spans):
    start = np.array([item[0] for item in spans], np.int64)
    end = start + np.array([item[1] for item in spans], np.int64)
    lane = np.array([item[2] for item in spans], np.int64)
    parent, depth = nesting(start, end, lane, np.zeros(len(spans), np.int64))
    for row in range(len(spans)):
        up = parent[row]
        if up >= 0:
            assert lane[up] == lane[row]
            assert start[up] <= start[row]
            assert end[row] <= end[up]
            assert depth[up] < depth[row]
    # Rows drawn at the same depth of one lane never cover each other.
    for a in range(len(spans)):
        for b in range(a):
            if lane[a] == lane[b] and depth[a] == depth[b]:
                assert min(end[a], end[b]) <= max(start[a], start[b])


def test_launch_by_correlation_only():
    correlation = np.array([5, 5, 5, 0, 0, NULL, 9], np.int64)
    start = np.arange(7, dtype=np.int64)
    device = np.array([0, 1, 1, 0, 1, 1, 1], bool)
    call = np.array([1, 0, 0, 1, 0, 0, 0], bool)
    assert launches(correlation, start, device, call).tolist() == [-1, 0, 0, -1, -1, -1, -1]


def test_runtime_call_wins_over_the_driver_call_inside_it():
    correlation = np.array([5, 5, 5], np.int64)
    launch = launches(
        correlation, np.array([2, 1, 9], np.int64), np.array([0, 0, 1], bool), np.array([1, 1, 0], bool)
    )
    assert launch.tolist() == [-1, -1, 1]


def test_forward_of_backward():
    sequence = np.array([3, 3, 4, 3, NULL], np.int64)
    backward = np.array([0, 0, 0, 1, 1], bool)
    assert forward_calls(backward, sequence, np.arange(5, dtype=np.int64)).tolist() == [-1, -1, -1, 1, -1]


def test_a_call_that_starts_later_is_not_the_forward_of_a_backward():
    """The numbers of another thread, or of a profiler that was restarted, may be the same."""
    sequence, backward = np.array([3, 3], np.int64), np.array([1, 0], bool)
    assert forward_calls(backward, sequence, np.array([0, 5], np.int64)).tolist() == [-1, -1]
    assert forward_calls(backward, sequence, np.array([5, 0], np.int64)).tolist() == [1, -1]


def test_windows_are_half_open():
    starts, ends = np.array([0, 10], np.int64), np.array([5, 20], np.int64)
    assert windows_of(np.array([-1, 0, 4, 5, 10, 19, 20], np.int64), starts, ends).tolist() == [
        -1,
        0,
        0,
        -1,
        1,
        1,
        -1,
    ]


def test_host_stack_and_annotations_nest_apart(tmp_path):
    rank = rank_of(
        tmp_path,
        [
            slice_("train.py(1): main", "python_function", 0, 100),
            slice_("ProfilerStep#1", "user_annotation", 5, 200),
            slice_("aten::add", "cpu_op", 10, 20),
            slice_("cudaLaunchKernel", "cuda_runtime", 12, 5, correlation=1),
            slice_("## forward ##", "user_annotation", 8, 50),
            kernel("add", 40, 10, correlation=1),
        ],
    )
    assert rank.parent.tolist() == [-1, -1, 0, 2, 1, -1]
    assert rank.depth.tolist() == [0, 0, 1, 2, 1, -1]
    assert rank.launch.tolist() == [-1, -1, -1, -1, -1, 3]


def test_work_launched_before_the_recording_is_of_no_iteration(tmp_path):
    rank = rank_of(
        tmp_path,
        [
            slice_("ProfilerStep#1", "user_annotation", 0, 100),
            slice_("cudaLaunchKernel", "cuda_runtime", 10, 5, correlation=1),
            kernel("launched before", 5, 10),
            kernel("launched", 20, 10, correlation=1),
            kernel("launch lost", 40, 10),
            slice_("cudaLaunchKernel", "cuda_runtime", 55, 5, correlation=2),
            kernel("launched later", 60, 10, correlation=2),
            kernel("stream without launches", 5, 10, stream=20),
        ],
    )
    found = {rank.names[code]: int(step) for code, step in zip(rank.name, rank.iteration, strict=True)}
    assert found == {
        "ProfilerStep#1": 1,
        "cudaLaunchKernel": 1,
        "launched before": -1,
        "launched": 1,
        "launch lost": 1,
        "launched later": 1,
        "stream without launches": 1,
    }
