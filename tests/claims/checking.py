"""Checks what `overview` says of a recording: each claim by its reader, sentences for what is no claim."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

import tests.claims.measures  # noqa: F401 - registers them
from hta_widgets.analysis import overview
from hta_widgets.analysis.findings.story import story
from hta_widgets.trace import Scope, Trace
from tests.claims.first_screen import faults_of_screen
from tests.claims.job import Job
from tests.claims.registry import MEASURES, Stated

__all__ = ["Fault", "check_job", "faults_of", "stated_in"]

# What a sentence may say with a digit that was not measured: names of types, units, settings.
_TERMS = re.compile(
    r"\b(?:16|8|32|64) (?:bits|bytes)\b|\b(?:BF16|FP16|FP8|TF32|fp32|fp16|bf16|float(?:16|32|64)|int8)\b"
    r"|\b1F1B\b|\bZB-H1\b|\bFSDP2?\b|\bp < 0\.01\b|\brank 0 included\b|\bPCIe [345]\b"
    r"|\bnum_workers is 0\b"
)
_DIGIT = re.compile(r"\d")


@dataclass(frozen=True)
class Fault:
    """What is wrong with a sentence: the topic, the measure, and what is true."""

    topic: str
    measure: str
    what: str

    def __str__(self) -> str:
        return f"{self.topic}: {self.measure}: {self.what}"


def check_job(path: Path | str | Trace, scope: Scope | None = None) -> list[Fault]:
    """All faults of what is said of a recording."""
    trace = path if isinstance(path, Trace) else Trace.open(path)
    frame, job = overview(trace, scope), Job(trace, scope)
    shown = story(trace, scope, frame)
    of_screen = (Fault("first screen", "", what) for what in faults_of_screen(job, frame, shown))
    return [*faults_of(trace, frame, scope, job), *of_screen]


def faults_of(
    trace: Trace, frame: pd.DataFrame, scope: Scope | None = None, job: Job | None = None
) -> Iterator[Fault]:
    """The faults of a frame of `overview`; `job`: the recording, where it has been read already."""
    job = job or Job(trace, scope)
    stated = list(stated_in(frame))
    for each in stated:
        topic = str(each.row["topic"])
        reader = MEASURES.get(each.measure)
        if reader is None:
            yield Fault(topic, each.measure, "nothing recomputes it")
        elif what := reader(job, each):
            yield Fault(topic, each.measure, what)
    yield from _contradictions(stated)
    for row in frame.to_dict("records"):
        yield from _about_row(trace, row)


def stated_in(frame: pd.DataFrame) -> Iterator[Stated]:
    """The claims of all rows."""
    for row in frame.to_dict("records"):
        for claim in json.loads(row["claims"] or "[]"):
            value = tuple(claim["value"]) if isinstance(claim["value"], list) else claim["value"]
            claim = {name: part for name, part in claim.items() if name != "at"}
            yield Stated(**{**claim, "value": value, "ranks": tuple(claim["ranks"]), "row": row})


def _contradictions(stated: list[Stated]) -> Iterator[Fault]:
    """The same measure of the same whole with another value."""
    values: dict[str, dict[Any, str]] = defaultdict(dict)
    for each in stated:
        if each.measure in _OWN:
            continue
        key = json.dumps(
            [each.measure, each.unit, each.of, each.ranks, each.about], sort_keys=True, default=str
        )
        values[key].setdefault(each.value, str(each.row["topic"]))
    for key, found in values.items():
        if len(found) > 1:
            yield Fault(" and ".join(dict.fromkeys(found.values())), key, f"has the values {list(found)}")


_OWN = {"saving", "cost", "job_saving", "changes", "replayed_rank"}
"""What belongs to the finding that states it."""


def _about_row(trace: Trace, row: dict[str, Any]) -> Iterator[Fault]:
    topic, claims = str(row["topic"]), json.loads(row["claims"] or "[]")
    if row["section"] in ("nothing found", "open"):
        if "failed (" in row["text"]:
            yield Fault(topic, "", row["text"])
        return
    for claim in claims:
        for at in claim["at"]:
            if not row["text"][at:].startswith(claim["shown"]):
                yield Fault(topic, claim["measure"], f"does not stand at {at} of {row['text']!r}")
    said = f"{row['text']} {row['saving']}"
    for claim in sorted(claims, key=lambda claim: -len(claim["shown"])):
        said = re.sub(rf"(?<!\w){re.escape(claim['shown'])}(?!\w)", " ", said, count=1)
    said = _TERMS.sub(" ", said)
    if _DIGIT.search(said):
        yield Fault(topic, "", f"a number that is no claim: {said!r}")
    shares = [claim["value"] for claim in claims if claim["unit"] == "%"]
    if row["role"] == "cause" and all(abs(share - row["share_pct"]) > 1e-6 for share in shares or [0.0]):
        yield Fault(topic, "share_pct", f"{row['share_pct']} stands in no claim")
    if pd.notna(row["event_id"]):
        ids = trace.rank(int(row["event_rank"])).event_id
        if not (ids == int(row["event_id"])).any():
            yield Fault(topic, "event_id", f"no event {row['event_id']} on rank {row['event_rank']}")
    if pd.notna(row["start_ns"]):
        if pd.isna(row["event_rank"]):
            yield Fault(topic, "start_ns", "a time of no rank")
        start, end = trace.extent_ns
        if not start <= row["start_ns"] < row["end_ns"] <= end:
            yield Fault(
                topic, "start_ns", f"{row['start_ns']} to {row['end_ns']} is no time of the recording"
            )
