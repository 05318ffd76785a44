"""What a prediction and a measurement say of each other: every outcome."""

from __future__ import annotations

from typing import Any

import pytest

from hta_widgets.analysis.evidence.check import CONFIRMED, _outcome


@pytest.mark.parametrize(
    ("predicted", "measured", "outcome"),
    [
        ((10, 12), (9, 10.5), "as predicted"),
        ((10, 12), (11.9, 14), "as predicted"),
        ((10, 12), (12.1, 14), "more than predicted"),
        ((10, 12), (5, 9.9), "less than predicted"),
        ((10, 12), (-1, 1), "no change"),
        ((10, 12), (-5, -1), "slower"),
        ((10, 12), None, "noise unknown"),
        ("bound", (2, 3), "within the bound"),
        ("bound", (25, 30), "more than predicted"),
        ("bound", (-1, 2), "no change"),
        ("none", (2, 3), "faster, nothing was predicted"),
        ("none", (-3, -2), "slower"),
    ],
)
def test_an_outcome(predicted: Any, measured: Any, outcome: str) -> None:
    known: dict[str, Any] = {"method": "none"}
    if predicted == "bound":
        known = {"method": "bound", "low": 0.0, "mid": 20.0, "high": 20.0}
    elif predicted != "none":
        known = {"method": "replay", "low": predicted[0], "mid": 11, "high": predicted[1]}
    low, high = measured or (None, None)
    assert _outcome(known, {"low": low, "high": high}) == outcome
    assert (outcome in CONFIRMED) == outcome.startswith(("as", "more", "within", "faster"))
