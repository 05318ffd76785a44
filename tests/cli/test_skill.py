"""The skill: short, its commands run, and a reader that follows it finds the cause that was planted."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from hta_widgets import examples
from hta_widgets.cli.opening import kept_open
from hta_widgets.cli.skill import SKILL
from tests.cli.conftest import Run
from tests.evidence.command import ask, filled
from tests.verdicts.planted.test_one_rank import CASES

TEXT = SKILL.read_text(encoding="utf-8")
COMMANDS = list(dict.fromkeys(found for found in re.findall(r"`(hta-widgets [^`]+)`", TEXT)))
DDP = examples.path("ddp_4ranks")


def test_it_is_short_and_says_when_to_use_it() -> None:
    assert len(TEXT) / 4 < 1200
    front = re.match(r"---\nname: hta-widgets\ndescription: (.+)\n---\n", TEXT)
    assert front and "Kineto" in front[1]


def test_it_is_printed_and_written(run: Run, tmp_path: Path) -> None:
    assert run("skill").out == TEXT
    path = tmp_path / "hta-widgets" / "SKILL.md"
    assert run("skill", "--write", tmp_path).out == f"{path}\n"
    assert path.read_text(encoding="utf-8") == TEXT
    (tmp_path / "file").write_text("")
    assert run("skill", "--write", tmp_path / "file").code == 5


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_of_it_runs_within_its_size(command: str) -> None:
    finding = "exposed_communication" if "check" in command else "data_stall"
    first = examples.path("gpt2_ddp") if "check" in command or "module" in command else DDP
    after = first if "diff" in command else examples.path("gpt2_fsdp_full_shard")
    known = {"TRACE": str(first), "AFTER": str(after), "ID": finding, "RANK:ID": "0:1"}
    words = [known.get(word, word) for word in shlex.split(command)[1:]]
    answer = ask(*words)
    assert answer.code == 0, answer.err
    assert answer.tokens <= 4000


@dataclass
class Reader:
    """Does what the skill says, step by step, and knows nothing else.

    Attributes:
        path: the recording.
        commands, tokens: what was run, and the size of the answers.
    """

    path: Path
    commands: list[str] = field(default_factory=list)
    tokens: int = 0

    def run(self, *argv: str) -> Any:
        answer = ask(*argv, "-q")
        assert answer.code == 0, (argv, answer.err)
        self.commands.append(argv[0])
        self.tokens += answer.tokens
        return answer.json

    def report(self) -> dict[str, Any]:
        """The cause, what to do, and what it saves; steps 1 to 4, and 7."""
        document = self.run("diagnose", str(self.path), "--json")
        forbidden = {veto["forbids"] for veto in document["trust"]["vetoes"]}
        if document["trust"]["level"] == "none" or not document["findings"]:
            return {"cause": "", "why": document["verdict"], "forbidden": forbidden, "do": "", "found": []}
        first = document["findings"][0]
        found = [each["id"] for each in document["findings"]]
        # what works most of the time comes last, and leads where nothing warns
        if document["verdict"].partition("; ")[0].endswith(("computing", "computing.")):
            first = next(each for each in document["findings"] if each["id"] == "compute_bound")
        self.run(*filled(first["runs"][0]["argv"], self.path))
        saved = None
        change = next((run for run in first["runs"] if run["verb"] == "what-if"), None)
        if change and "savings" not in forbidden:
            rows = self.run(*filled(change["argv"], self.path))["rows"]
            saved = 100 * (1 - rows[0]["after_ns"] / rows[0]["before_ns"])
        return {
            "cause": first["id"], "why": first["claim"], "forbidden": forbidden, "do": first["do"],
            "found": found, "saved": saved, "predicted": first["saving"].get("high", {}).get("value"),
        }  # fmt: skip


JOBS = (
    "host late", "host ahead", "graphs, host late between them", "loader", "loader in the loop",
    "loader in one function", "loader behind compute", "blocked", "slow launches", "small kernels",
    "held back by an event", "allocation in every step", "an optimizer on the host", "capture", "filtered",
    "host without records", "copies", "most device work lost", "a slow step", "zero_grad",
    "optimizer in many launches", "allocator calls", "layout", "exchange under an unknown name",
)  # fmt: skip


def test_a_reader_of_the_skill_finds_what_was_planted(tmp_path: Path) -> None:
    right, wrong = [], []
    for at, name in enumerate(JOBS):
        case = CASES[name]
        folder = tmp_path / str(at)
        folder.mkdir()
        case.program().open(folder)
        reader = Reader(folder)
        with kept_open(1):
            told = reader.report()
        assert len(reader.commands) <= 5 and reader.tokens <= 10_000, (name, reader)
        cause = "" if case.first in ("graph_capture", "filtered") else case.first
        (right if told["cause"] == cause else wrong).append((name, told["cause"], case.first))
        assert set(told["found"]) <= {case.first, *case.also}, (name, told["found"])  # no wrong advice
        for text in case.never:
            assert text not in f"{told['why']} {told['do']}", (name, text)
        if told.get("saved") is not None and told["predicted"] is not None:
            assert told["saved"] <= told["predicted"] + 5, name
    assert len(JOBS) >= 20 and len(right) >= 0.9 * len(JOBS), wrong


def test_a_reader_of_the_skill_finds_a_late_rank() -> None:
    reader = Reader(DDP)
    told = reader.report()
    assert told["cause"] == "straggler" and "rank 2" in told["why"]
    assert len(reader.commands) <= 5 and reader.tokens <= 10_000
