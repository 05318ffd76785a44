"""The skill: short, and its commands run; `tests/evidence/test_blind_trial.py` follows it."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from hta_widgets import examples
from hta_widgets.cli.skill import SKILL
from tests.cli.conftest import Run
from tests.evidence.command import ask

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
    first = examples.path("continuous_batching") if "serving_" in command or "roles" in command else first
    known = {"TRACE": str(first), "AFTER": str(after), "ID": finding, "RANK:ID": "0:1"}
    words = [known.get(word, word) for word in shlex.split(command)[1:]]
    answer = ask(*words)
    assert answer.code == 0, answer.err
    assert answer.tokens <= 4000
