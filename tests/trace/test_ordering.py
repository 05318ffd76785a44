"""Sorting and numbering give what numpy's own, slower functions give."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hta_widgets.trace import ordering
from hta_widgets.trace.ordering import (
    among,
    differing,
    distinct,
    first_of_each,
    grouped,
    nth_of_each,
    numbered,
    order_in_groups,
    order_of_nesting,
    rows_of_each,
    rows_with,
    unique,
)

FEW = st.integers(0, 3)
SHORT = st.integers(0, 70_000)
SIGNED = st.integers(-(2**40), 2**40)
EXTREME = st.integers(-(2**63), 2**63 - 1)
columns = st.one_of(*(st.lists(numbers, max_size=60) for numbers in (FEW, SHORT, SIGNED, EXTREME)))


@given(columns, st.booleans())
def test_a_grouped_is_that_of_numpy(values, ordered):
    column = np.array(sorted(values) if ordered else values, np.int64)
    before = column.copy()
    np.testing.assert_array_equal(grouped(column), np.argsort(column, kind="stable"))
    np.testing.assert_array_equal(column, before)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int16, np.uint16, np.int32])
def test_short_numbers_are_sorted_over_their_whole_range(dtype):
    limits = np.iinfo(dtype)
    for low, high in ((limits.min, limits.max), (0, min(limits.max, 1 << 16))):
        column = np.array([high, 0, low, 1, high, low], dtype)
        np.testing.assert_array_equal(grouped(column), np.argsort(column, kind="stable"))


@given(st.lists(st.tuples(FEW, st.one_of(FEW, EXTREME), FEW, FEW), max_size=60))
def test_groups_are_sorted_by_start_and_then_by_the_ties(rows):
    group, start, first, second = np.array(rows, np.int64).reshape(-1, 4).T
    np.testing.assert_array_equal(
        order_in_groups(group, start, first, second), np.lexsort((second, first, start, group))
    )
    np.testing.assert_array_equal(order_in_groups(group, start), np.lexsort((start, group)))


@given(st.lists(st.tuples(st.integers(-1, 2), FEW, FEW, FEW), max_size=60))
def test_rows_on_lanes_are_sorted_as_they_nest(rows):
    lane, start, end, tie = np.array(rows, np.int64).reshape(-1, 4).T.copy()
    order = np.lexsort((tie, -end, start, lane))
    expected = order[lane[order] >= 0]
    np.testing.assert_array_equal(order_of_nesting(lane, start, end, tie), expected)
    far_apart = np.where(lane < 0, lane, 100_000 * lane)
    np.testing.assert_array_equal(order_of_nesting(far_apart, start, end, tie), expected)
    by_start = np.array(sorted(range(len(rows)), key=lambda row: start[row]), np.int64)
    np.testing.assert_array_equal(order_of_nesting(lane, start, end, tie, by_start), expected)


@given(st.lists(st.integers(0, 9), max_size=60), st.sets(st.integers(0, 12), max_size=8))
def test_codes_are_among_a_few(values, wanted):
    codes = np.array(values, np.uint8)
    assert among(codes, tuple(wanted)).tolist() == [value in wanted for value in values]


CODES = st.integers(-1, 4)


@pytest.mark.parametrize("most", [1 << 20, 10, 0])
@given(st.lists(st.tuples(CODES, CODES, CODES), max_size=60))
def test_rows_of_columns_are_numbered_as_they_occur(most, rows):
    columns = np.array(rows, np.int32).reshape(-1, 3).T
    places: dict[tuple[int, ...], int] = {}
    expected = [places.setdefault(row, len(places)) for row in rows]
    with mock.patch.object(ordering, "_CODES", most):  # tables of codes, of some, and none
        assert numbered(*columns).tolist() == expected


@given(st.lists(st.integers(0, 5), max_size=60), st.lists(st.booleans(), min_size=6, max_size=6))
def test_rows_are_those_of_wanted_codes(values, chosen):
    codes, wanted = np.array(values, np.int32), np.array(chosen)
    np.testing.assert_array_equal(rows_with(codes, wanted), np.flatnonzero(wanted[codes]))


@given(columns)
def test_distinct_values_are_sorted_and_numbered(values):
    column = np.array(values, np.int64)
    expected, inverse = np.unique(column, return_inverse=True)
    for few, codes in ((1 << 9, 1), (1, 1), (1, 1 << 20)):  # sorted, hashed, in a table
        with mock.patch.multiple(ordering, _FEW=few, _CODES=codes):
            found, which = distinct(column)
            np.testing.assert_array_equal(found, expected)
            np.testing.assert_array_equal(which, inverse)
            np.testing.assert_array_equal(unique(column), expected)
    np.testing.assert_array_equal(first_of_each(which), np.unique(column, return_index=True)[1])


@given(st.lists(st.tuples(FEW, st.integers(-1, 3)), min_size=1, max_size=60))
def test_rows_of_a_group_are_counted_and_found(rows):
    group, values = np.array(rows, np.int64).T
    _, group = distinct(group)
    seen: dict[int, list[int]] = {}
    for at, each in enumerate(group.tolist()):
        seen.setdefault(each, []).append(at)
    assert [own.tolist() for own in rows_of_each(group)] == [seen[each] for each in sorted(seen)]
    assert nth_of_each(group).tolist() == [seen[each].index(at) for at, each in enumerate(group.tolist())]
    assert differing(group, values).tolist() == [len(set(values[seen[each]])) for each in sorted(seen)]
