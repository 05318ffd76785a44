"""What a change saves, as a range around the replay's answer, or why that is unknown."""

from typing import Any

import pandas as pd
import pytest

from hta_widgets.analysis.evidence.findings import predicted_saving
from hta_widgets.analysis.findings.saving import NOT_ESTIMATED
from hta_widgets.analysis.findings.sections import MEMORY, SAVES, VERDICT

ROW = {
    "section": SAVES, "topic": "memory_copies", "part_of": "", "claims": "[]", "steps": 4, "share_pct": 20.0,
    "method": "replay", "confidence": "medium", "saving": "saves 10 %",
    "saving_pct": 10.0, "saving_ns": 100, "saving_low_ns": 50, "saving_high_ns": 150,
}  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, (5.0, 10.0, 15.0)),
        ({"saving_low_ns": 120, "saving_high_ns": 80}, (10.0, 10.0, 10.0)),
        ({"saving_low_ns": None, "saving_high_ns": None}, (10.0, 10.0, 10.0)),
        ({"saving_ns": 1, "saving_low_ns": 0, "saving_high_ns": 2}, (0.0, 10.0, 20.0)),
        ({"saving_ns": 0}, (0.0, 0.0, 0.0)),
        ({"saving_ns": -100}, (0.0, 0.0, 0.0)),  # it lengthens the step
    ],
)
def test_a_saving_lies_in_its_range(changed: dict[str, Any], expected: tuple[float, ...]) -> None:
    found = predicted_saving(pd.Series(ROW | changed, dtype=object), {})
    assert tuple(found[name]["value"] for name in ("low", "mid", "high")) == expected
    assert {found[name]["of"] for name in ("low", "mid", "high")} == {"step time"}
    assert (found["method"], found["confidence"]) == ("replay", "medium")


@pytest.mark.parametrize(
    ("changed", "forbidden", "why"),
    [
        ({"section": MEMORY}, {}, "it is about memory, not time"),
        ({"section": VERDICT}, {}, "it is the work itself; a change of that work is another finding"),
        ({}, {"savings": "records are missing"}, "vetoed: records are missing"),
        ({"saving_pct": None, "saving": f"{NOT_ESTIMATED}: no edit"}, {}, "no edit"),
        ({"saving_pct": None, "saving": ""}, {}, "nothing is known to take it away"),
    ],
)
def test_an_unknown_saving_says_why(changed: dict[str, Any], forbidden: dict[str, str], why: str) -> None:
    found = predicted_saving(pd.Series(ROW | changed, dtype=object), forbidden)
    assert found == {"method": "none", "unknown_because": why}


def test_a_bound_has_no_confidence() -> None:
    found = predicted_saving(pd.Series(ROW | {"method": "bound", "confidence": ""}, dtype=object), {})
    assert found["method"] == "bound" and "confidence" not in found
