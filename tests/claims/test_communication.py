"""Sentences about communication: true on planted programs, with spans and lost time as claimed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import pandas as pd
import pytest

from hta_widgets import Scope
from hta_widgets.analysis import overview
from hta_widgets.analysis.findings.communication_rules import late_collective
from hta_widgets.analysis.findings.device_rules import memory_copies
from hta_widgets.analysis.findings.exposed_communication import exposed_communication
from hta_widgets.analysis.findings.finding import Finding
from hta_widgets.analysis.findings.fsdp_rules import fsdp_prefetch
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.trace.model import Trace
from tests.claims.checking import faults_of
from tests.claims.job import Job, length, overlap
from tests.claims.measures.activity import copying_alone, exposed
from tests.job.parallel_jobs import ParallelJob
from tests.verdicts.planted import (
    test_broadcasts,
    test_fsdp,
    test_late_collectives,
    test_sharing,
    test_tiny_collectives,
)
from tests.verdicts.planted.devices import H100, opened
from tests.verdicts.planted.late_ranks import CASES


def case(name: str) -> Callable[[Path], Trace]:
    return lambda folder: CASES[name].play().open(folder)


def tiny(folder: Path) -> Trace:
    return test_tiny_collectives.opened(test_tiny_collectives.loop(test_tiny_collectives.many_small), folder)


def late(folder: Path) -> Trace:
    return test_late_collectives.loop(test_late_collectives.launched_late).open(folder)


def held_up(folder: Path) -> Trace:
    return test_late_collectives.loop(test_late_collectives.held_up).open(folder)


def broadcasts(folder: Path) -> Trace:
    return opened(folder, test_broadcasts.steps()(), H100)


def slowed(folder: Path) -> Trace:
    return test_sharing.recorded(folder)[0]


def in_turn(folder: Path) -> Trace:
    return test_fsdp.DRAINED.open(folder)


def wrapped(folder: Path) -> Trace:
    return replace(test_fsdp.ONE_STREAM, names_units=False).open(folder)


def with_experts(folder: Path) -> Trace:
    return ParallelJob(data=4, expert=4, microbatches=2).open(folder)


PLANTED: dict[str, Callable[[Path], Trace]] = {
    "tiny_collectives": tiny,
    "late_collective": late,
    "late_collective, held up": held_up,
    "buffers_broadcast": broadcasts,
    "slowed_by_communication": slowed,
    "fsdp_prefetch": in_turn,
    "fsdp_prefetch of the wrapper": wrapped,
    "exposed_communication with experts": with_experts,
}
# of which something else is asked
OTHERS = {name: case(name) for name in ("two_ranks_with_a_slow_link", "pipeline_stage_that_copies")}
Planted = Callable[[str], tuple[Trace, pd.DataFrame]]


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Planted:
    """A program, and what is said of it."""

    @cache
    def of(name: str) -> tuple[Trace, pd.DataFrame]:
        trace = (PLANTED | OTHERS)[name](tmp_path_factory.mktemp("planted"))
        return trace, overview(trace)

    return of


@pytest.mark.slow
@pytest.mark.parametrize("name", PLANTED)
def test_all_that_is_said_of_communication_is_true(name: str, planted: Planted) -> None:
    """Of pipelines it is asked where they are played: `tests/verdicts/planted/test_pipelines.py`."""
    topic = name.partition(" ")[0].rstrip(",")
    trace, frame = planted(name)
    frame = frame[frame["topic"] == topic]
    assert len(frame) == 1
    assert [str(fault) for fault in faults_of(trace, frame)] == []


@pytest.mark.parametrize(
    ("judge", "name", "all_of_it"),
    [
        (exposed_communication, "exposed_communication with experts", True),
        (exposed_communication, "two_ranks_with_a_slow_link", True),
        (fsdp_prefetch, "fsdp_prefetch", True),
        (memory_copies, "pipeline_stage_that_copies", True),
        (late_collective, "late_collective", False),
    ],
)
def test_the_time_lost_is_as_long_as_it_costs_and_holds_what_is_shown(
    judge: Callable[[Inputs], Finding | None],
    name: str,
    all_of_it: bool,
    planted: Planted,
) -> None:
    found = judge(Inputs(planted(name)[0], Scope()))
    assert found is not None
    times = [time.length for time in found.lost.values()]
    assert sum(times) / len(times) == pytest.approx(found.cost_ns, rel=0.02)
    shown, rank = found.evidence.span, found.evidence.event_rank
    assert shown is not None and rank is not None
    inside = found.lost[rank].within([shown])  # type: ignore[arg-type]
    assert inside == shown[1] - shown[0] if all_of_it else inside > 0


def test_what_is_shown_of_copies_is_a_copy_beside_nothing(planted: Planted) -> None:
    trace, _ = planted("pipeline_stage_that_copies")
    found, job = memory_copies(Inputs(trace, Scope())), Job(trace)
    assert found is not None and found.evidence.span is not None and found.evidence.event_id is not None
    rank, span = job.ranks[found.evidence.event_rank or 0], found.evidence.span
    assert rank.by_number[found.evidence.event_id].kind == "copying"
    assert length(overlap(copying_alone(rank), span)) == span[1] - span[0]


def test_gathers_of_fsdp_are_a_part_of_exposed_communication(planted: Planted) -> None:
    trace, frame = planted("fsdp_prefetch")
    frame, job = frame.set_index("topic"), Job(trace)
    row = frame.loc["fsdp_prefetch"]
    assert row["part_of"] == "exposed_communication" and frame.loc["exposed_communication", "part_of"] == ""
    rank, span = job.ranks[int(row["event_rank"])], (int(row["start_ns"]), int(row["end_ns"]))
    assert overlap(exposed(rank), span)


def test_what_takes_the_same_time_as_another_finding_is_told_once_and_lost_never(planted: Planted) -> None:
    """Two findings that lie in each other: one is a part, and none vanishes."""
    frame = planted("buffers_broadcast")[1].set_index("topic")
    parts = frame.loc[["buffers_broadcast", "exposed_communication"], "part_of"]
    assert sorted(parts) in (["", "buffers_broadcast"], ["", "exposed_communication"])
