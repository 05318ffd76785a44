"""Limits held against small tables: which line is meant, and how many steps tell a change from noise."""

from __future__ import annotations

import pandas as pd
import pytest

from hta_widgets.cli.exits import UsageError
from hta_widgets.cli.limits import limit
from hta_widgets.cli.verdicts import Verdict, verdicts

CHANGE = {"before_ns": 1000.0, "change_ns": 100.0, "low_ns": 50.0, "high_ns": 150.0, "significant": False}


def of_step(text: str, steps: list[int]) -> Verdict:
    runs = pd.DataFrame({"run": ["a", "b"], "steps": steps})
    measures = pd.DataFrame([{"run": "b", "measure": "step_time", "time_ns": 1100.0, **CHANGE}])
    (verdict,) = verdicts([limit(text)], measures, runs, {})
    return verdict


@pytest.mark.parametrize(
    ("steps", "outcome"),
    [([5, 5], "fails"), ([5, 3], "within noise"), ([3, 5], "within noise"), ([1, 5], "within noise")],
)
def test_the_run_of_fewer_steps_says_how_sure_a_change_is(steps: list[int], outcome: str) -> None:
    """An interval of 50 to 150 at 95 % excludes 0 at 99 % too with five steps, and not with three."""
    assert of_step("step_time>+3%", steps).outcome == outcome
    assert of_step("step_time>+11%", steps).outcome == "holds"


def lines(*names: str) -> pd.DataFrame:
    shared = {"kind": "compute", "steps": 5, "exclusive_ns": 1100.0, "moved_from": "", **CHANGE}
    rows = [{"line": name, "run": run, **shared} for name in names for run in ("a", "b")]
    return pd.DataFrame(rows)


@pytest.mark.parametrize(
    ("asked", "meant"), [("gemm", "gemm"), ("large", "gemm_large"), ("relu", "relu(int)")]
)
def test_a_limit_means_the_line_of_its_name_or_the_one_that_holds_it(asked: str, meant: str) -> None:
    frame = lines("gemm_large", "gemm", "relu(int)")
    (verdict,) = verdicts([limit(f'kernel:"{asked}">+5%')], pd.DataFrame(), pd.DataFrame(), {"kernel": frame})
    assert (verdict.changed.line, verdict.run, verdict.outcome) == (meant, "b", "fails")


@pytest.mark.parametrize(("asked", "said"), [("gem", "2 lines match"), ("softmax", "no run has a line")])
def test_a_limit_that_means_no_line_or_several_is_refused(asked: str, said: str) -> None:
    frame = lines("gemm_large", "gemm", "relu(int)")
    with pytest.raises(UsageError, match=said):
        verdicts([limit(f'kernel:"{asked}">+5%')], pd.DataFrame(), pd.DataFrame(), {"kernel": frame})
