"""A document within a budget: what goes first, and what never does."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hta_widgets import examples
from hta_widgets.analysis.evidence.budget import fitted
from hta_widgets.analysis.evidence.document import evidence
from hta_widgets.trace.model import Trace
from tests.evidence.command import ask

DDP = examples.path("ddp_4ranks")


@pytest.fixture(scope="module")
def whole() -> dict[str, Any]:
    return evidence(Trace.open(DDP))


def size(document: dict[str, Any]) -> int:
    return -(-(len(json.dumps(document)) + 1) // 4)


def test_less_each_time_and_never_what_must_stay(whole: dict[str, Any]) -> None:
    before = whole
    for budget in range(whole["more"]["tokens"], 450, -25):
        document = fitted(whole, budget)
        assert document["more"]["tokens"] == size(document) <= budget
        for part in ("recording", "scope", "trust", "verdict", "unknown"):
            assert document[part] == whole[part]
        findings, left_out = document["findings"], document["more"]["findings_left_out"]
        assert [each["id"] for each in findings] == [each["id"] for each in whole["findings"]][
            : len(findings)
        ]
        assert len(findings) + left_out == len(whole["findings"])
        for finding, full in zip(findings, whole["findings"], strict=False):
            assert finding["claim"] == full["claim"] and finding["runs"]
            assert len(finding["runs"]) == len(full["runs"]) or all(
                len(other["evidence"]) <= 1 for other in findings
            )  # evidence goes before commands
            if left_out:
                assert len(finding["runs"]) == 1  # and commands before findings
        assert len(findings) <= len(before["findings"])
        before = document
    assert not before["findings"]


def test_a_budget_that_nothing_fits(whole: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="too small"):
        fitted(whole, 100)
    for budget in (0, -1, 4001):
        with pytest.raises(ValueError, match="from 1 to 4,000"):
            fitted(whole, budget)
    done = ask("diagnose", DDP, "--json", "--budget", "100")
    assert (done.code, done.out) == (2, "") and "too small" in done.err


def test_a_document_is_not_changed_by_fitting_it(whole: dict[str, Any]) -> None:
    before = json.dumps(whole)
    fitted(whole, 900)
    assert json.dumps(whole) == before
