"""Which rank of the job each file is, and on which evidence.

From the strongest to the weakest: the caller's word, ``distributedInfo``, the ``Rank`` of collectives, the
name of the file, the order of the names. Where servers number the ranks of each replica anew, as vLLM does
with data parallelism, the ranks of a job follow replica by replica. A number that no evidence confirms (a
process id, the number of an experiment) is no rank.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hta_widgets.trace.reader.file_names import (
    TraceFile,
    coordinates,
    grid_ranks,
    number_in_name,
    rank_in_name,
)
from hta_widgets.trace.reader.stated import whole_number


@dataclass(frozen=True)
class Stated:
    """What a file says of its rank."""

    metadata: Mapping[str, Any]  # the top-level keys of the file
    ranks: Sequence[int] = ()  # the ranks in the job that its collectives state
    group: Sequence[int] = ()  # the ranks of its largest process group

    @property
    def world(self) -> int:
        """How many ranks its job has; 0 if that is unknown."""
        info = self.metadata.get("distributedInfo")
        size = whole_number(info.get("world_size")) if isinstance(info, dict) else None
        return size or (max(self.group, default=-1) + 1)


@dataclass(frozen=True)
class Assigned:
    """The rank of a file."""

    rank: int  # its number, unique in the trace
    source: str  # "caller", "file", "collectives", "name" or "order"
    label: str  # how to show it, which differs for duplicates
    duplicate: bool = False  # another file states the same rank
    shift: int = 0  # what was added to the ranks that the file states: those of the replicas before it
    world: int = 0  # how many ranks all replicas have together; 0 where there are none
    reason: str = ""  # the evidence as a sentence
    file: str = ""  # its name below the folder that was opened

    @property
    def key(self) -> str:
        """A text that changes with what follows from this."""
        return f"{self.rank} {self.label} {self.shift} {self.world}"


Claim = tuple[int | None, str, str]
"""A rank, where it comes from, and that in words."""


def stated_rank(stated: Stated) -> tuple[int | None, str]:
    """The rank that a file states, and where: ``distributedInfo``, else all of its collectives."""
    info = stated.metadata.get("distributedInfo")
    rank = whole_number(info.get("rank")) if isinstance(info, dict) else None
    if rank is not None:
        return rank, "file"
    return (stated.ranks[0], "collectives") if len(stated.ranks) == 1 else (None, "")


def assign_ranks(files: Sequence[TraceFile], stated: Sequence[Stated]) -> list[Assigned]:
    """A unique rank for each file, in the order given.

    A file without a rank gets the lowest free number; a second file of a rank, the next above the highest.
    """
    claims = _claims(files, stated)
    assigned = _replicas(files, stated, claims) or _one_by_one(files, claims)
    return [replace(each, file=file.name) for each, file in zip(assigned, files, strict=True)]


def _one_by_one(files: Sequence[TraceFile], claims: Sequence[Claim]) -> list[Assigned]:
    """The ranks of files that count through the job."""
    taken: dict[int, int] = {}
    for position, (rank, _, _) in enumerate(claims):
        if rank is not None:
            taken.setdefault(rank, position)
    assigned: dict[int, Assigned] = {}
    for rank, position in taken.items():
        _, source, reason = claims[position]
        assigned[position] = Assigned(rank, source, str(rank), reason=reason)
    free = (number for number in range(len(files) + len(taken) + 1) if number not in taken)
    for position, (rank, source, reason) in enumerate(claims):
        if rank is None:
            number = next(free)
            assigned[position] = Assigned(number, source, str(number), reason=reason)
    highest = max((assignment.rank for assignment in assigned.values()), default=-1)
    for position, (rank, source, reason) in enumerate(claims):
        if position not in assigned:
            highest += 1
            label = f"{rank} ({files[position].name})"
            reason = f"{reason}, as another file does: shown as rank {highest}"
            assigned[position] = Assigned(highest, source, label, True, reason=reason)
    return [assigned[position] for position in range(len(files))]


def _claims(files: Sequence[TraceFile], stated: Sequence[Stated]) -> list[Claim]:
    claims: list[Claim] = []
    world = max((each.world for each in stated), default=0)
    for file, each in zip(files, stated, strict=True):
        rank, source = stated_rank(each)
        if file.rank is not None:
            claims.append((file.rank, "caller", "named by the caller"))
        elif source == "file":
            claims.append((rank, source, f"distributedInfo states rank {rank}"))
        elif source:
            claims.append((rank, source, f"its collectives state rank {rank}"))
        elif file.beside is not None:
            claims.append((file.beside, "name", f"a file beside it states rank {file.beside}"))
        elif (rank := rank_in_name(file)) is not None:
            claims.append((rank, "name", f"no events state its rank, its name rank {rank}"))
        else:
            claims.append((None, "order", _order(each)))
    silent = [position for position, (rank, _, _) in enumerate(claims) if rank is None]
    taken = {rank for rank, _, _ in claims if rank is not None}
    unnamed = [files[position] for position in silent]
    for numbers, what in ((grid_ranks(unnamed), "place"), (_numbers(unnamed, world), "number")):
        if numbers is not None and not taken.intersection(numbers):
            for position, rank in zip(silent, numbers, strict=True):
                claims[position] = (
                    rank,
                    "name",
                    f"no events state its rank, the {what} in its name is that of rank {rank}",
                )
            break
    return claims


def _order(stated: Stated) -> str:
    known = f"; its collectives are of ranks {_listed(stated.group)}" if len(stated.group) > 1 else ""
    return f"nothing states its rank: numbered in the order of the names{known}"


def _listed(ranks: Sequence[int], most: int = 8) -> str:
    return ", ".join(map(str, ranks[:most])) + (", ..." if len(ranks) > most else "")


def _numbers(files: Sequence[TraceFile], world: int) -> list[int] | None:
    """The numbers in the names where they may be ranks: of a job of a known size, or nearly all from 0 on."""
    numbers = [number_in_name(file) for file in files]
    found = [number for number in numbers if number is not None]
    if not found or len(set(found)) < len(numbers):
        return None
    plausible = max(found) < world if world > 1 else min(found) == 0 and max(found) < 2 * len(found)
    return found if plausible else None


def _replicas(
    files: Sequence[TraceFile], stated: Sequence[Stated], claims: Sequence[Claim]
) -> list[Assigned]:
    """The ranks of a job whose replicas number theirs anew; [] where that is not what these files are.

    Each replica, told apart by `dp` in the names, has ranks below one and the same size of its world.
    """
    ranks = [rank for rank, source, _ in claims if source in ("file", "collectives")]
    places = [coordinates(file).get("dp") for file in files]
    worlds = {each.world for each in stated}
    if len(ranks) < len(files) or None in places or len(worlds) != 1 or len(set(ranks)) == len(ranks):
        return []
    size = next(iter(worlds))
    members = defaultdict[int | None, list[int | None]](list)
    for place, rank in zip(places, ranks, strict=True):
        members[place].append(rank)
    complete = all(
        max(Counter(of_one).values()) == 1 and all(rank is not None and rank < size for rank in of_one)
        for of_one in members.values()
    )
    if len(members) < 2 or not complete:
        return []
    assigned = []
    world = size * (max(place for place in members if place is not None) + 1)
    for place, rank in zip(places, ranks, strict=True):
        assert place is not None and rank is not None
        number = place * size + rank
        reason = f"rank {rank} of {size} in replica dp{place}, which numbers its ranks anew"
        assigned.append(Assigned(number, "file", str(number), False, place * size, world, reason))
    return assigned
