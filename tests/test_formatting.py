"""Durations in sentences keep three significant digits and the right unit at every border."""

import pytest

from hta_widgets.formatting import duration, percent


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0 ns"),
        (999, "999 ns"),
        (1_000, "1.00 µs"),
        (999_600, "1.00 ms"),
        (4_312_345, "4.31 ms"),
        (43_123_450, "43.1 ms"),
        (431_234_500, "431 ms"),
        (9_996_000, "10.0 ms"),
        (99_960_000, "100 ms"),
        (61_200_000_000, "61.2 s"),
        (7_200_000_000_000, "7200 s"),
    ],
)
def test_duration(ns, text):
    assert duration(ns) == text


def test_percent():
    assert percent(23.04) == "23.0 %"
