"""The simulated machine does one thing at a time, and faster programs never take longer on it."""

from __future__ import annotations

from itertools import pairwise
from math import inf

import pytest

from tests.replay.planted import changes
from tests.replay.planted.changes import Change, together
from tests.replay.planted.jobs import JOBS
from tests.replay.planted.machine import run
from tests.support import EVERY_CASE

LOADER = "enumerate(DataLoader)*"
FASTER: dict[str, Change] = {
    "host": changes.host(0.5),
    "launches": changes.launches(0),
    "kernels": changes.kernels(2.0),
    "attention": changes.kernels(inf, "flash*"),
    "copies": changes.copies(2.0),
    "communication": changes.communication(0),
    "loader": changes.without(LOADER),
    "waits": changes.syncs("*"),
    "allocator": changes.allocator(),
}


@pytest.mark.parametrize("job", JOBS)
def test_streams_and_threads_do_one_thing_at_a_time(job: str) -> None:
    found = run(JOBS[job]())
    lanes: dict[tuple[str, int], list[tuple[int, int]]] = {}
    for done in found.work:
        lanes.setdefault(("stream", done.work.stream), []).append((done.begin, done.end))
    for call in found.calls:
        lanes.setdefault(("thread", call.thread), []).append((call.begin, call.end))
    assert len(lanes) > 1
    for lane in lanes.values():  # in the order of the program
        assert all(before[1] <= after[0] for before, after in pairwise(lane))


@pytest.mark.parametrize("job", [*JOBS][:: 1 if EVERY_CASE else 4])
def test_what_is_faster_never_takes_longer(job: str) -> None:
    """On the simulated machine; nor does more of it, nor two such changes together."""
    program = JOBS[job]()

    def extent(*made: Change) -> int:
        return run(together(*made)(program)).extent_ns

    before = extent()
    alone = {name: extent(change) for name, change in FASTER.items()}
    assert max(alone.values()) <= before
    for (first, one), (second, other) in pairwise(FASTER.items()):
        assert extent(one, other) <= min(alone[first], alone[second])
    for factors, change in (
        ((0, 0.25, 0.5, 1, 1.5), changes.host),
        ((0, 0.25, 0.5, 1, 3), changes.communication),
        ((inf, 4, 2, 1, 0.5), changes.kernels),
        ((inf, 2, 1, 0.2), changes.copies),
    ):
        times = [extent(change(factor)) for factor in factors]
        assert times == sorted(times)
    assert extent(changes.without(LOADER)) <= extent(changes.without(LOADER, 1_000_000)) <= before


@pytest.mark.parametrize("job", JOBS)
def test_a_job_is_the_same_every_time(job: str) -> None:
    assert JOBS[job]() == JOBS[job]()
    assert changes.host(1)(JOBS[job]()) == changes.kernels(1)(JOBS[job]()) == JOBS[job]()
