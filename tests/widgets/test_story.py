"""The story above the explorer: what it follows, what it hands on, and which panels can answer."""

import gzip
import json
import sys
import threading
from typing import Any

import pandas as pd
import pytest
import traitlets as t

from hta_widgets import Scope, Trace, TraceExplorer, analysis, examples
from hta_widgets.analysis.findings.rules import RULES
from hta_widgets.analysis.findings.story import story
from hta_widgets.analysis.findings.story_advice import title
from hta_widgets.engine import Latest
from hta_widgets.errors import MissingDataError
from hta_widgets.formatting import duration
from hta_widgets.widgets.name_search import names_containing
from hta_widgets.widgets.relevance import first_panels, unanswered
from hta_widgets.widgets.story import Story
from tests.support import shared_input, shared_trace

pytestmark = pytest.mark.slow

LACKING = {"cupti_counters", "fsdp_units", "module_stacks", "serving_steps", "serving_phases", "roles"}


def test_it_tells_what_the_analysis_tells(ddp: Trace, until: Any) -> None:
    told = Story(ddp)
    until(lambda: told.status == "idle")
    expected = story(ddp)
    assert told.content == expected.as_dict()
    json.dumps(told.content)  # it travels as JSON
    assert told.kinds[0] == "stragglers"


def test_showing_is_the_browsers_and_findings_are_not(ddp: Trace, until: Any) -> None:
    told = Story(ddp)
    until(lambda: told.status == "idle")
    content = dict(told.content)
    told.set_state({"shown": 1, "content": {}})
    assert (told.shown, told.content) == (1, content)
    with pytest.raises(t.TraitError):
        told.shown = -2


@pytest.mark.parametrize(
    "scope",
    [
        Scope(ranks=(2,)),
        Scope(iterations=(11,)),
        Scope(ranks=(2,), iterations=(11,)),
        Scope(window_ns=(20_000_000, 57_000_000)),
        Scope(streams=(7,)),
    ],
)
def test_ranks_iterations_window_and_streams_rescope_it(ddp: Trace, until: Any, scope: Scope) -> None:
    told = Story(ddp)
    until(lambda: told.status == "idle")
    whole = dict(told.content)
    told.selection.ranks, told.selection.iterations = scope.ranks or (), scope.iterations or ()
    told.selection.window, told.selection.streams = scope.window_ns, scope.streams or ()
    until(lambda: told.status == "idle" and told.content["narrowed"])
    until(lambda: told.content["scope"] == story(ddp, scope).scope)
    assert told.content == story(ddp, scope).as_dict()
    assert told.content["scope"] != whole["scope"]
    told.selection.clear()
    until(lambda: told.status == "idle" and not told.content["narrowed"])
    assert told.content == whole


@pytest.mark.parametrize(
    ("job", "words"),
    [
        ("hta/trace_filter", "events were removed"),
        (
            "hta/cpu_only",
            "the trace has 4 operators and no device events; the host is longest in gloo:all_reduce",
        ),
    ],
)
def test_it_abstains_with_its_reason(job: str, words: str, until: Any) -> None:
    told = Story(Trace.open(shared_trace(job)))
    until(lambda: told.status == "idle")
    assert words.lower() in told.content["headline"].lower()
    assert not told.content["saved"]


def test_it_says_what_the_records_do_not_support(until: Any) -> None:
    told = Story(Trace.open(shared_input("cases/b02_xpu_kernels_missing_copies_only")))
    until(lambda: told.status == "idle")
    assert told.content["trust"].startswith("Limited: ")


def test_what_if_begins_with_the_change_against_a_finding(ddp: Trace, until: Any) -> None:
    explorer = TraceExplorer(ddp, panels=["what_if"])
    until(lambda: bool(explorer.relevant))
    edits = [advice["edits"] for advice in dict(explorer.parts)["story"].content["advice"]]
    assert [bool(text) for text in edits] == [False, True]
    explorer.ask("try_finding", {"finding": 1})
    expression = "edits.without('enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__')"
    assert [edit.expression for edit in explorer.edits] == [expression]
    for finding in (0, 2, -1):
        with pytest.raises(LookupError, match="no replay"):
            explorer.ask("try_finding", {"finding": finding})
    assert len(explorer.edits) == 1


def test_a_full_queue_costs_nothing(until: Any) -> None:
    told = Story(Trace.open(shared_trace("hta/ns_resolution_trace")))
    until(lambda: told.status == "idle")
    assert all(advice["topic"] != "queue_full" for advice in told.content["advice"])
    assert len(told.content["asides"]) == 1


def test_a_place_is_where_the_file_has_it(ddp: Trace, until: Any) -> None:
    """The call that a place of the loader is caused by, read again from the file."""
    told = Story(ddp)
    until(lambda: told.status == "idle")
    loader = next(advice for advice in told.content["advice"] if advice["topic"] == "data_stall")
    place = loader["places"][0]
    (file,) = examples.path("ddp_4ranks").glob(f"rank-{place['rank']}.*")
    events = json.loads(gzip.decompress(file.read_bytes()))["traceEvents"]
    row = analysis.overview(ddp).set_index("topic").loc["data_stall"]
    event = events[int(row["event_id"])]
    start, end = place["cause"]
    assert end - start == round(event["dur"] * 1000)
    assert (start, end) == (place["start_ns"], place["end_ns"])
    assert place["label"] == f"{duration(end - start)} idle: the data loader"


def test_after_a_change_it_gives_way_to_what_else_is_computed(
    ddp: Trace, until: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = Story(ddp)
    until(lambda: told.status == "idle")
    hold, begun = threading.Event(), threading.Event()
    computes = told._compute
    monkeypatch.setattr(told, "_compute", lambda question: begun.set() or computes(question))
    other = Latest[object](lambda _: None, lambda _: None)
    other.submit(lambda: hold.wait(10))
    try:
        told.selection.window = (0, ddp.extent_ns[1] // 2)
        assert not begun.wait(0.3)
    finally:
        hold.set()
    until(lambda: told.status == "idle")
    assert begun.is_set()


def test_every_topic_has_a_title() -> None:
    for rule in RULES:
        words = title(pd.Series({"title": rule.title}))
        assert words[0].isupper() and not words.endswith((",", "."))


def test_a_recording_without_device_work_says_so_first() -> None:
    """The card's text is cut where it is long: what is missing comes before what is therefore unknown."""
    trace = Trace.open(shared_trace("hta/cpu_only"))
    found = analysis.overview(trace)
    lacking = found[found["topic"] == "not_judged"].iloc[0]
    assert title(lacking) == "Where time goes is unknown"
    assert lacking["text"].startswith("The trace has no device events: it is unknown ")
    lacks = "Where time goes is unknown: the trace has 4 operators and no device events; the host is"
    assert story(trace, frame=found).headline.startswith(lacks)


@pytest.mark.parametrize("job", ["hta/cpu_only", "hta/mtia_inference_trace"])
def test_panels_in_the_fold_really_cannot_answer(job: str) -> None:
    """Every analysis is asked: the fold holds all that lack their data, and no other."""
    trace = Trace.open(shared_trace(job))
    told = unanswered(trace)
    del told["job"]  # a panel of several analyses, of several ranks
    reasons = {}
    for kind, entry in analysis.ANALYSES.items():
        try:
            entry.function(trace)
        except MissingDataError as missing:
            reasons[kind] = str(missing)
    assert {kind: text.lower() for kind, text in told.items()} == {
        kind: text.lower() for kind, text in reasons.items()
    }
    first = first_panels(trace, told)
    assert first and not set(first) & {*told, "comm_comp_overlap"}


def test_for_the_fold_no_call_tree_is_built_and_no_answer_computed(
    ddp: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def built(*_: object) -> None:
        raise AssertionError("computed for a panel that nobody opened")

    monkeypatch.setattr(sys.modules["hta_widgets.analysis.calls.modules"], "call_stacks", built)
    monkeypatch.setattr(sys.modules["hta_widgets.analysis.strategy.memory_panel"], "memory_owners", built)
    assert set(unanswered(ddp)) == LACKING
    monkeypatch.setattr(sys.modules["hta_widgets.analysis.parallelism.grid"], "job_evidence", built)
    alone = Trace.open(ddp.rank(0).path)
    assert {"pipeline", "expert_balance"} < set(unanswered(alone))


def test_the_explorer_begins_with_panels_that_have_something_to_say(ddp: Trace, until: Any) -> None:
    explorer = TraceExplorer(ddp)
    assert explorer.panels == ("temporal_breakdown", "comm_comp_overlap")
    assert explorer.choices == {"ranks": [0, 1, 2, 3], "iterations": [10, 11, 12, 13]}
    until(lambda: set(explorer.lacking) == LACKING)
    until(lambda: bool(explorer.relevant))
    assert explorer.relevant[0] == "stragglers"
    explorer.set_state({"relevant": [], "lacking": {}, "ranks": [2]})
    assert explorer.relevant and explorer.lacking
    assert explorer.selection.ranks == (2,)
    assert TraceExplorer(ddp, panels=[]).panels == ()


def test_names_are_found_most_frequent_first(ddp: Trace) -> None:
    names = ddp.events()["name"].astype(str)
    counts = names[names.str.lower().str.contains("nccl", regex=False)].value_counts()
    expected = sorted(counts.index, key=lambda name: (-counts[name], name))[:8]
    assert names_containing(ddp, " NCCL ") == expected
    assert names_containing(ddp, "no such name") == names_containing(ddp, "  ") == []
