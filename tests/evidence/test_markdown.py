"""The document as Markdown."""

from __future__ import annotations

import pytest

from hta_widgets.analysis.evidence.markdown import markdown

FINDING = {
    "id": "waiting", "cost": {"value": 20.0, "unit": "%", "of": "step time"}, "claim": "Ranks wait.",
    "where": [], "evidence": [], "do": "Balance.", "trust": "high",
    "runs": [{"argv": ["hta-widgets", "health"]}],
}  # fmt: skip
DOCUMENT = {
    "verdict": "Ranks wait.", "time": {"shares_pct": {"not_recorded": 100.0}, "rank": "all"},
    "recording": {
        "id": "x", "kind": "training", "ranks_recorded": 1, "world_size": 1, "device": "", "steps": 4,
        "duration_ns": 10**9,
    },
    "scope": {"ranks": "", "iterations": "", "window": "", "share_of_recording_pct": 100.0},
    "trust": {"level": "high", "vetoes": [], "health": []}, "together": None, "unknown": [], "checked": [],
    "more": {"findings_left_out": 0}, "tool": "hta-widgets",
}  # fmt: skip


@pytest.mark.parametrize(
    ("method", "low", "mid", "high", "said"),
    [
        ("replay", 8.0, 10.0, 12.0, "10.0 %, 8.00 % to 12.0 % (simulated)"),
        ("replay", 10.0, 10.0, 10.0, "10.0 % (simulated)"),
        ("bound", 0.0, 0.0, 0.0, "nothing now (upper bound)"),
        ("bound", 0.0, 0.0, 12.0, "0 %, 0 % to 12.0 % (upper bound)"),
    ],
)
def test_a_saving_has_its_interval_if_it_is_one(
    method: str, low: float, mid: float, high: float, said: str
) -> None:
    saving = {"method": method, "low": {"value": low}, "mid": {"value": mid}, "high": {"value": high}}
    text = markdown({**DOCUMENT, "findings": [{**FINDING, "saving": saving}]})
    assert f"\n- Saving: {said}.\n" in text
