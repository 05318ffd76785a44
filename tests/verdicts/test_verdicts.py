"""What is said of each real recording, held against what an expert has read from it: nothing may be wrong.

The table of all verdicts: ``python -m tests.verdicts``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pandas as pd
import pytest

from hta_widgets.analysis.findings import CHECKED, OPEN, overview
from hta_widgets.trace import Trace
from tests.first_lines import first_lines
from tests.verdicts.recordings import opened
from tests.verdicts.test_readings import READINGS

# How the package calls what a reading calls otherwise.
KINDS = {"inference": {"forward"}, "capture": {"graph capture"}, "serving": {"serving", "forward"}}
ANY_KIND = {"fragment", "start-up", "unknown"}
# These say that nothing, or nothing else, can be judged.
ABSTAINS = {"filtered", "fragment", "graph_capture", "several_jobs", "start_up"}
# A cause this large (% of the time) must be told; smaller ones only make a verdict complete.
MUST_BE_TOLD = 10.0
# A share may differ by a little more than the reading's tolerance: the clocks of the two are not the same.
CLOCK_POINTS = 1.0


@dataclass
class Judgement:
    """What was said, and what was wrong with it."""

    headline: str
    wrong: list[str] = field(default_factory=list)
    silent: list[str] = field(default_factory=list)
    partly: list[str] = field(default_factory=list)

    @property
    def word(self) -> str:
        return next((word for word in ("wrong", "silent", "partly") if getattr(self, word)), "right")


def judge(name: str) -> Judgement:
    """Everything said of a recording, against its reading."""
    reading, trace = READINGS[name], opened(name)
    frame = overview(trace)
    said = frame[~frame["severity"].isin((OPEN, CHECKED))]
    found = Judgement(first_lines(trace, frame))
    _headline(reading, frame, said, found)
    _causes(reading, frame, said, found)
    _not_said(reading, said, found)
    _recording(reading, trace, said, found)
    return found


def _headline(reading: dict[str, Any], frame: pd.DataFrame, said: pd.DataFrame, found: Judgement) -> None:
    wanted = set(reading["headline"])
    said = said[said["role"] != "aside"]  # which is of another time
    first = said["topic"].iloc[0] if len(said) else ""
    cannot = first in ABSTAINS or not len(said)
    if "no_device" in wanted and not len(said):
        if "device events" not in found.headline:
            found.wrong.append("does not say that no device work is recorded")
    elif not wanted or "abstains" in wanted:
        if not cannot and first not in wanted:
            found.wrong.append(f"judges by {first} what cannot be judged")
    elif first not in wanted and not _saves_more(reading, said, wanted):
        found.wrong.append(f"says {first or 'nothing'} first, not {' or '.join(wanted)}")


def _saves_more(reading: dict[str, Any], said: pd.DataFrame, wanted: set[str]) -> bool:
    """Whether what is said first is one of the reading's causes, and saves more than what costs most."""
    first, costliest = said.iloc[0], said[said["topic"].isin(wanted)]
    return bool(
        first["topic"] in [cause["topic"] for cause in reading.get("cause", [])]
        and first["section"] == "saves"
        and len(costliest)
        and (costliest["saving_ns"] < first["saving_ns"]).all()
    )


def _causes(reading: dict[str, Any], frame: pd.DataFrame, said: pd.DataFrame, found: Judgement) -> None:
    withheld = bool(set(said["topic"]) & ABSTAINS)
    shares = said.set_index("topic")["share_pct"]
    texts = " ".join(said["text"])
    for cause in reading.get("cause", []):
        topic, share = cause["topic"], cause.get("share_pct")
        if share is None:
            continue
        if topic in shares:
            if abs(shares[topic] - share) > cause["tolerance"] + CLOCK_POINTS:
                found.wrong.append(f"{topic} is {shares[topic]:.1f} %, not {share} %")
        elif not withheld and not (topic == "launch_bound" and "Launch latency takes another" in texts):
            missing = f"{topic} ({share} %)"
            (found.silent if share >= MUST_BE_TOLD else found.partly).append(missing)


def _not_said(reading: dict[str, Any], said: pd.DataFrame, found: Judgement) -> None:
    for sentence_ in reading.get("not_said", []):
        if sentence_["topic"] in set(said["topic"]):
            found.wrong.append(f"says {sentence_['topic']}: {' '.join(sentence_['why'].split())}")
    advice = " ".join(said["suggestion"])
    for advised in reading.get("not_advised", []):
        if advised["words"] in advice:
            found.wrong.append(f"advises {advised['words']}: {' '.join(advised['why'].split())}")


def _recording(reading: dict[str, Any], trace: Trace, said: pd.DataFrame, found: Judgement) -> None:
    kinds = {trace.rank(rank).recording.kind for rank in trace.ranks}
    kind = reading["kind"]
    if kind not in ANY_KIND and not kinds <= KINDS.get(kind, {kind}):
        found.wrong.append(f"takes it for {' and '.join(sorted(kinds))}, not {kind}")
    clocks = set(trace.iterations["clock"])
    judged = len(said) and not set(said["topic"]) & ABSTAINS
    if judged and reading["timed_on"] and not clocks <= set(reading["timed_on"]):
        found.wrong.append(f"times steps on the {' and '.join(clocks)}, not the {reading['timed_on'][0]}")


@pytest.mark.parametrize("name", sorted(READINGS))
def test_nothing_wrong_is_said(name: str) -> None:
    found = judge(name)
    assert not found.wrong
    assert not found.silent
