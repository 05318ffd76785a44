"""The medians of groups are those of the standard library."""

from __future__ import annotations

from statistics import median

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hta_widgets.analysis.core.medians import medians


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(-(2**50), 2**50)), max_size=40))
def test_medians_of_groups(rows):
    group, values = np.array(rows, np.int64).reshape(-1, 2).T
    of_group = [values[group == each].tolist() for each in range(6)]
    expected = [median(own) if own else np.nan for own in of_group]
    np.testing.assert_array_equal(medians(group, values, 6), expected)
