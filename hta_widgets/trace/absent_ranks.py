"""The ranks of a job of which nothing was opened, though the files of others name them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from hta_widgets.formatting import counted, ranks_in_words
from hta_widgets.trace.one_job import world_size

_NAMED = 4  # more than these are counted


@dataclass(frozen=True)
class Absent:
    """What a trace of several ranks lacks of its job."""

    count: int = 0  # how many ranks; 0 if none is known to be missing
    ranks: tuple[int, ...] = ()  # their numbers; empty where the files do not say which rank is which
    of: int = 0  # how many ranks the job has; 0 if none is known to be missing

    @property
    def text(self) -> str:
        """`rank 5 of 8`, `ranks 1, 2 and 5 of 8`, `12 of 64 ranks`; "" if none is missing."""
        if not self.count:
            return ""
        if not 0 < len(self.ranks) <= _NAMED:
            return f"{self.count:,} of {counted(self.of, 'rank')}"
        return f"{ranks_in_words(self.ranks)} of {self.of:,}"


def absent_ranks(metadata: Mapping[int, Mapping[str, Any]], numbered: bool) -> Absent:
    """The ranks that a job has and a trace of several of its ranks has not.

    The job has as many ranks as its files state (``distributedInfo``); where none states it, those that the
    process groups hold which they list. Of a single rank nothing is compared with others, so that none is
    missing. Nothing is said where files state different jobs, or a rank that the stated job cannot have.

    Args:
        metadata: of each rank that was opened, the top level of its file.
        numbered: whether the files, or the caller, say which rank is which.
    """
    stated = {world_size(dict(each)) for each in metadata.values()} - {0}
    if len(metadata) < 2 or len(stated) > 1:
        return Absent()
    every = set(range(*stated)) if stated else _members(metadata.values())
    missing = len(every) - len(metadata)
    if missing <= 0 or (numbered and not every.issuperset(metadata)):
        return Absent()
    return Absent(missing, tuple(sorted(every.difference(metadata))) if numbered else (), len(every))


def _members(metadata: Iterable[Mapping[str, Any]]) -> set[int]:
    """All ranks of the process groups that files list."""
    members: set[int] = set()
    for each in metadata:
        info = each.get("distributedInfo")
        groups = info.get("pg_config") if isinstance(info, dict) else None
        for group in groups if isinstance(groups, list) else ():
            ranks = group.get("ranks") if isinstance(group, dict) else None
            if isinstance(ranks, list):
                members.update(rank for rank in ranks if type(rank) is int and rank >= 0)
    return members
