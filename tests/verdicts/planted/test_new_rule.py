"""A rule that is written here as CONTRIBUTING says: all that users see of it follows from its record."""

from __future__ import annotations

import ast
import json
import math
import re
from collections import defaultdict
from collections.abc import Callable
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from hta_widgets.analysis.core.claim import say
from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.evidence.document import evidence
from hta_widgets.analysis.findings import CHECKED, OPEN, judging, overview
from hta_widgets.analysis.findings.evidence import evidence_of_event
from hta_widgets.analysis.findings.finding import Evidence, Finding
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.loss import lost_on
from hta_widgets.analysis.findings.rule import Change, Rule
from hta_widgets.analysis.findings.rules import BY_TOPIC, RULES
from hta_widgets.analysis.findings.shorter import longest_run, running
from hta_widgets.analysis.findings.story import story
from hta_widgets.analysis.idle.causes import named
from hta_widgets.analysis.replay import edits
from hta_widgets.arrays import Int64
from hta_widgets.errors import MissingDataError
from hta_widgets.trace.model import Trace
from tests.claims.checking import faults_of
from tests.support import ROOT
from tests.verdicts.planted.host_program import US, Program

SORT = re.compile("RadixSort")


# -- the module of the rule, as a contributor writes it


def sorting(inputs: Inputs) -> Finding | None:
    """Kernels that sort."""
    if not inputs.has_operators:
        raise MissingDataError("operators", "Record with ProfilerActivity.CPU.", "who sorts is unknown")
    runs = {rank: inputs.of(rank, _running) for rank in inputs.temporal["rank"].tolist()}
    loss = lost_on(inputs.temporal, {rank: time.length for rank, time in runs.items()})
    if loss is None:
        return None
    rank_trace = inputs.trace.rank(loss.worst)
    lost = inputs.time_lost("kernels_named", loss.share_pct, loss.cost_ns, loss.ranks, pattern=SORT.pattern)
    return Finding(
        loss.cost_ns,
        loss.share_pct,
        say("Kernels that sort take {lost}.", lost=lost),
        "Sort less, or only what is needed: torch.topk.",
        "kernel_breakdown",
        evidence_of_event(rank_trace, longest_run(rank_trace, _sorts(inputs, loss.worst)), alone=False),
        lost={rank: runs[rank] for rank in loss.ranks},
    )


def _running(inputs: Inputs, rank: int) -> Intervals:
    return running(inputs, rank, _sorts(inputs, rank))


def _sorts(inputs: Inputs, rank: int) -> Int64:
    rank_trace = inputs.trace.rank(rank)
    rows = rank_trace.rows(inputs.scope)
    chosen: Int64 = rows[(named(rank_trace, SORT.search) & rank_trace.is_device)[rows]]
    return chosen


RULE = Rule(
    topic="sorting",
    question="what sorting costs",
    title="Sorting on the device",
    label="Sorting",
    cause="sorting",
    judge=sorting,
    change=Change("without sorting", lambda _: [edits.kernels(math.inf, name="*RadixSort*")]),
    risk="The largest values alone may not be enough.",
    needs="Code that does not need all of the order.",
    wrong_if="All of the order is needed.",
)


# -- its place among the others


@pytest.fixture(autouse=True)
def _listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if it stood in `rules.py`, of which these are the lists."""
    monkeypatch.setattr(judging, "RULES", (*RULES, RULE))
    monkeypatch.setitem(BY_TOPIC, RULE.topic, RULE)


# -- its test


def loop(sort_us: int, operators: bool = True) -> Program:
    """In each of six steps a product, and a sort."""
    program = Program()
    for number in range(1, 7):
        with program.step(number):
            for name, length in (("gemm", 900), ("DeviceRadixSortOnesweepKernel", sort_us)):
                if operators:
                    with program.inside("cpu_op", "aten::mm" if name == "gemm" else "aten::sort"):
                        program.launch(length * US, name)
                elif length:
                    program.launch(length * US, name)
            program.synchronise()
    return program


def of_it(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return frame[frame["topic"] == RULE.topic].to_dict("records")


def test_it_fires_and_every_surface_has_it(tmp_path: Path) -> None:
    trace = loop(300).open(tmp_path)
    frame = overview(trace)
    (row,) = of_it(frame)
    assert row["share_pct"] == pytest.approx(25, abs=2) and row["section"] == "saves"
    assert (row["title"], row["risk"], row["needs"]) == (RULE.title, RULE.risk, RULE.needs)
    assert row["wrong_if"] == RULE.wrong_if and "RadixSort" in row["edits"]
    assert not [str(fault) for fault in faults_of(trace, frame)]
    told = story(trace, None, frame)
    (advice,) = (each for each in told.advice if each.topic == RULE.topic)
    assert advice.noun == RULE.label and told.headline.endswith(" without sorting")
    assert RULE.topic in json.dumps(evidence(trace))


def test_a_near_miss(tmp_path: Path) -> None:
    frame = overview(loop(10).open(tmp_path))
    assert not of_it(frame)
    (checked,) = frame.loc[frame["severity"] == CHECKED, ["text", "checked"]].to_dict("records")
    assert "sorting" in checked["text"].lower() and RULE.topic in checked["checked"].split()


def test_data_in_which_it_abstains(tmp_path: Path) -> None:
    frame = overview(loop(300, operators=False).open(tmp_path))
    assert not of_it(frame)
    said = frame.loc[frame["severity"] == OPEN, ["text", "suggestion"]].to_dict("records")
    assert any(
        RULE.question in each["text"] and "ProfilerActivity.CPU" in each["suggestion"] for each in said
    )


def test_a_rule_that_fails_costs_its_own_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(inputs: Inputs) -> Finding | None:
        raise ValueError("cannot convert float NaN to integer")

    trace = loop(300).open(tmp_path)
    before = overview(trace).set_index("topic")
    broken = Rule(RULE.topic, RULE.question, RULE.title, fails)
    monkeypatch.setattr(judging, "RULES", (*RULES, broken))
    after = overview(Trace.open(tmp_path, cache=False)).set_index("topic")
    assert "it is unknown what sorting costs" in " ".join(after["text"])
    others = [topic for topic in before.index if topic in BY_TOPIC and topic != RULE.topic]
    assert list(after.loc[others, "text"]) == list(before.loc[others, "text"])


# -- what CONTRIBUTING says of it


def walk_through() -> str:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    return text.partition("## Add a rule")[2].partition("\n## ")[0]


def test_a_rule_touches_three_places() -> None:
    places = re.findall(r"^\| `([^`]+)` \|", walk_through(), re.MULTILINE)
    assert places == [
        "hta_widgets/analysis/findings/<rule>.py",
        "hta_widgets/analysis/findings/rules.py",
        "tests/verdicts/planted/test_<rule>.py",
    ]


def test_what_the_walk_through_names_is_there() -> None:
    known = {each.name for of in (Rule, Finding, Evidence) for each in fields(of)}
    named_there = re.findall(r"`(?:Evidence\.)?([a-z_]+)`", walk_through())
    of_other_things = {"say", "measure"}
    assert {"label", "cause", "lost_as", "lost", "span", "wrong_if", "no_change", "judge"} <= {*named_there}
    assert {*named_there} - of_other_things <= known


ALSO_CALLED_SO = {
    "data_stall": "a cause of idle time",
    "device_wait": "a cause of idle time",
    "exposed_communication": "a part of the time",
    "start_up": "a column of steps",
    "maybe_communication": "a check of `Trace.health`",
}
"""Topics whose word is the name of something else, too."""


@cache
def modules_with() -> dict[str, set[str]]:
    """Each text that is a whole literal of the package -> the modules that hold it."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in (ROOT / "hta_widgets").rglob("*.py"):
        code = path.read_text(encoding="utf-8")
        if not any(topic in code for topic in BY_TOPIC):
            continue
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found[node.value].add(path.stem)
    literal: Callable[[str], list[str]] = re.compile(r"[\"'`](\w+)[\"'`]").findall
    for path in (ROOT / "js" / "src").rglob("*.ts*"):
        if ".test." not in path.name:
            for text in literal(path.read_text(encoding="utf-8")):
                found[text].add(path.name)
    return found


@pytest.mark.parametrize("topic", sorted(BY_TOPIC))
def test_a_topic_is_known_in_its_module_alone(topic: str) -> None:
    if topic not in ALSO_CALLED_SO:
        assert len(modules_with()[topic]) <= 1, f"{topic}: {sorted(modules_with()[topic])}"
