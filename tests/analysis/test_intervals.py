"""The interval algebra against sets of points, where every operation is Python's own set operation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hta_widgets.analysis.core.intervals import Intervals

TIME = st.integers(-5, 40)
RAW = st.lists(st.tuples(TIME, TIME), max_size=12)
EPOCH = 1_700_000_000_000_000_000


def build(pairs: list[tuple[int, int]], origin: int = 0) -> Intervals:
    edges = np.array(pairs, np.int64).reshape(-1, 2) + origin
    return Intervals.union(edges[:, 0], edges[:, 1])


def points(pairs: list[tuple[int, int]]) -> set[int]:
    return {point for start, end in pairs for point in range(start, end)}


def members(intervals: Intervals) -> set[int]:
    return points(list(zip(intervals.start.tolist(), intervals.end.tolist(), strict=True)))


def assert_canonical(intervals: Intervals) -> None:
    """Non-empty, sorted and disjoint: two sets are equal exactly when their arrays are."""
    assert intervals.start.dtype == intervals.end.dtype == np.int64
    assert (intervals.start < intervals.end).all()
    assert (intervals.end[:-1] <= intervals.start[1:]).all()


@given(RAW)
def test_union_of_raw_intervals_is_the_set_of_their_points(raw):
    merged = build(raw)
    assert_canonical(merged)
    assert (merged.end[:-1] < merged.start[1:]).all(), "touching intervals join"
    assert members(merged) == points(raw)
    assert merged.length == len(points(raw))


@given(RAW)
def test_a_time_is_held_where_it_is_a_point_of_the_set(raw):
    times = np.arange(-6, 42)
    assert set(times[build(raw).holds(times)].tolist()) == points(raw)


@given(RAW, st.randoms())
def test_union_does_not_depend_on_order(raw, random):
    shuffled = list(raw)
    random.shuffle(shuffled)
    assert build(shuffled) == build(raw)


@given(RAW, RAW)
def test_set_operations(a, b):
    for result, expected in (
        (build(a) | build(b), points(a) | points(b)),
        (build(a) & build(b), points(a) & points(b)),
        (build(a) - build(b), points(a) - points(b)),
    ):
        assert_canonical(result)
        assert members(result) == expected


@given(RAW, RAW)
def test_windows_are_measured_one_by_one(raw, windows):
    edges = np.array([(min(pair), max(pair)) for pair in windows], np.int64).reshape(-1, 2)
    expected = [len(points(raw) & set(range(first, last))) for first, last in edges.tolist()]
    assert build(raw).within_each(edges).tolist() == expected


@given(RAW, RAW)
def test_parts_add_up_to_the_whole(a, b):
    left, right = build(a), build(b)
    assert (left - right).length + (left & right).length == left.length
    assert (left | right).length == left.length + (right - left).length


@given(RAW, TIME, TIME)
def test_clip_and_gaps_share_the_window(raw, low, high):
    low, high = sorted((low, high))
    inside, outside = build(raw).clip(low, high), build(raw).gaps(low, high)
    assert_canonical(inside)
    assert_canonical(outside)
    window = set(range(low, high))
    assert members(inside) == points(raw) & window
    assert members(outside) == window - points(raw)


@given(RAW, RAW)
def test_within_measures_without_clipping(raw, windows):
    disjoint = build(windows)
    edges = np.column_stack([disjoint.start, disjoint.end])
    assert build(raw).within(edges) == len(points(raw) & points(windows))


@given(RAW, RAW)
def test_arithmetic_is_exact_at_absolute_nanoseconds(a, b):
    """Past 2**53 a float64 would lose the nanoseconds."""
    assert (build(a, EPOCH) - build(b, EPOCH)).length == (build(a) - build(b)).length


def test_empty_sets():
    nothing, something = build([]), build([(0, 5)])
    assert len(nothing) == nothing.length == 0
    assert something - nothing == something | nothing == something
    assert nothing - something == something & nothing == nothing
    assert something.within(np.empty((0, 2), np.int64)) == nothing.within(np.array([[0, 9]])) == 0


def test_comparison_with_another_type_is_false():
    assert build([]) != "Intervals"


def test_repr_names_count_and_length():
    assert repr(build([(0, 5), (7, 8)])) == "Intervals(2 intervals, 6 ns)"


@pytest.mark.parametrize("count", [0, 1])
def test_result_of_few_intervals_keeps_its_type(count):
    intervals = build([(0, 5)] * count)
    assert intervals.start.dtype == np.int64
    assert isinstance(intervals.length, int)
