"""A topic of a finding is known in the module of its rule, and nowhere else."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import hta_widgets
from hta_widgets.analysis import idle_breakdown, step_times, temporal_breakdown
from hta_widgets.analysis.findings.rules import BY_TOPIC
from hta_widgets.analysis.idle.causes import CAUSES
from hta_widgets.trace.classify import EventClass

ROOT = Path(hta_widgets.__file__).parent
COLUMNS = f"{idle_breakdown.__doc__} {temporal_breakdown.__doc__} {step_times.__doc__}"
OTHER_WORDS = {
    topic
    for topic in BY_TOPIC
    if topic in (*CAUSES, *(each.name.lower() for each in EventClass)) or topic in COLUMNS
}
"""Topics that are also words for something else: a cause of idle time, a class of events, a column."""


def strings(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def named_by(tree: ast.AST) -> set[str]:
    """The topics of the rules that a module makes."""
    return {
        topic
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        for keyword in node.keywords
        if keyword.arg == "topic"
        for topic in strings(keyword.value)
    }


def compared(tree: ast.AST) -> Iterator[str]:
    """What topics are compared with: literals and constants, `frame["topic"] == X` or `rule.topic in X`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") in ("isin", "eq", "ne"):
            sides = [node.func.value, *node.args]  # type: ignore[attr-defined]
        else:
            continue
        if any(is_topic(side) for side in sides):
            for side in sides:
                yield from strings(side) if not is_topic(side) else ()
                yield from (
                    name.id for name in ast.walk(side) if isinstance(name, ast.Name) and name.id.isupper()
                )


def is_topic(node: ast.AST) -> bool:
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, ast.Constant) and node.slice.value == "topic"
    return isinstance(node, ast.Attribute) and node.attr == "topic"


def faults_in(text: str) -> list[str]:
    """The topics that a module knows and that are not its own."""
    if "topic" not in text and not any(f'"{topic}"' in text for topic in BY_TOPIC):
        return []  # soon read
    tree = ast.parse(text)
    others = set(BY_TOPIC) - named_by(tree)
    found = [each for each in strings(tree) if each in others - OTHER_WORDS]
    made_elsewhere = ("RULES", "BY_TOPIC")
    return found + [
        each for each in compared(tree) if each in others or (each.isupper() and each not in made_elsewhere)
    ]


def test_no_topic_is_known_outside_its_module() -> None:
    faults = {
        str(path.relative_to(ROOT)): found
        for path in sorted(ROOT.rglob("*.py"))
        if path.relative_to(ROOT).parts[0] != "trace"  # a layer below, with its own kinds of health
        if (found := faults_in(path.read_text(encoding="utf-8")))
    }
    assert not faults


def test_what_knows_a_topic_is_found() -> None:
    assert faults_in('chosen = frame[frame["topic"] == "straggler"]') == ["straggler", "straggler"]
    assert faults_in('chosen = frame[frame["topic"].isin((SERVING_WORK,))]') == ["SERVING_WORK"]
    assert faults_in('if found.rule.topic == "data_stall": pass') == ["data_stall"]
    assert not faults_in('lost = frame["data_stall_ns"]; cause = "data_stall"')
    assert not faults_in('rule = Rule(topic="straggler"); rows = frame["topic"] == "straggler"')
