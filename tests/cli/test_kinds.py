"""Options of an analysis as they are typed."""

import pytest

from hta_widgets.cli.exits import UsageError
from hta_widgets.cli.kinds import known_kind, values_of


@pytest.mark.parametrize(
    ("text", "value"),
    [("true", True), ("Yes", True), ("1", True), ("false", False), ("NO", False), ("0", False)],
)
def test_truth(text: str, value: bool) -> None:
    assert values_of(known_kind("op_kernels"), [("include_memory", text)]) == {"include_memory": value}


@pytest.mark.parametrize("text", ["", "2", "maybe"])
def test_no_truth(text: str) -> None:
    with pytest.raises(UsageError, match="include_memory"):
        values_of(known_kind("op_kernels"), [("include_memory", text)])


def test_a_name_that_is_nearly_right_is_proposed() -> None:
    with pytest.raises(UsageError, match="did you mean 'idle_gaps'"):
        known_kind("idle_gap")
    with pytest.raises(UsageError, match="did you mean 'include_memory'"):
        values_of(known_kind("op_kernels"), [("include_memry", "1")])
    with pytest.raises(UsageError, match="no analysis 'zzz'; the kinds are"):
        known_kind("zzz")
