"""Documents of recordings broken as profilers break them: vetoes are there, and what is said is true.

By default two are broken in every way, each in other amounts; `HTA_WIDGETS_EVERY_CASE=1` breaks all
of them in every amount.
"""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

import pytest

from hta_widgets.analysis import temporal_breakdown
from hta_widgets.analysis.evidence.document import evidence
from hta_widgets.errors import MissingDataError
from hta_widgets.trace.model import Trace
from hta_widgets.trace.rank_events import RankEvents
from hta_widgets.trace.reader.table import EventTable
from hta_widgets.trace.scope import Scope
from tests.evidence.test_recordings import check_vetoes
from tests.support import EVERY_CASE, crossed, shared_trace
from tests.trace.test_mutated_records import AMOUNTS, EVERY_RECORDING, KINDS, broken, table_of

SAMPLE = ["hta/ns_resolution_trace", "hta/nccl_parser_config"]
RECORDINGS = EVERY_RECORDING if EVERY_CASE else SAMPLE
SOME = AMOUNTS if EVERY_CASE else ("1 %", "10 %", "a step", "the first 5 %")
POINTS = 0.5
# A mildly late end of a record without like ones cannot be refuted.
OFF = 0.01


@cache
def sound(name: str) -> Trace:
    path = shared_trace(name)
    files = sorted(path.rglob("*.json*")) if path.is_dir() else [path]
    return Trace.open(files[0], cache=False)


def with_table(trace: Trace, table: EventTable) -> Trace:
    """The job with other records."""
    assigned = list(trace._assigned.values())
    return Trace([RankEvents.of(table)], assigned, trace._found, {}, trace.memory)


def judged(document: dict[str, Any]) -> Scope:
    """What a document is about, as its field says."""
    scope = document["scope"]
    if scope["window"]:
        start, end = (int(side.removesuffix("ns")) for side in scope["window"].split(":"))
        return Scope(window_ns=(start, end))
    if not scope["iterations"]:
        return Scope()
    numbers: list[int] = []
    for part in scope["iterations"].split(","):
        first, _, last = part.partition("-")
        numbers += range(int(first), int(last or first) + 1)
    return Scope(iterations=tuple(numbers))


def off_by(document: dict[str, Any], truth: Trace) -> float:
    """How far the idle share is from that of the sound recording in the same steps, in points."""
    forbidden = {veto["forbids"] for veto in document["trust"]["vetoes"]}
    said = document["time"]["shares_pct"]
    if forbidden & {"everything", "efficiency"} or "idle" not in said:
        return 0.0
    try:
        frame = temporal_breakdown(truth, judged(document))
    except MissingDataError:
        return 0.0
    return abs(float(said["idle"]) - 100 * float(frame["idle_ns"].sum()) / float(frame["window_ns"].sum()))


@pytest.mark.parametrize("name", RECORDINGS)
def test_what_is_withheld_is_said_and_what_is_said_is_true(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    rows: list[tuple[str, str, str, str, float]] = []
    truth = sound(name)
    turn = RECORDINGS.index(name)  # so that two recordings are broken in other amounts
    for kind, amount in crossed(KINDS, [*SOME[turn:], *SOME[:turn]]):
        table = broken(table_of(name), truth.rank(truth.ranks[0]), kind, amount, 0)
        if table is None:
            continue
        trace = with_table(truth, table)
        document = evidence(trace)
        check_vetoes(document)
        forbidden = {veto["forbids"] for veto in document["trust"]["vetoes"]}
        assert bool(trace.vetoes()) <= bool(forbidden), (name, kind, amount)
        assert not forbidden or document["trust"]["level"] != "high"
        rows.append((name, kind, amount, " ".join(sorted(forbidden)), off_by(document, truth)))
    wrong = [row for row in rows if row[-1] > POINTS]
    if EVERY_CASE:
        with capsys.disabled():
            sys.stdout.write("\n".join(map(str, [*rows, "wrong:", *wrong, len(wrong), len(rows)])) + "\n")
    assert any(row[3] for row in rows)
    assert name not in SAMPLE or not all("efficiency" in row[3] for row in rows)  # some steps stay whole
    assert len(wrong) <= OFF * len(rows), wrong
