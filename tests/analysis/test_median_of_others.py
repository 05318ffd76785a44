"""The median of the others, for each of many: that which `numpy` finds one by one."""

from __future__ import annotations

import numpy as np
import pytest

from hta_widgets.analysis.findings.workloads import _median_of_others


@pytest.mark.parametrize("seed", range(50))
def test_each_is_compared_with_the_others_that_are_alike(seed: int) -> None:
    random = np.random.default_rng(seed)
    alike = random.choice([0.5, 1.0, 2.0, np.nan], 1 + seed)
    # with ties, in every other case
    values = random.integers(1, 4, len(alike)) * 1.1 if seed % 2 else random.random(len(alike)) * 1e6
    expected = []
    for own, number in enumerate(alike.tolist()):
        others = values[(alike == number) & (np.arange(len(alike)) != own)]
        expected.append(np.median(others) if len(others) else np.nan)
    assert np.array_equal(_median_of_others(alike, values), expected, equal_nan=True)
