"""Nested values with bytes survive the block that a report carries."""

import math
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hta_widgets.report.payload import pack
from tests.report.reading import unpack

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)  # a busy machine generates slowly
@given(st.dictionaries(st.text(), VALUES, max_size=4))
def test_what_is_packed_comes_back(value: dict[str, object]) -> None:
    assert unpack(pack(value)) == value


def test_same_content_gives_same_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    now = pack({"a": [b"x", 1]})
    monkeypatch.setattr(time, "time", lambda: 86_400.0)
    assert pack({"a": (b"x", 1)}) == now


def test_no_number_is_null() -> None:
    assert unpack(pack([math.nan, math.inf, 1.5])) == [None, None, 1.5]


def test_lone_surrogate_survives() -> None:
    assert unpack(pack({"name": "a\ud800"})) == {"name": "a\ud800"}
