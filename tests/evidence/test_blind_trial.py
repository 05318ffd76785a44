"""A reader of the skill, with the commands alone, names what was planted in jobs, and advises no harm."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from hta_widgets import examples
from hta_widgets.cli.opening import kept_open
from hta_widgets.cli.skill import SKILL
from tests.evidence.jobs import JOBS, NOTHING, Job
from tests.evidence.reader import Agent, steps_of

TEXT = SKILL.read_text(encoding="utf-8")
COMMANDS, TOKENS = 5, 10_000
RIGHT = 0.9
CLOSE = 5.0  # points between a saving of the document and the same change replayed again


def followed(path: Path) -> Agent:
    agent = Agent(TEXT, path)
    with kept_open(1):
        agent.follow()
    assert len(agent.commands) <= COMMANDS and agent.tokens <= TOKENS
    return agent


def judged(job: Job, agent: Agent) -> tuple[str, bool]:
    """What is wrong with the answer, "" if nothing; and whether it is advice that would do harm."""
    if agent.stopped:
        return ("" if NOTHING in job.cause else "the cause is not named"), False
    first = agent.document["findings"][0]
    said = json.dumps([first["claim"], first["where"]])
    if first["id"] not in job.cause:
        return f"another cause is named: {first['id']}", True
    if job.never and re.search(job.never, f"{first['do']} {first['claim']}"):
        return f"wrong advice: {first['do']}", True
    if job.who not in said:
        return f"{job.who} is not named: {said}", False
    return ("" if re.search(job.advice, first["do"]) else f"other advice: {first['do']}"), False


def contradicted(agent: Agent) -> str:
    """A saving that is stated and vetoed, or that the replay does not confirm."""
    first: dict[str, Any] = agent.document["findings"][0]
    rows = agent.answers.get("what-if", {}).get("rows")
    mid = first["saving"].get("mid", {}).get("value")
    if "savings" in {veto["forbids"] for veto in agent.document["trust"]["vetoes"]}:
        return "a vetoed saving is stated" if mid or rows else ""
    if not rows or mid is None:
        return ""
    before, after = (sum(row[name] for row in rows) for name in ("before_ns", "after_ns"))
    again = 100 * (1 - after / before)
    return "" if abs(again - mid) <= CLOSE else f"{mid} % is said to be saved, and {again} %"


def test_it_names_what_was_planted_and_advises_nothing_wrong(tmp_path: Path) -> None:
    missed, harm = [], []
    for at, (name, job) in enumerate(JOBS.items()):
        folder = tmp_path / str(at)
        folder.mkdir()
        job.write(folder)
        agent = followed(folder)
        why, harmful = judged(job, agent)
        if why:
            (harm if harmful else missed).append((name, why))
        if not agent.stopped and (why := contradicted(agent)):
            harm.append((name, why))
    assert len(JOBS) >= 20
    assert not harm
    assert len(missed) <= (1 - RIGHT) * len(JOBS), missed


def test_the_reader_finds_a_late_rank_of_an_example() -> None:
    agent = followed(examples.path("ddp_4ranks"))
    first = agent.document["findings"][0]
    assert first["id"] == "straggler" and "ank 2" in first["claim"]


@pytest.mark.parametrize("name", ["a loader that is far too slow", "equal ranks"])
def test_answers_for_another_job_are_judged_as_wrong(name: str, tmp_path: Path) -> None:
    """Or the trial could not fail."""
    JOBS[name].write(tmp_path)
    agent = followed(tmp_path)
    others = [other for other in JOBS.values() if not set(other.cause) & set(JOBS[name].cause)]
    assert others and all(judged(other, agent)[0] for other in others)


def test_the_reader_reads_every_step() -> None:
    steps = steps_of(TEXT)
    assert len(steps) == len(re.findall(r"(?m)^\d\. ", TEXT)) == 8
    assert len(steps_of(TEXT.replace("3. The answer", "The answer"))) == 7
