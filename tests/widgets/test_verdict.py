"""The verdict above the explorer: its cards, where their evidence lies, and which panels can answer."""

import gzip
import json
import math
import sys
import threading
from typing import Any

import pandas as pd
import pytest
import traitlets as t

from hta_widgets import Scope, Trace, TraceExplorer, analysis, edits, examples
from hta_widgets.analysis.findings.headline import sentence, title
from hta_widgets.analysis.findings.rules import RULES
from hta_widgets.engine import Latest
from hta_widgets.errors import MissingDataError
from hta_widgets.formatting import duration, percent
from hta_widgets.widgets.evidence import evidence_ns
from hta_widgets.widgets.name_search import names_containing
from hta_widgets.widgets.relevance import first_panels, unanswered
from hta_widgets.widgets.verdict import Verdict
from tests.support import shared_trace

LACKING = {"cupti_counters", "fsdp_units", "module_stacks", "serving_steps", "serving_phases", "roles"}


@pytest.fixture(scope="module")
def found(ddp: Trace) -> pd.DataFrame:
    return analysis.overview(ddp)


def test_cards_say_what_the_first_findings_say(ddp: Trace, found: pd.DataFrame, until: Any) -> None:
    verdict = Verdict(ddp)
    until(lambda: verdict.status == "idle")
    assert len(verdict.cards) == 3
    found = found[found["part_of"] == ""].reset_index(drop=True)  # a part stands on the card of its whole
    for card, row in zip(verdict.cards, found.to_dict("records"), strict=False):
        assert card["text"].startswith(row["text"])
        assert (card["suggestion"], card["saving"]) == (row["suggestion"], row["saving"])
    late, loader, _ = verdict.cards
    assert late["text"].endswith(" Part of it: a rank with slow kernels (9.31 %).")
    assert late["title"] == "Waiting for a late rank: rank 2"
    assert (late["figure"], late["caption"]) == ("\N{MINUS SIGN}7.38 %", "of the time")
    assert late["span"] == [100.0, 100.0, 100.0]
    assert (loader["caption"], loader["how"]) == ("of the time", "replayed")
    # in % of the most that any card saves, from the frame's nanoseconds
    high, estimate = (found[name].astype("Float64") for name in ("saving_high_ns", "saving_ns"))
    pct = found["saving_pct"] * high / estimate
    assert loader["span"] == [pytest.approx(100 * pct[1] / pct[0], abs=0.01)] * 3
    # of each of the four steps, all of which are judged
    assert loader["per_step"] == f"{duration(round(int(found['saving_ns'][1]) / 4))} per step"
    assert verdict.further == "other causes checked, nothing found"
    assert verdict.kinds[0] == "stragglers"


def test_after_a_change_it_gives_way_to_what_else_is_computed(
    ddp: Trace, until: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    verdict = Verdict(ddp)
    until(lambda: verdict.status == "idle")
    hold, begun = threading.Event(), threading.Event()
    computes = verdict._compute
    monkeypatch.setattr(verdict, "_compute", lambda question: begun.set() or computes(question))
    other = Latest[object](lambda _: None, lambda _: None)
    other.submit(lambda: hold.wait(10))
    try:
        verdict.selection.window = (0, ddp.extent_ns[1] // 2)
        assert not begun.wait(0.3)
    finally:
        hold.set()
    until(lambda: verdict.status == "idle")
    assert begun.is_set()


def test_what_all_cards_save_together_is_said_of_a_step(until: Any) -> None:
    """By the table of steps and by `what_if`, which is told nothing of findings."""
    trace = Trace.open(examples.path("gpt2_fsdp_full_shard"))
    verdict = Verdict(trace)
    until(lambda: verdict.status == "idle")
    rank = 1
    steps = analysis.step_times(trace).query("rank == @rank and not partial and not start_up")
    both = [edits.communication(0), edits.copies(math.inf)]
    answer = analysis.what_if(trace, both, Scope(ranks=(rank,), iterations=tuple(steps["iteration"])))
    answer = answer[answer["iteration"].notna()]
    assert answer["before_ns"].tolist() == steps["dur_ns"].tolist()
    before, after = int(answer["before_ns"].mean()), int(answer["after_ns"].mean())
    assert verdict.together == (
        f"Both together on rank {rank}: {duration(before)} → at best {duration(after)} per step "
        f"({before / after:.2f}×)"
    )


def test_bars_begin_at_nothing(until: Any) -> None:
    """Where a change may also cost time, the words say so; the bar has no place for it."""
    trace = Trace.open(shared_trace("hta/trace_diff/test"))
    verdict = Verdict(trace)
    until(lambda: verdict.status == "idle")
    low = analysis.overview(trace)["saving_low_ns"].head(3)
    assert (low < 0).any()
    for card in verdict.cards:
        least, estimate, most = card["span"]
        assert 0 <= least <= estimate <= most <= 100


@pytest.mark.parametrize(
    ("job", "why"),
    [
        ("ddp_4ranks", "two of three changes are of several ranks"),
        ("gpt2_ddp", "there is one"),
        ("single_gpu_dataloader_stall", "there is one"),
    ],
)
def test_what_cannot_be_put_together_is_not(job: str, why: str, until: Any) -> None:
    verdict = Verdict(Trace.open(examples.path(job)))
    until(lambda: verdict.status == "idle")
    assert verdict.cards and verdict.together == "", why


def test_evidence_is_where_the_file_has_it(ddp: Trace, found: pd.DataFrame) -> None:
    """The time of an event as the file has it, read again, with half as much on either side."""
    late, loader = (found[found["topic"] == topic].iloc[0] for topic in ("straggler", "data_stall"))
    rank, event_id = int(loader["event_rank"]), int(loader["event_id"])
    (file,) = examples.path("ddp_4ranks").glob(f"rank-{rank}.*")
    event = json.loads(gzip.decompress(file.read_bytes()))["traceEvents"][event_id]
    start, end = evidence_ns(ddp, loader)
    lost = round(event["dur"] * 1000)
    mine = ddp.events()
    mine = mine[(mine["rank"] == rank) & (mine["event_id"] == event_id)].iloc[0]
    assert mine["end_ns"] - mine["start_ns"] == lost
    assert (start, end) == (max(mine["start_ns"] - lost // 2, 0), mine["end_ns"] + lost // 2)
    # the last to arrive, and how much longer than its own the exchange takes the rank that waits longest
    work = ddp.events().query("event_class == 'communication'")
    own = work[(work["rank"] == 2) & (work["event_id"] == late["event_id"])].iloc[0]
    at = own["start_ns"]
    lost = max(work[(work["start_ns"] <= at) & (work["end_ns"] > at)]["dur_ns"]) - own["dur_ns"]
    assert evidence_ns(ddp, late) == [at - lost - lost // 2, at + lost // 2]


def test_showing_is_the_browsers_and_findings_are_not(ddp: Trace, until: Any) -> None:
    verdict = Verdict(ddp)
    until(lambda: verdict.status == "idle")
    cards = list(verdict.cards)
    verdict.set_state({"shown": 1, "cards": [], "sentence": "all is well"})
    assert (verdict.shown, verdict.cards) == (1, cards)
    assert verdict.sentence != "all is well"
    with pytest.raises(t.TraitError):
        verdict.shown = -2
    verdict.selection.ranks = (2,)  # as showing does: what is said stays
    assert verdict.status == "idle"
    verdict.selection.window = (0, 20_000_000)
    until(lambda: verdict.status == "idle" and verdict.cards != cards)
    assert verdict.shown == -1


@pytest.mark.parametrize(
    ("job", "words"),
    [("hta/trace_filter", "Events were removed"), ("hta/cpu_only", "no device events")],
)
def test_the_verdict_abstains_with_its_reason(job: str, words: str, until: Any) -> None:
    verdict = Verdict(Trace.open(shared_trace(job)))
    until(lambda: verdict.status == "idle")
    assert words in verdict.sentence + verdict.cards[0]["text"]
    assert all(card["figure"] == "" and card["evidence"] is None for card in verdict.cards)


def test_what_if_begins_with_the_change_of_a_card(ddp: Trace, until: Any) -> None:
    explorer = TraceExplorer(ddp, panels=["what_if"])
    until(lambda: bool(explorer.relevant))
    verdict = dict(explorer.parts)["verdict"]
    assert [card["replayed"] for card in verdict.cards] == [False, True, False]
    explorer.ask("try_card", {"card": 1})
    expression = "edits.without('enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__')"
    assert [edit.expression for edit in explorer.edits] == [expression]
    for card in (0, 2, -1):
        with pytest.raises(LookupError, match="no replay"):
            explorer.ask("try_card", {"card": card})
    assert len(explorer.edits) == 1


def test_every_topic_has_a_title() -> None:
    for rule in RULES:
        words = title(pd.Series({"title": rule.title}))
        assert words[0].isupper() and not words.endswith((",", "."))


def test_a_recording_without_device_work_says_so_first() -> None:
    """The card's text is cut where it is long: what is missing comes before what is therefore unknown."""
    found = analysis.overview(Trace.open(shared_trace("hta/cpu_only")))
    lacking = found[found["topic"] == "not_judged"].iloc[0]
    assert title(lacking) == "Where time goes cannot be told"
    assert lacking["text"].startswith("The trace has no device events: it is unknown ")
    assert sentence(found) == "Where time goes cannot be told: the trace has no device events."


def test_a_full_queue_costs_nothing(until: Any) -> None:
    verdict = Verdict(Trace.open(shared_trace("hta/ns_resolution_trace")))
    until(lambda: verdict.status == "idle")
    (full,) = [card for card in verdict.cards if card["title"] == "A full launch queue"]
    assert (full["figure"], full["caption"]) == ("60.4 %", "of the time the host waits; it costs nothing")


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


@pytest.mark.parametrize(
    "name, beginning",
    [("hta/trace_filter", "It holds 1.36 % of the operators"), ("hta/triton_example", "Too little to tell")],
)
def test_a_card_does_not_repeat_its_title(until: Any, name: str, beginning: str) -> None:
    verdict = Verdict(Trace.open(shared_trace(name), cache=False))
    until(lambda: verdict.status == "idle")
    (card,) = verdict.cards
    assert card["text"].startswith(beginning)
    assert card["title"] not in card["text"]
    verdict.close()


def test_the_cards_of_a_selected_iteration_are_about_it_and_say_so(ddp: Trace, until: Any) -> None:
    verdict = Verdict(ddp)
    until(lambda: verdict.status == "idle")
    of_all = list(verdict.cards)
    verdict.selection.iterations = (11,)
    until(lambda: verdict.status == "idle" and verdict.cards != of_all)
    assert verdict.further.startswith("iteration 11, over 1 step, ")
    saved = analysis.overview(ddp, Scope(iterations=(11,)))["saving_pct"].iloc[0]
    assert verdict.cards[0]["figure"] == f"\N{MINUS SIGN}{percent(saved)}"
    verdict.selection.ranks = (2,)
    said = "iteration 11 on rank 2, over 1 step"
    until(lambda: verdict.status == "idle" and verdict.further.startswith(said))
    verdict.selection.ranks, verdict.selection.iterations = (), ()
    until(lambda: verdict.status == "idle" and verdict.cards == of_all)
