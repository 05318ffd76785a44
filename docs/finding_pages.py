"""The page of findings by example: what each says of a recording, with a picture of the place."""

from __future__ import annotations

import re
from functools import cache
from typing import Final

import pandas as pd

from docs.docstrings import prose
from docs.finding_examples import BUNDLED, MADE, trace_of
from docs.finding_pictures import memory_picture, picture
from hta_widgets import Trace
from hta_widgets.analysis.findings.overview import overview
from hta_widgets.analysis.findings.rule import Rule
from hta_widgets.analysis.findings.rules import BY_TOPIC
from hta_widgets.analysis.findings.shown_at import Place, places_of
from hta_widgets.formatting import capitalised

PAGE: Final = "finding_examples.md"
TOPICS: Final = (*BUNDLED, *MADE)

HEAD = """\
# Findings by example

What each finding says, word for word, of a recording that has it. The picture shows where: the calls of
the CPU, outer ones above, and the streams of the GPU. The red frame is the time that is lost, or what shows
it. [Findings](findings.md) says when each is reported, and when not.
"""

_GROUPS: Final = {
    "idle": "The GPU is idle",
    "compute": "The GPU computes",
    "communication": "Ranks communicate or wait for each other",
    "memory": "Copies",
    "host": "The CPU, where no GPU events are recorded",
    "aside": "What costs nothing",
    "of memory": "Memory",
}


def page() -> str:
    """The page in Markdown."""
    groups: dict[str, list[Rule]] = {name: [] for name in _GROUPS}
    for topic in TOPICS:
        groups[_group(BY_TOPIC[topic])].append(BY_TOPIC[topic])
    parts = [HEAD]
    for name, rules in groups.items():
        parts += [f"## {_GROUPS[name]}", *map(_section, rules)]
    return "\n\n".join(parts) + "\n"


def pictures() -> dict[str, str]:
    """Finding -> its picture as an SVG."""
    return {topic: picture_of(topic) for topic in TOPICS}


@cache
def finding_of(topic: str) -> pd.Series:
    """What the recording's overview says."""
    frame = overview(trace_of(topic))
    return frame[frame["topic"] == topic].iloc[0]


def picture_of(topic: str) -> str:
    """Where a finding shows; without a place, a step."""
    trace, row, rule = trace_of(topic), finding_of(topic), BY_TOPIC[topic]
    name = capitalised(rule.name)
    if rule.role == "memory":
        return memory_picture(trace, name)
    found = places_of(trace, row, rule.name, rule.lost_as)
    place = found[0] if found else _a_step(trace, name)
    ranks = [rank for rank in trace.ranks if len(trace.ranks) <= 4 or rank in (place.rank, row["rank"])]
    return picture(trace, place, ranks)


def anchor(topic: str) -> str:
    """Where a finding is on the site."""
    name = re.sub(r"[^\w\- ]", "", _heading(BY_TOPIC[topic]).lower()).replace(" ", "-")
    return f"{PAGE}#{name}"


def _group(rule: Rule) -> str:
    if rule.role in ("cause", "doubt"):
        return rule.lost_as
    return "of memory" if rule.role == "memory" else "aside"


def _heading(rule: Rule) -> str:
    return f"{capitalised(rule.name)} ({rule.topic})"


def _section(rule: Rule) -> str:
    row = finding_of(rule.topic)
    bundled = BUNDLED.get(rule.topic)
    where = f"the bundled example `{bundled}`" if bundled else "a small job that was made for this page"
    saying = " ".join(filter(None, (row["text"], row["saving"])))
    parts = [
        f"### {_heading(rule)}",
        f"![{row['title']}: where it shows](images/findings/{rule.topic}.svg){{.finding loading=lazy}}",
        f"In {where}:",
        f"> {prose(saying)}",
        prose(row["suggestion"]),
        f"*Wrong if:* {prose(rule.wrong_if)}" if rule.wrong_if else "",
    ]
    return "\n\n".join(filter(None, parts))


def _a_step(trace: Trace, label: str) -> Place:
    rank = trace.rank(trace.ranks[0])
    steps = rank.iterations
    if len(steps):
        step = steps.iloc[len(steps) // 2]
        return Place(trace.ranks[0], int(step["start_ns"]), int(step["end_ns"]), label)
    return Place(trace.ranks[0], *(rank.device_span or rank.host_span), label)
