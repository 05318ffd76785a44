"""Recordings of the planted jobs show what the simulation knows, and faster programs never take longer."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from math import inf
from pathlib import Path

import pytest

from hta_widgets import analysis
from hta_widgets.trace.scope import Scope
from tests.replay.planted import changes
from tests.replay.planted.changes import Change, together
from tests.replay.planted.jobs import JOBS
from tests.replay.planted.machine import run
from tests.replay.planted.recording import Recording
from tests.replay.planted.recordings import NAMES, recording
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


def unchanged(program: object) -> object:
    return program


@pytest.mark.parametrize("name", NAMES)
def test_a_recording_shows_the_steps_as_they_were(name: str, tmp_path: Path) -> None:
    made = recording(name)
    trace = made.trace(tmp_path)
    assert not (trace.health["severity"] == "error").any()
    iterations = trace.rank(0).iterations
    truth = made.truth(unchanged, iterations["clock"].iloc[0])  # type: ignore[arg-type]
    lengths = (iterations["end_ns"] - iterations["start_ns"]).tolist()
    assert dict(zip(iterations["iteration"].tolist(), lengths, strict=True)) == truth.steps_ns


@pytest.mark.parametrize("job", JOBS)
def test_the_device_spends_its_time_as_it_was_spent(job: str, tmp_path: Path) -> None:
    made = Recording(JOBS[job]())
    (row,) = analysis.temporal_breakdown(made.trace(tmp_path)).to_dict("records")
    work = made.run.work
    truth = made.run.occupation((min(done.begin for done in work), max(done.end for done in work)))
    names = (
        "window",
        "compute",
        "exposed_communication",
        "exposed_memory",
        "idle",
        "communication",
        "memory",
    )
    assert {name: row[f"{name}_ns"] for name in names} == {
        name: getattr(truth, f"{name}_ns") for name in names
    }


SPENT = {"operator": "host", "host": "host", "launch_delay": "host", "sync": "host", "dependency": "gap"}
CLASSES = {
    "compute": "compute",
    "communication": "communication",
    "memory_copy": "copy",
    "memory_set": "fill",
}


@pytest.mark.parametrize("name", [name for name in NAMES if not name.endswith("from step 2")])
def test_the_critical_path_is_that_of_the_machine(name: str, tmp_path: Path) -> None:
    """Within 0.5 % of the extent, by what the machine spent it on, whether or not waits were recorded.

    What a call does after it waited is not told from its return, nor a launch's own time from its latency.
    """
    made = recording(name)
    trace = made.trace(tmp_path)
    extent = made.run.extent_ns
    begin = trace.rank(0).extent[0]
    frame = analysis.critical_path(trace, Scope(window_ns=(begin, begin + extent)))
    found: Counter[str] = Counter()
    for kind, event_class, ns in zip(frame["kind"], frame["event_class"], frame["dur_ns"], strict=True):
        found[CLASSES[event_class] if kind == "kernel" else SPENT.get(kind, "gap")] += ns
    truth: Counter[str] = Counter()
    for spent_on, ns in made.run.path().items():
        truth["host" if spent_on in ("launch", "return") else spent_on] += ns
    assert sum(truth.values()) == sum(found.values()) == extent
    assert {kind: found[kind] / extent for kind in truth | found} == pytest.approx(
        {kind: truth[kind] / extent for kind in truth | found}, abs=0.005
    )


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
