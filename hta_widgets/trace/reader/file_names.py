"""What the name of a trace file says: its rank, and its place among others."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

__all__ = ["TraceFile", "last_part", "natural", "rank_in_name", "without_rank"]

# From the most to the least explicit; only short numbers, since a process id or a time stamp is not a rank.
NAME_PATTERNS = (
    re.compile(r"rank[-_ .=]?(\d{1,6})(?!\d)", re.IGNORECASE),
    re.compile(r"worker[-_ .=]?(\d{1,6})(?!\d)", re.IGNORECASE),
    re.compile(r"(?:^|[-_.])(?:tp|dp|pp|ep)[-_]?(\d{1,4})(?!\d)(?!.*(?:tp|dp|pp|ep)[-_]?\d)", re.IGNORECASE),
    re.compile(r"(?:^|[-_.])(\d{1,4})(?:\.pt)?(?:\.trace)?\.json", re.IGNORECASE),
)


@dataclass(frozen=True)
class TraceFile:
    """A file to read. `rank` is set only if the caller gave it."""

    source: Any  # what the scanner reads: Path, RemoteFile, fsspec OpenFile or binary file object
    name: str
    folder: str = ""
    rank: int | None = None


def last_part(name: str) -> str:
    """A file's name without its folder."""
    return name.rsplit("/", 1)[-1]


def natural(name: str) -> list[tuple[int, int, str]]:
    """Sort key under which rank2 comes before rank10."""
    return [
        (0, int(part), "") if part.isdecimal() else (1, 0, part) for part in re.split(r"(\d+)", name) if part
    ]


def rank_in_name(entry: TraceFile) -> int | None:
    """The rank in a file's name, else in its folder's name (``rank_3/trace.json``)."""
    *explicit, number = NAME_PATTERNS
    name = last_part(entry.name)
    places = [(pattern, name) for pattern in explicit]
    for pattern, text in (*places, (explicit[0], entry.folder), (number, name)):
        if match := pattern.search(text):
            return int(match[1])
    return None


def without_rank(name: str) -> str | None:
    """A file's name with `*` for the number that it calls its rank; None if it has none."""
    for pattern in NAME_PATTERNS[:-1]:
        if match := pattern.search(name):
            return f"{name[: match.start(1)]}*{name[match.end(1) :]}"
    return None
