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
    "verdict": "Ranks wait.", "bar": {"whole": None, "reachable": None, "parts": []},
    "time": {"shares_pct": {"not_recorded": 100.0}, "rank": "all"},
    "recording": {
        "id": "x", "kind": "training", "ranks_recorded": 1, "world_size": 1, "device": "", "steps": 4,
        "recordings": 1, "opened": None,
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
    assert f"\n- Saving by itself: {said}.\n" in text


def part(finding: str, form: str, ns: int) -> dict[str, object]:
    return {"finding": finding, "form": form, "lost_as": "idle", "ns": ns}


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ([part("waiting", "simulated", 4_000_000)], ""),
        ([part("waiting", "bound", 4_000_000)], "`waiting` at most 4.00 ms; 6.00 ms per step remain."),
        (
            [part("waiting", "simulated", 3_000_000), part("copies", "bound", 1_000_000)],
            "`waiting` 3.00 ms, then `copies` at most 1.00 ms; 6.00 ms per step remain.",
        ),
    ],
)
def test_savings_add_up_to_what_the_headline_says(parts: list[dict[str, object]], said: str) -> None:
    whole = {"value": 10_000_000, "unit": "ns/step"}
    bar = {"whole": whole, "reachable": {"value": 6_000_000, "unit": "ns/step"}, "parts": parts}
    text = markdown({**DOCUMENT, "bar": bar, "findings": []})
    assert ("One change after the other saves" in text) == bool(said) and said in text


def test_a_reason_for_several_refusals_stands_once() -> None:
    vetoes = [{"forbids": claim, "because": "rows were lost."} for claim in ("ranks", "idle_causes")]
    trust = {"level": "low", "vetoes": vetoes, "health": []}
    text = markdown({**DOCUMENT, "trust": trust, "findings": []})
    assert text.count("rows were lost") == 1
    assert "- No statement on ranks and idle causes: rows were lost.\n" in text


def test_of_several_recordings_the_opened_one_is_named() -> None:
    recording = {**DOCUMENT["recording"], "recordings": 3, "opened": "run *2*"}
    text = markdown({**DOCUMENT, "recording": recording, "findings": []})
    assert "\nTraining (recording `run *2*` of 3), 1 rank, " in text


def test_unmarked_steps_are_not_counted() -> None:
    bar = {"whole": {"value": 10**9, "unit": "ns"}, "reachable": None, "parts": []}
    assert ", no steps marked, " in markdown({**DOCUMENT, "bar": bar, "findings": []})
