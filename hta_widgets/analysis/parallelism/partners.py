"""Whether ranks that send to each other form a chain, as the stages of a pipeline do, or a ring."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Final

from hta_widgets.analysis.parallelism.process_groups import ProcessGroup

CHAIN: Final = "chain"
RING: Final = "ring"


def shape(group: ProcessGroup) -> tuple[str, tuple[int, ...]]:
    """The form of a group that only sends and receives, and its ranks in order from the first.

    A chain is what microbatches and their gradients pass there and back, or there alone; it begins with the
    rank whose first exchange is a send. In a ring all send to the next, the last to the first, and nobody
    back: ring attention passes keys and values so. Both need at least three ranks, all of them recorded, and
    partners that are known; else "" and no ranks.
    """
    traffic = group.traffic
    known = traffic["sender"].notna() & traffic["receiver"].notna()
    if group.size < 3 or traffic["rank"].nunique() < group.size or not known.all():
        return "", ()
    edges = set(zip(traffic["sender"].astype(int), traffic["receiver"].astype(int), strict=True))
    following = {a: b for a, b in edges if (b, a) not in edges}
    if len(following) == len(edges) == group.size:
        order = _from(min(group.ranks), {rank: {after} for rank, after in following.items()})
        return (RING, order) if len(order) == group.size and following[order[-1]] == order[0] else ("", ())
    beside: dict[int, set[int]] = {rank: set() for rank in group.ranks}
    for a, b in edges:
        beside[a].add(b)
        beside[b].add(a)
    ends = sorted(rank for rank, others in beside.items() if len(others) == 1)
    first = [rank for rank in ends if traffic.loc[traffic["rank"] == rank, "collective"].iloc[0] == "send"]
    if len(ends) != 2 or len(first) != 1 or max(map(len, beside.values())) > 2:
        return "", ()
    order = _from(first[0], beside)
    return (CHAIN, order) if len(order) == group.size else ("", ())


def _from(rank: int, following: Mapping[int, Set[int]]) -> tuple[int, ...]:
    """The ranks that are reached from one, each from the one before."""
    order = [rank]
    seen = {rank}
    while more := following[order[-1]] - seen:
        order.append(min(more))
        seen.add(order[-1])
    return tuple(order)
