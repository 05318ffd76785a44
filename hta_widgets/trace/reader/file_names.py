"""What the name of a trace file says: its rank, its place in a grid of ranks, and its order among others."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

# Only short numbers, since a process id or a time stamp is not a rank. `rank[3]`: Primus; `worker3`: PyTorch.
_RANKS = (
    re.compile(r"rank[-_ .=\[]?(\d{1,6})(?!\d)", re.IGNORECASE),
    re.compile(r"worker[-_ .=]?(\d{1,6})(?!\d)", re.IGNORECASE),
)
# `dp0_pp0_tp1` of vLLM, `-TP-1-DP-0` of SGLang.
_COORDINATE = re.compile(r"(?:^|[-_.])(dp|pp|dcp|pcp|cp|tp|ep)[-_]?(\d{1,4})(?!\d)", re.IGNORECASE)
# From the outermost to the innermost, as the frameworks number ranks. Ranks of `cp` and `ep` divide those of
# `dp` and `tp` anew: they tell files apart only where these do not.
_GRID = ("dp", "pp", "tp", "cp", "pcp", "dcp", "ep")
_ENDING = r"(?:\.\d{10,19})?(?:\.pt)?(?:\.trace)?\.(?:json|pftrace)"
_NUMBER = re.compile(r"(?:^|[-_.])(\d{1,6})" + _ENDING, re.IGNORECASE)
# torch.profiler's handler writes worker.nanoseconds.pt.trace.json, SGLang seconds first; others a date.
_TIMES = (
    re.compile(r"(?<![\d.])\d{10,19}(?:\.\d{1,9})?(?!\d)"),
    re.compile(r"\b[A-Z][a-z]{2}_\d\d_\d\d_\d\d_\d\d(?=\.)"),
)


@dataclass(frozen=True)
class TraceFile:
    """A file to read. `rank` is set only if the caller gave it, `beside` if a file beside it states it."""

    source: Any  # what the scanner reads: Path, RemoteFile, fsspec OpenFile or binary file object
    name: str
    folder: str = ""
    rank: int | None = None
    beside: int | None = None


def name_of(source: Any) -> str:
    """The last part of a path or URL; no name for anything else."""
    if isinstance(source, str) and "://" in source:
        return last_part(source.rstrip("/"))
    return Path(source).resolve().name if isinstance(source, str | PathLike) else ""


def last_part(name: str) -> str:
    """A file's name without its folder."""
    return name.rsplit("/", 1)[-1]


def natural(name: str) -> list[tuple[int, int, str]]:
    """Sort key under which rank2 comes before rank10."""
    return [
        (0, int(part), "") if part.isdecimal() else (1, 0, part) for part in re.split(r"(\d+)", name) if part
    ]


def rank_in_name(entry: TraceFile) -> int | None:
    """The rank that a file's name states, else that of its folder (``rank_3/trace.json``)."""
    if entry.beside is not None:
        return entry.beside
    for text in (last_part(entry.name), entry.folder):
        for pattern in _RANKS:
            if match := pattern.search(text):
                return int(match[1])
    return None


def number_in_name(entry: TraceFile) -> int | None:
    """The number with which a file's name ends: a rank, a process id, the number of an experiment ..."""
    match = _NUMBER.search(last_part(entry.name))
    return int(match[1]) if match else None


def coordinates(entry: TraceFile) -> Mapping[str, int]:
    """The place in a grid of ranks that a file's name states, such as {"dp": 0, "tp": 1}."""
    found = _COORDINATE.findall(last_part(entry.name))
    return {axis.lower(): int(number) for axis, number in found}


def grid_ranks(entries: Sequence[TraceFile]) -> list[int] | None:
    """The rank of each file by its place in the grid; None where the names state no place, or one twice."""
    places = [coordinates(entry) for entry in entries]
    if not places or not all(places) or len({frozenset(place) for place in places}) > 1:
        return None
    axes = [axis for axis in _GRID if axis in places[0]]
    # SGLang's TP counts through its DP groups: PP and TP alone number the ranks where they are enough
    for chosen in ([axis for axis in axes if axis in ("pp", "tp")], axes):
        if len({tuple(place[axis] for axis in chosen) for place in places}) == len(places):
            ranks = [0] * len(places)
            for axis in chosen:
                size = max(place[axis] for place in places) + 1
                ranks = [rank * size + place[axis] for rank, place in zip(ranks, places, strict=True)]
            return ranks
    return None


def without_rank(name: str) -> str | None:
    """A file's name with `*` for what differs between ranks of one job; None if it states no rank."""
    for pattern in _RANKS:
        if match := pattern.search(name):
            name = f"{name[: match.start(1)]}*{name[match.end(1) :]}"
            break
    else:
        if not _COORDINATE.search(name):
            return None
    return without_time(_COORDINATE.sub(lambda match: match[0][: match.start(2) - match.start()] + "*", name))


def without_time(name: str) -> str:
    """A file's name with `#` for the time at which it was written."""
    for pattern in _TIMES:
        name = pattern.sub("#", name)
    return name
