"""An agent that knows the skill and the commands alone: it does what the steps say, to the letter."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.evidence.command import ask, filled

__all__ = ["Agent", "steps_of"]

_CODE = re.compile(r"`([^`]+)`")
_STOPS = {
    "With level none": lambda agent: agent.document["trust"]["level"] == "none",
    "If there is none": lambda agent: not agent.document["findings"],
}


def steps_of(skill: str) -> list[str]:
    """The numbered steps, each on one line."""
    return [" ".join(step.split()) for step in re.findall(r"(?ms)^\d\. (.*?)(?=^\d\. |^$)", skill)]


@dataclass
class Agent:
    """Reads the skill, runs commands, and reports.

    Attributes:
        skill: the text.
        path: the recording.
        commands: what was run. tokens: the size of the skill's answers.
        document: the answer of the first command. answers: of each verb, the last one.
        stopped: by the step that says so.
    """

    skill: str
    path: Path
    commands: list[list[str]] = field(default_factory=list)
    tokens: int = 0
    document: dict[str, Any] = field(default_factory=dict)
    answers: dict[str, Any] = field(default_factory=dict)
    stopped: bool = False

    def follow(self) -> None:
        """Go through the steps, until one says to stop."""
        for step in steps_of(self.skill):
            for sentence in re.split(r"(?<=[.:]) (?=[A-Z`])", step):
                self._do(sentence)
                if self.stopped:
                    return

    def _do(self, sentence: str) -> None:
        codes = _CODE.findall(sentence)
        for code in codes:
            words = shlex.split(code) if code.startswith("hta-widgets ") else []
            if words and not {"AFTER", "ID"} & set(words):  # it has no recording of a change
                self._run(words)
            elif code.endswith(".argv"):
                self._run(self._at(code))
        if verb := re.search(r"the one of `([^`]+)` whose verb is ([\w-]+\w)", sentence):
            for run in self._at(verb[1]):
                if run["verb"] == verb[2]:
                    self._run(run["argv"])
        if "stop" in sentence:
            told = re.search(r'`([^`]+)` begins with "([^"]+)"', sentence)
            self.stopped = any(stops(self) for words, stops in _STOPS.items() if words in sentence) or bool(
                told and str(self._at(told[1])).startswith(told[2])
            )

    def _at(self, path: str) -> Any:
        """The part of the document that `findings[0].runs` names; "" where there is none."""
        found: Any = self.document
        for name, place in re.findall(r"(\w+)|\[(\d+)\]", path):
            if isinstance(found, dict):
                found = found.get(name, "")
            elif found:
                found = found[int(place)]
        return found

    def _run(self, argv: list[str]) -> None:
        answer = ask(*filled(argv, self.path), "-q")
        assert answer.code == 0, (argv, answer.err)
        self.commands.append(argv)
        self.tokens += answer.tokens
        self.answers[argv[1]] = answer.json
        self.document = self.document or answer.json
