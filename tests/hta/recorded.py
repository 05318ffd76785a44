"""What HTA answered to the recorded traces, and the jobs it looked at."""

import functools
import json

import pytest

from hta_widgets.hta.methods.drop_last_step import without_last_step
from hta_widgets.trace.model import Trace
from tests.support import SHARED_TRACES, shared_trace


@functools.cache
def golden() -> dict:
    """Name of a trace -> HTA's numbers; skips the test without them."""
    path = SHARED_TRACES.parent / "golden" / "hta.json"
    if not path.exists():
        pytest.skip(f"HTA's numbers not found: {path}")
    return json.loads(path.read_text())


@functools.cache
def job(name: str) -> Trace:
    """A recorded trace without its last step."""
    return without_last_step(Trace.open(shared_trace(name)))
