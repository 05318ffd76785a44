"""Docstrings as Markdown.

They are written to be read in a terminal: `*` and `<` stand for themselves, and a list needs no empty line.
"""

import inspect
import re
from dataclasses import dataclass, field
from typing import Any

HEADINGS = ("Args", "Returns", "Raises")
CODE = re.compile(r"(`+[^`]*`+)")
LIST_ITEM = re.compile(r" *(?:- |\d+\. )")
ENTRY = re.compile(r"(\S.*?): (.*)")


@dataclass
class Sections:
    """A docstring in parts, each in Markdown.

    Attributes:
        summary: the first paragraph.
        text: the other paragraphs, those after the sections included.
        arguments: (name, meaning) of each.
        returns: what comes back.
        errors: (class, when) of each.
    """

    summary: str = ""
    text: str = ""
    arguments: list[tuple[str, str]] = field(default_factory=list)
    returns: str = ""
    errors: list[tuple[str, str]] = field(default_factory=list)


def sections(described: Any) -> Sections:
    """The docstring of a function, or of whatever has one, in parts."""
    bodies: dict[str, list[str]] = {"": []}
    heading = ""
    for line in (inspect.getdoc(described) or "").splitlines():
        if line.endswith(":") and line[:-1] in HEADINGS:
            heading = line[:-1]
            bodies[heading] = []
            continue
        if line and not line.startswith(" "):
            heading = ""  # text after the sections
        bodies[heading].append(line)
    summary, _, rest = "\n".join(bodies[""]).strip().partition("\n\n")
    return Sections(
        summary=prose(summary),
        text=prose(rest),
        arguments=_entries(bodies.get("Args", [])),
        returns=prose("\n".join(bodies.get("Returns", []))),
        errors=_entries(bodies.get("Raises", [])),
    )


def prose(text: str) -> str:
    """Text of a docstring as Markdown with the same meaning."""
    lines: list[str] = []
    inner = 0  # where the text of the current list item begins
    for line in inspect.cleandoc(text).splitlines():
        item = LIST_ITEM.match(line)
        indent = len(line) - len(line.lstrip())
        if line and not item and indent < inner:
            lines.append("")  # or Markdown takes it for a part of the item
        inner = len(item.group()) if item else min(inner, indent) if line else inner
        lines.append(_escaped(line))
    return "\n".join(lines)


def cell(text: str) -> str:
    """Markdown in a cell of a table."""
    return " ".join(text.replace("|", "\\|").split())


def _entries(lines: list[str]) -> list[tuple[str, str]]:
    entries: list[tuple[str, str]] = []
    for line in inspect.cleandoc("\n".join(lines)).splitlines():
        if (entry := ENTRY.match(line)) is not None:
            entries.append((entry[1], entry[2]))
        elif line:
            entries[-1] = (entries[-1][0], f"{entries[-1][1]} {line.strip()}")
    return [(name, prose(text)) for name, text in entries]


def _escaped(line: str) -> str:
    parts = CODE.split(line)
    parts[::2] = [re.sub(r"([*<$])", r"\\\1", part) for part in parts[::2]]
    return "".join(parts)
