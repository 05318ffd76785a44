"""The recordings whose replay is put to the proof."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from tests.replay.planted.jobs import JOBS
from tests.replay.planted.program import Program
from tests.replay.planted.recording import Recording

__all__ = ["NAMES", "recording"]

# How a job is recorded: with the device's clock off by half a launch latency, one way or the other; or from a
# moment at which work that was launched before is still running.
_WAYS: Mapping[str, tuple[frozenset[str], dict[str, object]]] = {
    "": (frozenset(JOBS), {}),
    "waits unrecorded": (frozenset(JOBS), {"waits": False}),
    "clock ahead": (frozenset({"host_bound", "sync_bound"}), {"late_ns": 2_500, "waits": False}),
    "clock behind": (frozenset({"host_bound", "sync_bound"}), {"late_ns": -2_500}),
    "from step 2": (
        frozenset({"compute_bound", "unread", "sync_bound", "communication_bound"}),
        {"first_step": 2},
    ),
}

# The ways of one job follow each other: they share what a changed program does, which is kept for a while.
_RECORDINGS = {
    f"{job}, {way}" if way else job: (job, options)
    for job in JOBS
    for way, (jobs, options) in _WAYS.items()
    if job in jobs
}
NAMES = tuple(_RECORDINGS)


@cache
def _program(job: str) -> Program:
    return JOBS[job]()


@cache
def recording(name: str) -> Recording:
    """The recording of this name."""
    job, options = _RECORDINGS[name]
    return Recording(_program(job), **options)  # type: ignore[arg-type]
