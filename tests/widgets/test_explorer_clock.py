"""The clock that times the iterations is switched in an open explorer, and every part follows."""

import json
import zlib
from typing import Any

import pandas as pd
import pytest
import traitlets as t

from hta_widgets import Scope, Trace, TraceExplorer, examples
from hta_widgets.analysis.registry import ANALYSES
from hta_widgets.widgets.iteration_selector import IterationSelector
from tests.analysis.every_analysis import all_answers
from tests.support import shared_trace
from tests.widgets.decoded import numbers
from tests.widgets.test_trace_explorer import settled

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def behind() -> Trace:
    """A job whose device runs behind its host, as it is timed by itself."""
    return Trace.open(shared_trace("hta/ns_resolution_trace"))


def fact(explorer: TraceExplorer, label: str) -> dict[str, str]:
    return next(field for field in explorer.header if field["label"] == label)


def part(explorer: TraceExplorer, area: str) -> Any:
    return next(part for name, part in explorer.parts if name == area)


def marks(explorer: TraceExplorer) -> list[tuple[int, int]]:
    """The iterations that the timeline draws."""
    result, buffers = part(explorer, "timeline").ask("meta", {})
    assert result["chunks"] == 1
    outline = json.loads(zlib.decompress(bytes(buffers[0])))
    return [(step["start"], step["end"]) for step in outline["iterations"]]


def edges(trace: Trace) -> list[tuple[int, int]]:
    frame = trace.iterations
    return list(zip(frame["start_ns"].tolist(), frame["end_ns"].tolist(), strict=True))


@pytest.fixture(scope="module")
def asked() -> tuple[Trace, Scope]:
    """A job that was asked everything about a step, as it is timed by itself."""
    first = examples.load("gpt2_ddp")
    scope = Scope(iterations=(int(first.iterations["iteration"].iloc[1]),))
    all_answers(first, scope)  # what is remembered by one clock must not answer for the other
    return first, scope


@pytest.mark.parametrize("clock", ["host", "device"])
def test_a_trace_with_another_clock_answers_as_one_opened_with_it(
    asked: tuple[Trace, Scope], clock: Any
) -> None:
    first, scope = asked
    path = examples.path("gpt2_ddp")
    switched, opened = (
        all_answers(first.timed_by(clock), scope),
        all_answers(Trace.open(path, clock=clock), scope),
    )
    assert switched.keys() == opened.keys()
    for name, answer in opened.items():
        if isinstance(answer, str):
            assert switched[name] == answer
        else:
            pd.testing.assert_frame_equal(switched[name], answer, obj=name)
    assert first.timed_by(clock).health.equals(Trace.open(path, clock=clock).health)


def test_nothing_is_read_or_classified_again(behind: Trace) -> None:
    known = behind.rank(behind.ranks[0])
    other = behind.timed_by("host").rank(known.rank)
    assert other is not known and other.event_class is known.event_class
    assert behind.timed_by("auto") is behind


def test_every_part_follows_the_clock(behind: Trace, until: Any) -> None:
    kinds = ["overview", "temporal_breakdown", "events"]
    number = int(behind.iterations["iteration"].iloc[1])
    chosen = {"iterations": (number,), "query": "a"}
    explorer = TraceExplorer(behind, panels=kinds, selection=chosen)
    until(lambda: settled(explorer))
    assert (explorer.clock, explorer.clocks) == ("auto", ["auto", "host", "device"])
    assert fact(explorer, "Iterations")["value"] == "5, timed on the device"
    before, parts = part(explorer, "timeline").version, explorer.parts
    table = explorer.parts[-1][1]
    rows = table.rows
    assert marks(explorer) == edges(behind)
    explorer.set_state({"clock": "host"})  # as the browser does
    by_host = Trace.open(shared_trace("hta/ns_resolution_trace"), clock="host")
    until(lambda: settled(explorer) and fact(explorer, "Iterations")["value"] == "5, timed on the host")
    assert explorer.parts == parts  # the same parts: what was opened, sorted or zoomed stays
    scope = Scope(iterations=(number,))
    assert explorer.selection.to_dict() == chosen
    assert marks(explorer) == edges(by_host) != edges(behind)
    assert part(explorer, "timeline").version > before
    steps: IterationSelector = part(explorer, "iterations")
    assert numbers(steps.table, "slowest_ns") == [end - start for start, end in edges(by_host)]
    expected = ANALYSES["temporal_breakdown"].function(by_host, scope)
    assert not expected.equals(ANALYSES["temporal_breakdown"].function(behind, scope))
    bars = part(explorer, "ranks")
    assert numbers(bars.table, "idle_ns") == expected["idle_ns"].tolist()
    shown = {panel.kind: panel for area, panel in explorer.parts if hasattr(panel, "kind")}
    pd.testing.assert_frame_equal(shown["temporal_breakdown"].frame(), expected)
    assert shown["temporal_breakdown"].sentence == ANALYSES["temporal_breakdown"].sentence(expected)
    overview = ANALYSES["overview"]
    findings = overview.function(by_host, explorer.selection.scope_without(overview.ignores))
    assert [note["text"] for note in shown["overview"].notes] == findings["text"].tolist()
    pd.testing.assert_frame_equal(explorer.frame("temporal_breakdown"), expected)
    assert table.rows == len(explorer.events) != rows
    assert "clock='host'" in part(explorer, "breadcrumb").code
    explorer.clock = "auto"
    until(lambda: settled(explorer) and marks(explorer) == edges(behind))
    assert explorer.trace is behind


def test_a_clock_chosen_while_loading_is_used(until: Any) -> None:
    explorer = TraceExplorer(examples.path("gpt2_ddp"), panels=["temporal_breakdown"])
    explorer.clock = "device"
    until(lambda: settled(explorer))
    assert set(explorer.trace.iterations["clock"]) == {"device"}
    assert marks(explorer) == edges(explorer.trace)
    assert fact(explorer, "Iterations")["value"].endswith("timed on the device")


def test_the_clock_of_an_open_trace_stays() -> None:
    by_device = Trace.open(examples.path("gpt2_ddp"), clock="device")
    explorer = TraceExplorer(by_device, panels=[])
    assert (explorer.clock, explorer.trace) == ("device", by_device)
    assert TraceExplorer(by_device, panels=[], clock="host").trace.iteration_clock == "host"


@pytest.mark.parametrize("junk", ["gpu", "", None, 3, ["host"], {"a": 1}])
def test_what_is_no_clock_is_refused(ddp: Trace, junk: Any) -> None:
    explorer = TraceExplorer(ddp, panels=[])
    parts = explorer.parts
    with pytest.raises(t.TraitError):
        explorer.set_state({"clock": junk})
    assert (explorer.clock, explorer.trace, explorer.parts) == ("auto", ddp, parts)
    explorer.set_state({"clock": "host"})
    assert explorer.clock == "host"


def test_without_device_work_there_is_no_clock_to_choose(until: Any) -> None:
    explorer = TraceExplorer(shared_trace("hta/cpu_only"), panels=[])
    until(lambda: settled(explorer))
    assert explorer.clocks == []
