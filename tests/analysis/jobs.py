"""Recorded and simulated jobs, those that are unlike; with EVERY_CASE all that there are."""

from __future__ import annotations

from hta_widgets import examples
from hta_widgets.trace.model import Trace
from tests.claims.recordings import EXAMPLES, ONE_OF_EACH, SHARED
from tests.support import EVERY_CASE, GPU_TRACES, UNLIKE_GPU_TRACES, shared_input, shared_trace

__all__ = ["UNLIKE_JOBS", "opened"]

UNLIKE_JOBS = [
    name
    # files of real traces are opened as the jobs that they belong to
    for name in ([*EXAMPLES, *SHARED, *GPU_TRACES] if EVERY_CASE else [*ONE_OF_EACH, *UNLIKE_GPU_TRACES])
    if not name.startswith("traces/") and name != "cases/c09_pftrace"
]


def opened(name: str) -> Trace:
    """One of these jobs; skips the test where it is not there."""
    if name.startswith(("recordings/", "cases/")):
        return Trace.open(shared_input(name))
    return examples.load(name) if name in EXAMPLES else Trace.open(shared_trace(name))
