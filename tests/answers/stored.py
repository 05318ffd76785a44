"""Digests of answers in text files: a section for each question, a line for each recording."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from tests.answers.columns import Column

# whether columns are of sentences -> where their digests are kept
KEPT = {False: Path(__file__).with_name("numbers.txt"), True: Path(__file__).with_name("words.txt")}
ABSENT = "."

Answers = Mapping[str, Mapping[str, Column]]
"""By question, and column."""
Stored = dict[str, dict[str, dict[str, str]]]
"""Digests by question, recording and column."""


def changed(recording: str, area: str, answers: Answers) -> list[str]:
    """What differs from what is kept, in lines."""
    was: dict[str, dict[str, str]] = {}
    for path in KEPT.values():
        for question, columns in _of_recording(path, recording).items():
            if question.startswith(f"{area}/"):
                was.setdefault(question, {}).update(columns)
    lines = []
    for question, columns in answers.items():
        before = was.pop(f"{area}/{question}", {})
        name = f"{area}/{question} of {recording}"
        for column, answer in columns.items():
            if column not in before:
                lines.append(f"{name}: {column} is new")
            elif before[column] != answer.digest:
                some = ", ".join(answer.values[:5])[:200]
                count = f"{len(answer.values)} values ({answer.dtype})"
                lines.append(f"{name}: {column} is another: {count}, {some}")
        lines += [f"{name}: {column} is gone" for column in before if column not in columns]
    return lines + [f"{question} of {recording}: no longer asked" for question in was]


@cache
def _of_recording(path: Path, recording: str) -> dict[str, dict[str, str]]:
    return {question: lines[recording] for question, lines in read(path).items() if recording in lines}


def read(path: Path) -> Stored:
    """What is kept in a file."""
    stored: Stored = {}
    columns: list[str] = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        if line.startswith("["):
            question, _, listed = line.removeprefix("[").partition("] ")
            columns = listed.split("  ")
            stored[question] = {}
        elif line:
            recording, *values = line.split()
            named = zip(columns, values, strict=True)
            stored[question][recording] = {column: value for column, value in named if value != ABSENT}
    return stored


def write(path: Path, stored: Stored) -> None:
    """Keep these in a file."""
    lines: list[str] = []
    for question, recordings in sorted(stored.items()):
        columns = sorted({column for line in recordings.values() for column in line})
        if columns:
            lines.append(f"[{question}] {'  '.join(columns)}")
            for recording, line in sorted(recordings.items()):
                lines.append(" ".join((recording, *(line.get(column, ABSENT) for column in columns))))
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")


def digests(area: str, answers: Answers, prose: bool) -> dict[str, dict[str, str]]:
    """By question and column: of the columns of sentences, or of all others."""
    return {
        f"{area}/{question}": {
            column: answer.digest for column, answer in columns.items() if answer.is_prose == prose
        }
        for question, columns in answers.items()
    }
