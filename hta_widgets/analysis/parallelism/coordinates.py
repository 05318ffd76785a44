"""Where each rank stands in a job's grid, as numbers: its stage, its replica, and its part of the layers."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from hta_widgets.analysis.core.components import components
from hta_widgets.analysis.parallelism.dimensions import CONTEXT, PIPELINE, TENSOR, described
from hta_widgets.analysis.parallelism.grid import UNKNOWN, Purpose, purposes
from hta_widgets.analysis.parallelism.process_groups import ProcessGroup, process_groups
from hta_widgets.errors import MissingDataError
from hta_widgets.trace.scope import Scope

if TYPE_CHECKING:
    from hta_widgets.trace.model import Trace

__all__ = ["Coordinates", "coordinates"]

_OF_A_REPLICA = {PIPELINE, TENSOR, CONTEXT}
"""The dimensions that divide one copy of the model, or one sequence."""


@dataclass(frozen=True)
class Coordinates:
    """The place of each rank along each dimension, from 0; 0 for all where the job is not split that way."""

    stage: dict[int, int]
    replica: dict[int, int]
    tensor: dict[int, int]
    context: dict[int, int]


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
        told = purposes(trace, scope)
    except MissingDataError:
        return None
    known = [purpose for purpose in told if purpose.dimension != UNKNOWN and purpose.order]
    if not known or any(purpose.group.size < trace.job_size for purpose in told if purpose not in known):
        return None
    chosen = trace.ranks_of(scope)
    stage, tensor, context = (_along(known, dimension, chosen) for dimension in (PIPELINE, TENSOR, CONTEXT))
    if stage is None or tensor is None or context is None:
        return None
    divided = [each.order for each in known if set(each.dimension.split(" and ")) <= _OF_A_REPLICA]
    every = {*chosen, *(rank for order in divided for rank in order)}
    lowest = components(sorted(every), (pair for order in divided for pair in pairwise(order)))
    number = {rank: at for at, rank in enumerate(sorted(set(lowest.values())))}
    return Coordinates(stage, {rank: number[lowest[rank]] for rank in chosen}, tensor, context)


def _of_all(group: ProcessGroup, job_size: int) -> bool:
    """Whether a group that nothing describes holds all ranks, and divides nothing by sends between them.

    What it is for takes long to tell, and says no more of a rank than its number.
    """
    whole = group.size == job_size and not described(group.description)[0]
    return whole and not {"send", "recv", "sendrecv"} & group.operations


def _along(known: list[Purpose], dimension: str, ranks: list[int]) -> dict[int, int] | None:
    """The place of each rank along a dimension; None if some have none, or one has two."""
    orders = {purpose.order for purpose in known if purpose.dimension == dimension}
    places = [(rank, at) for order in orders for at, rank in enumerate(order)]
    place = dict(places)
    if not places:
        return dict.fromkeys(ranks, 0)
    several = len(place) < len(set(places))
    return None if several or not place.keys() >= set(ranks) else {rank: place[rank] for rank in ranks}
