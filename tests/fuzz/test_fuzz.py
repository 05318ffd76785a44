"""A few seconds of fuzzing; `python -m tests.fuzz` runs as long as it is told to."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.fuzz import campaign
from tests.fuzz.targets import OF_A_THOUSAND, TARGETS
from tests.support import EVERY_CASE

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("target", "inputs", "outcomes"),
    [
        ("reading", 1500, {"accepted and equal", "accepted, no JSON", "refused"}),
        ("packets", 600, {"accepted", "refused"}),
        ("snapshots", 200, {"accepted", "refused"}),
        ("caching", 500, {"refused"}),
        ("messages", 300, {"answered", "refused", "set"}),
        ("loading", 20, {"told"}),
        ("opening", 20, {"answered"}),
    ],
)
def test_whatever_comes_in_is_right_or_refused(target: str, inputs: int, outcomes: set[str]) -> None:
    told = list(campaign.run(range(inputs), target))
    assert [failure for _, _, failure in told if failure is not None] == []
    assert len(told) == inputs
    assert {f"{target}: {outcome}" for outcome in outcomes} <= {outcome for _, outcome, _ in told}


@pytest.mark.skipif(not EVERY_CASE, reason="half a minute to compile, once a week")
def test_with_bounds_checked(tmp_path: Path) -> None:
    """The same code with every access checked; in a process of its own, for numba fixes that on import."""
    environment = {**os.environ, "NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path)}
    code = """
from tests.fuzz import campaign
from tests.trace.test_scanner_fuzz import run
run(10_000, 400)
failures = [told for told in campaign.run(range(1_000_000, 1_000_600), "reading") if told[2] is not None]
assert failures == [], failures[:3]
"""
    root = Path(__file__).resolve().parents[2]
    argv = [sys.executable, "-c", code]
    done = subprocess.run(argv, cwd=root, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_shares_are_kept_by_every_thousand_inputs() -> None:
    assert set(OF_A_THOUSAND) == set(TARGETS)
    names = [campaign.target_of(seed) for seed in range(5000, 6000)]
    assert {name: names.count(name) for name in TARGETS} == OF_A_THOUSAND


def _ends_badly(seed: int) -> str:
    if seed == 3:
        os._exit(9)
    if seed == 5:
        time.sleep(60)
    if seed == 6:
        while True:
            pass
    if seed == 7:
        raise ZeroDivisionError
    assert seed != 8, "eight"
    return "fine"


def test_crashes_hangs_and_errors_are_counted_and_the_rest_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaign, "GIVEN_UP_SECONDS", 1.0)
    monkeypatch.setattr(campaign, "STANDS_STILL_SECONDS", 3.0)
    monkeypatch.setitem(campaign.TARGETS, "opening", _ends_badly)
    *_, (done, counts, failures) = campaign.supervised(0, 10, "opening", start="fork")
    assert done == 10
    assert dict(counts) == {
        "opening: fine": 5,
        "opening: crashes": 1,
        "opening: hangs": 2,
        "opening: untyped": 1,
        "opening: wrong": 1,
    }
    assert len(failures) == 5
