"""Where the test data lies, for every test module."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# Real traces are too large and not ours to commit. They lie beside the checkout, or where the variable says.
SHARED_TRACES = Path(os.environ.get("HTA_WIDGETS_TRACES") or ROOT.parent / "shared" / "traces")


def shared_trace(name: str) -> Path:
    """Path of a real trace file or folder such as ``"hta/trace_filter"``; skips the test without it."""
    path = SHARED_TRACES / name
    if not path.exists():
        pytest.skip(f"real trace {name!r} not found: set HTA_WIDGETS_TRACES to the folder that holds it")
    return path
