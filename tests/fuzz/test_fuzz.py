"""A minute of fuzzing; `python -m tests.fuzz` runs as long as it is told to."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz.__main__ import run

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("target", "inputs"), [("reading", 1500), ("opening", 25), ("caching", 40), ("messages", 150)]
)
def test_whatever_comes_in_is_right_or_refused(target: str, inputs: int) -> None:
    counts, failures = run(inputs, only=target)
    assert not failures, failures[:5]
    assert sum(counts.values()) == inputs


def test_with_bounds_checked(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path)}
    argv = [sys.executable, "-m", "tests.fuzz", "--only", "reading", "--inputs", "300", "--first", "1000000"]
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(argv, cwd=root, env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
