"""The process groups of each rank: members, description, and what was recorded of their traffic."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import reduce

import numpy as np
import pandas as pd

from hta_widgets.analysis.communication.collectives import belonging, recorded
from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.strategy.group_evidence import distributed_info
from hta_widgets.arrays import Int64
from hta_widgets.trace.model import Trace
from hta_widgets.trace.ordering import distinct, first_of_each, paired
from hta_widgets.trace.scope import Scope

_Key = tuple[str, tuple[int, ...], int]
"""What a group is known by: name, members, size."""

_TEXTS = ("process_group", "group_ranks", "group_description")


@dataclass(frozen=True)
class ProcessGroup:
    """A group of several ranks."""

    # as recorded; "" where not
    name: str
    description: str
    size: int  # its number of ranks
    members: tuple[int, ...]  # their numbers, in the group's order; empty where only some of them are known
    ranks: tuple[int, ...]  # those of them that were recorded
    # the recorded communication of these ranks in the group, by rank and start, with the columns of
    # `recorded`
    traffic: pd.DataFrame

    @property
    def operations(self) -> set[str]:
        """What it carries."""
        return set(self.traffic["collective"].unique())

    @property
    def carried(self) -> dict[int, str]:
        """How many of each operation every rank launched: `8 allgather, 8 reduce_scatter`."""
        found: dict[int, list[str]] = {}
        counts = self.traffic.groupby(["rank", "collective"], sort=True).size().reset_index(name="count")
        for rank, operation, count in counts.itertuples(index=False, name=None):
            found.setdefault(rank, []).append(f"{count:,} {operation}")
        return {rank: ", ".join(texts) for rank, texts in found.items()}


@memoize_per_rank(last=2)
def process_groups(trace: Trace, scope: Scope) -> tuple[ProcessGroup, ...]:
    """The groups that ranks of the scope belong to: those that files list, and those of recorded exchanges.

    Groups are the same if name and members are. Sorted by number of ranks, members and name.
    """
    traffic = _traffic(trace, scope)
    found: dict[_Key, tuple[str, set[int]]] = {}
    listed: dict[tuple[int, str], _Key] = {}
    for rank in trace.ranks_of(scope):
        for name, description, members in listed_groups(trace, rank):
            key = name, members, len(members)
            listed[rank, name] = key
            found.setdefault(key, (description, set()))[1].add(rank)
    by = ["rank", "process_group", "group_ranks", "group_size", "group_description"]
    several = traffic[traffic["group_size"].fillna(0) > 1].fillna(dict.fromkeys(_TEXTS, ""))
    values = (pd.factorize(several[column], sort=True)[0] for column in by)
    _, use = distinct(reduce(paired, values))
    first = first_of_each(use)
    keys = []
    for rank, name, text, size, description in several[by].iloc[first].itertuples(index=False, name=None):
        members = splits_of(text)
        key = listed.get((rank, name), (name, members if len(members) == size else (), int(size)))
        found.setdefault(key, (description, set()))[1].add(rank)
        keys.append(key)
    used = _rows_of(keys, use)
    groups = [
        ProcessGroup(
            name, description, size, members, tuple(sorted(those)),
            several.iloc[used[key]] if (key := (name, members, size)) in used else traffic.iloc[:0],
        )
        for (name, members, size), (description, those) in found.items()
    ]  # fmt: skip
    return tuple(sorted(groups, key=lambda group: (-group.size, group.members, group.name)))


def _rows_of(keys: list[_Key], use: Int64) -> dict[_Key, Int64]:
    """The rows of each group, use after use, from the key of each use and the use of each row."""
    number = {key: at for at, key in enumerate(dict.fromkeys(keys))}
    of_use = np.array([number[key] for key in keys], np.int64)[use]
    ends = np.cumsum(np.bincount(of_use, minlength=len(number)))
    return dict(zip(number, np.split(np.lexsort([use, of_use]), ends[:-1]), strict=False))


def splits_of(text: str) -> tuple[int, ...]:
    """The numbers of a list as PyTorch writes it; empty if it is none, or was cut (after 30 entries)."""
    return tuple(map(int, re.findall(r"\d+", text))) if re.fullmatch(r'"?\[[\d, ]*\]"?', text) else ()


def _traffic(trace: Trace, scope: Scope) -> pd.DataFrame:
    """The communication that belongs to the scope, with what was recorded of it."""
    rows = recorded(trace)
    return rows[belonging(trace, scope)] if scope != Scope() and len(rows) else rows


def listed_groups(trace: Trace, rank: int) -> list[tuple[str, str, tuple[int, ...]]]:
    """Name, description and members of the groups of several ranks that a file lists, and that hold it."""
    groups = distributed_info(trace, rank, "pg_config")
    found = []
    for group in groups if isinstance(groups, list) else ():
        members = group.get("ranks") if isinstance(group, dict) else None
        if not isinstance(members, list) or not all(isinstance(each, int | np.integer) for each in members):
            continue
        if len(members) > 1 and rank in members:
            found.append((str(group.get("pg_name", "")), str(group.get("pg_desc", "")), tuple(members)))
    return found
