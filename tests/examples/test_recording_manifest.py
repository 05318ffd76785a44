"""The manifest beside the recordings: what it must hold, and that it is never half written."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorder import manifest
from recorder.setup import Setup
from recorder.spread import spread

from tests.examples.recording_entry import entry


@given(st.lists(st.integers(1, 10**12), min_size=1))
def test_spread_is_numpys(samples: list[int]) -> None:
    measured = spread(samples)
    wanted = np.quantile(samples, [0.25, 0.5, 0.75])
    assert [measured["q1_ns"], measured["median_ns"], measured["q3_ns"]] == pytest.approx(wanted, abs=1)
    assert measured["samples"] == len(samples)


@pytest.mark.parametrize(
    ("spoil", "problem"),
    [
        (lambda item: item.pop("command"), "command is missing"),
        (lambda item: item["environment"].pop("torch"), "torch is missing"),
        (lambda item: item["environment"].update(driver=5), "driver is 5"),
        (lambda item: item["traces"].clear(), "no trace"),
        (lambda item: item.update(ranks=2), "2 ranks, 1 traces"),
        (lambda item: item["step_time"].clear(), "no step time"),
        (lambda item: item["step_time"]["step"].pop("after"), "step after is not a spread"),
        (lambda item: item["step_time"]["step"]["before"].update(q1_ns=3_000), "quartiles out of order"),
    ],
)
def test_a_manifest_that_lacks_something_says_what(
    spoil: Callable[[dict[str, Any]], object], problem: str
) -> None:
    whole = json.loads(json.dumps(entry(Setup())))
    assert manifest.problems({"format": 1, "recordings": {"one": whole}}) == []
    spoil(whole)
    assert any(problem in listed for listed in manifest.problems({"format": 1, "recordings": {"one": whole}}))


def test_pairs_are_checked_against_what_was_recorded(tmp_path: Path) -> None:
    manifest.add(tmp_path, "baseline", entry(Setup()))
    manifest.leave_out(tmp_path, "fp32", "not yet")
    assert manifest.load(tmp_path)["pairs"] == []
    manifest.add(tmp_path, "fp32", entry(Setup(precision="fp32", batch=1)))
    written = manifest.load(tmp_path)
    assert (len(written["pairs"]), written["left_out"]) == (1, {})
    assert manifest.problems(written) == ["pair fp32, baseline: they differ in ['precision', 'batch']"]


def test_a_manifest_of_another_format_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text('{"format": 99}')
    with pytest.raises(ValueError, match="format 99"):
        manifest.add(tmp_path, "baseline", entry(Setup()))
    assert json.loads((tmp_path / "manifest.json").read_text()) == {"format": 99}


def test_traces_too_large_to_ship_are_named(tmp_path: Path) -> None:
    folder = tmp_path / "one"
    folder.mkdir()
    (folder / "rank-0.pt.trace.json.gz").write_bytes(bytes(2**20))
    (folder / "rank-1.pt.trace.json.gz").write_bytes(bytes(2**20 + 1))
    found = manifest.traces(folder)
    assert [message["within_limit"] for message in found] == [True, False]
    lines = manifest.lines("one", {**entry(Setup()), "traces": found})
    assert len(lines) == 2
    assert "before 0.002 [0.002, 0.003]" in lines[0]
    assert "one/rank-1.pt.trace.json.gz has 1.00 MiB: too large" in lines[1]
