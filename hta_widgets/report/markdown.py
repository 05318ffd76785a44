"""The findings of a recording as Markdown, for an issue, a chat or a pull request."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from shlex import quote
from typing import TYPE_CHECKING, Final

import pandas as pd

from hta_widgets.analysis.findings.headline import title as heading
from hta_widgets.analysis.findings.sections import CHECKED, OPEN, SAVES, VERDICT
from hta_widgets.analysis.registry import ANALYSES
from hta_widgets.analysis.wholes import whole_of
from hta_widgets.formatting import duration, percent
from hta_widgets.short_paths import shorten
from hta_widgets.trace.scope import Scope
from hta_widgets.version import __version__
from hta_widgets.visible import visible

if TYPE_CHECKING:
    from hta_widgets.trace.model import Trace

__all__ = ["to_markdown"]

# What Markdown, or HTML in it, would read as markup; names of kernels are full of it.
_MARKUP: Final = re.compile(r"([\\`*_{}\[\]<>|#~$&@])")
# At the beginning of a line.
_LINE_MARKUP: Final = re.compile(r"^(\s*)([-+=]|\d+[.)])")
_HOW: Final = {"replay": "simulated", "bound": "upper bound", "analytic": "upper bound"}


def to_markdown(
    trace: Trace,
    scope: Scope | None = None,
    *,
    title: str = "",
    facts: Sequence[str] = (),
    cut: Callable[[str], str] = shorten,
) -> str:
    """What `overview` finds, as Markdown: the headline, a table, and what to do about each finding.

    Names from the trace are text in it, never markup.

    Args:
        trace: the job.
        scope: what to judge, as in `overview`; default everything.
        title: its first line.
        facts: about the job, for the line below.
        cut: what is done to every text that may hold a path, see `short_paths`.
    """
    scope = scope or Scope()

    def plain(text: str) -> str:
        return _plain(cut(text))

    frame = ANALYSES["overview"].answer(trace, scope)
    rows = [row for _, row in frame.iterrows()]
    found = [row for row in rows if row["severity"] not in (CHECKED, OPEN, VERDICT)]
    lines = [f"# {plain(title)}", ""] if title else []
    about = [*facts, whole_of(trace, "overview", scope)]
    if any(about):
        lines += [" · ".join(plain(fact) for fact in about if fact), ""]
    lines += [f"**{plain(ANALYSES['overview'].sentence(frame))}**", ""]
    if found:
        lines += ["| | Finding | Share of the time | Saving | |", "|---:|---|---:|---:|---|"]
        lines += [f"| {' | '.join(cells)} |" for cells in _table(found, plain)]
        lines.append("")
    for number, row in enumerate(found, 1):
        lines += _finding(number, row, plain)
        if (edits := row["edits"]) and cut(edits) == edits:
            lines[-1:] = [f"- Try it: {_code(f'hta-widgets what-if TRACE --edit {quote(edits)}')}", ""]
    for row in rows:
        if row["severity"] in (CHECKED, VERDICT):
            lines += [plain(row["text"]), ""]
    missing = [row for row in rows if row["severity"] == OPEN]
    if missing:
        lines += ["## Needs more data", ""]
        lines += [f"- {plain(' '.join(filter(None, (row['text'], row['suggestion']))))}" for row in missing]
        lines.append("")
    lines.append(f"*hta_widgets {_plain(__version__)}*")
    return "\n".join(lines) + "\n"


def _table(found: Sequence[pd.Series], plain: Callable[[str], str]) -> Iterator[list[str]]:
    for number, row in enumerate(found, 1):
        saves = row["section"] == SAVES
        part = " (part of the one above)" if row["part_of"] else ""
        yield [
            str(number),
            f"{plain(_named(row))}{part}",
            percent(row["share_pct"]) if row["share_pct"] else "",
            f"\N{MINUS SIGN}{percent(row['saving_pct'])}" if saves else "",
            _HOW.get(row["method"], "") if saves else "",
        ]


def _finding(number: int, row: pd.Series, plain: Callable[[str], str]) -> Iterator[str]:
    yield f"## {number}. {plain(_named(row))}"
    yield ""
    yield plain(row["text"])
    yield ""
    for label, text in (
        ("What to do", row["suggestion"]),
        ("Saving", row["saving"]),
        ("Risk", row["risk"]),
        ("Needs", row["needs"]),
        ("Wrong if", row["wrong_if"]),
        ("Where", _where(row)),
    ):
        if text:
            yield f"- {label}: {plain(text)}"
    yield ""


def _named(row: pd.Series) -> str:
    rank = row["rank"]
    return heading(row) if pd.isna(rank) else f"{heading(row)}: rank {rank}"


def _where(row: pd.Series) -> str:
    """`rank 0, iteration 3, 12.0 ms from 4.50 ms`, "" where it lies nowhere in particular."""
    places = [
        f"{name} {row[column]}"
        for name, column in (("rank", "event_rank"), ("iteration", "iteration"))
        if pd.notna(row[column])
    ]
    if pd.notna(row["start_ns"]):
        start, end = int(row["start_ns"]), int(row["end_ns"])
        places.append(f"{duration(end - start)} from {duration(start)} on")
    return ", ".join(places)


def _code(text: str) -> str:
    """A text in a span of code that it cannot end."""
    longest = max((len(ticks) for ticks in re.findall("`+", text)), default=0)
    fence = "`" * (longest + 1)
    return f"{fence}{' ' * (longest > 0)}{visible(' '.join(text.split()))}{' ' * (longest > 0)}{fence}"


def _plain(text: str) -> str:
    """A text as Markdown shows it: one line without markup, hidden characters made visible."""
    line = _MARKUP.sub(r"\\\1", visible(" ".join(text.split())))
    return _LINE_MARKUP.sub(lambda match: f"{match[1]}{match[2][:-1]}\\{match[2][-1]}", line)
