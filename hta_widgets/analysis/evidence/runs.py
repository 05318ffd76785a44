"""The commands that a finding suggests, and the largest size of their answers.

They are lists of arguments, not text for a shell, and hold no name from the recording. `TRACE` stands for the
path or paths that were given: a document that is sent to others names no folder.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

TRACE: Final = "TRACE"

_ANALYZE, _WHAT_IF, _EVENT = 800, 500, 600  # tokens


@dataclass(frozen=True)
class Options:
    """What commands repeat, so that they are about the same recording, and the same part of it."""

    reading: tuple[str, ...] = ()
    scope: tuple[str, ...] = ()


def runs_of(
    row: Mapping[str, Any],
    events: Sequence[Mapping[str, Any]],
    options: Options,
    answers: bool,
    savings: bool,
) -> list[Any]:
    """What to run to see a finding, to try its change, and to look at its longest event.

    Args:
        events: the evidence of the finding.
        options: the arguments that select the part of the job.
        answers: whether the analysis behind it has its data.
        savings: whether its change may be replayed.
    """
    part = [*options.reading, *options.scope]
    runs = []
    if answers:
        runs.append(
            _run("analyze", [str(row["kind"])], [*part, "--format", "json"], _ANALYZE, "the rows behind it")
        )
    if row["edits"] and savings:
        change = ["--finding", str(row["topic"])]
        why = "how long the steps take with the change, simulated"
        runs.append(_run("what-if", [], [*change, *part, "--format", "json"], _WHAT_IF, why))
    if events:
        runs.append(
            _run("event", [], [*options.reading, "--json"], _EVENT, "the longest event", [events[0]["ref"]])
        )
    health = [*options.reading, "--json", "--fail-on", "never"]
    return runs or [_run("health", [], health, _ANALYZE, "what is doubtful")]


def _run(
    verb: str, before: list[str], options: list[str], tokens: int, answers: str, after: Sequence[str] = ()
) -> dict[str, Any]:
    argv = ["hta-widgets", verb, *before, TRACE, *after, *options, "--budget", str(tokens)]
    return {"verb": verb, "argv": argv, "about_tokens": tokens, "answers": answers}
