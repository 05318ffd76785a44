"""Where each rank stands in a job's grid, as numbers: its stage, its replica, and its part of the layers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Final

from hta_widgets.analysis.communication.operations import POINT_TO_POINT
from hta_widgets.analysis.core.components import components
from hta_widgets.analysis.parallelism.dimensions import CONTEXT, PIPELINE, TENSOR, described
from hta_widgets.analysis.parallelism.grid import UNKNOWN, purposes
from hta_widgets.analysis.parallelism.process_groups import ProcessGroup, listed_groups, process_groups
from hta_widgets.errors import MissingDataError
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope

SCOPES: Final = ("stage", "replica", "tensor", "context")
"""Along what a job may be split, in the words of `Coordinates`."""
IN_WORDS: Final = {"tensor": "tensor rank", "context": "context rank"}

_OF_A_REPLICA = {PIPELINE, TENSOR, CONTEXT}
"""The dimensions that divide one copy of the model, or one sequence."""

Order = tuple[str, tuple[int, ...]]
"""The dimension of a process group, and its ranks from that with coordinate 0."""


@dataclass(frozen=True)
class Coordinates:
    """The place of each rank along each dimension, from 0; 0 for all where the job is not split that way."""

    stage: dict[int, int]
    replica: dict[int, int]
    tensor: dict[int, int]
    context: dict[int, int]

    @cached_property
    def split(self) -> list[str]:
        """Along which of `SCOPES` the job is split."""
        return [scope for scope in SCOPES if len(set(getattr(self, scope).values())) > 1]

    def of(self, scope: str, key: int) -> list[int]:
        """The ranks at one place along one of `SCOPES`."""
        place: dict[int, int] = getattr(self, scope)
        return sorted(rank for rank in place if place[rank] == key)

    @cached_property
    def shared(self) -> list[str]:
        """Of these without replicas that are one rank each: they tell no more than its number."""
        single = len(set(self.replica.values())) == len(self.replica)
        return [scope for scope in self.split if scope != "replica" or not single]

    def told(self, rank: int) -> str:
        """A rank's place in words, `stage 1, replica 2`; "" where its number says all."""
        return ", ".join(
            f"{IN_WORDS.get(scope, scope)} {getattr(self, scope)[rank]}" for scope in self.shared
        )


def coordinates(trace: Trace, ranks: tuple[int, ...] | None = None) -> Coordinates | None:
    """The coordinates of ranks, by default of all, if it is known what all their process groups are for.

    A replica is what groups of pipeline, tensor and context parallelism connect; replicas are numbered by
    their lowest ranks.

    Returns:
        None if nothing names the groups, or divides the job; if purpose or members of one that does not hold
        all ranks are unknown; or if a rank has two places along one dimension.
    """
    scope = Scope(ranks=ranks)
    if all(_of_all(group, trace.job_size) for group in process_groups(trace, scope)):
        return None
    try:
        found_purposes = purposes(trace, scope)
    except MissingDataError:
        return None
    known = [purpose for purpose in found_purposes if purpose.dimension != UNKNOWN and purpose.order]
    if any(purpose.group.size < trace.job_size for purpose in found_purposes if purpose not in known):
        return None
    return _placed([(each.dimension, each.order) for each in known], trace.ranks_of(scope))


def listed_coordinates(trace: Trace) -> Coordinates | None:
    """The coordinates of all ranks by what files list of process groups, which takes no events.

    Returns:
        None where files describe no group of a dimension, or leave one undescribed that divides the job.
    """
    groups = {
        (description, members)
        for rank in trace.ranks
        for _, description, members in listed_groups(trace, rank)
    }
    listed = {(" and ".join(described(description)[0]), members) for description, members in groups}
    if any(not dimension and len(members) < trace.job_size for dimension, members in listed):
        return None
    return _placed(sorted(order for order in listed if order[0]), trace.ranks)


def _placed(known: Iterable[Order], chosen: list[int]) -> Coordinates | None:
    known = list(known)
    stage, tensor, context = (_along(known, dimension, chosen) for dimension in (PIPELINE, TENSOR, CONTEXT))
    if not known or stage is None or tensor is None or context is None:
        return None
    divided = [order for dimension, order in known if set(dimension.split(" and ")) <= _OF_A_REPLICA]
    every = {*chosen, *(rank for order in divided for rank in order)}
    lowest = components(sorted(every), (pair for order in divided for pair in pairwise(order)))
    number = {rank: at for at, rank in enumerate(sorted(set(lowest.values())))}
    return Coordinates(stage, {rank: number[lowest[rank]] for rank in chosen}, tensor, context)


def _of_all(group: ProcessGroup, job_size: int) -> bool:
    """Whether a group that nothing describes holds all ranks, and divides nothing by sends between them.

    What it is for takes long to tell, and says no more of a rank than its number.
    """
    whole = group.size == job_size and not described(group.description)[0]
    return whole and not POINT_TO_POINT & group.operations


def _along(known: list[Order], dimension: str, ranks: list[int]) -> dict[int, int] | None:
    """The place of each rank along a dimension; None if some have none, or one has two."""
    orders = {order for of, order in known if of == dimension}
    places = [(rank, at) for order in orders for at, rank in enumerate(order)]
    place = dict(places)
    if not places:
        return dict.fromkeys(ranks, 0)
    several = len(place) < len(set(places))
    return None if several or not place.keys() >= set(ranks) else {rank: place[rank] for rank in ranks}
