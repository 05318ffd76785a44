"""Which ranks do the same work: the stages and replicas of a pipeline, from what they run and exchange."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from hta_widgets.analysis.job.meetings import Pair

__all__ = ["Places", "places"]

Int64 = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Places:
    """Stage and replica of each rank, both counted from 0."""

    stage: dict[int, int]
    replica: dict[int, int]


def places(ops: pd.DataFrame, collective: Int64, pairs: list[Pair]) -> Places:
    """The grid of stages and replicas.

    Ranks are of one stage if they run the same kinds of operations under the same names in the same order,
    and meet in a collective that leaves out some rank, or if nobody sends to anybody. Ranks that send to each
    other are one replica; without sends each rank is its own. Stages are numbered as a microbatch passes
    them: a stage comes before those that begin to compute later.
    """
    ranks = sorted(ops["rank"].unique().tolist())
    alike = _same_work(ops)
    stage = _components(
        ranks, [pair for pair in _meeting_ranks(ops, collective) if alike[pair[0]] == alike[pair[1]]]
    )
    if not pairs:
        stage = {rank: min(r for r in ranks if alike[r] == alike[rank]) for rank in ranks}
    replica = _components(ranks, [(pair.sender, pair.receiver) for pair in pairs])
    begin = _first_computing(ops)
    order = sorted(set(stage.values()), key=lambda of: (min(begin[r] for r in ranks if stage[r] == of), of))
    number = {of: at for at, of in enumerate(order if pairs else sorted(order))}
    copies = {of: at for at, of in enumerate(sorted(set(replica.values())))}
    return Places({r: number[stage[r]] for r in ranks}, {r: copies[replica[r]] for r in ranks})


def _same_work(ops: pd.DataFrame) -> dict[int, int]:
    """A number that ranks share whose first steps hold the same operations in the same order."""
    first = ops[ops["step"] == 0]
    lane = first.groupby("rank")["lane"].rank("dense").astype(int)
    words = lane.astype(str) + "/" + first["kind"] + "/" + first["name"]
    text = words.groupby(first["rank"]).agg("|".join)
    return dict(zip(text.index.tolist(), pd.factorize(text)[0].tolist(), strict=True))


def _meeting_ranks(ops: pd.DataFrame, collective: Int64) -> list[tuple[int, int]]:
    """Neighbours in collectives that do not hold all ranks."""
    rows = np.flatnonzero(collective >= 0)
    each = pd.DataFrame({"at": collective[rows], "rank": ops["rank"].to_numpy()[rows]}).sort_values(
        ["at", "rank"]
    )
    few = each.groupby("at")["rank"].transform("nunique") < ops["rank"].nunique()
    each = each[few]
    following = each.shift(-1)
    same = each["at"] == following["at"]
    found = zip(each["rank"][same], following["rank"][same].astype(int), strict=True)
    return sorted(set(found))


def _components(ranks: list[int], edges: list[tuple[int, int]]) -> dict[int, int]:
    """The lowest rank that each rank is connected with."""
    parent = {rank: rank for rank in ranks}

    def top(rank: int) -> int:
        while parent[rank] != rank:
            rank = parent[rank]
        return rank

    for a, b in edges:
        low, high = sorted((top(a), top(b)))
        parent[high] = low
    return {rank: top(rank) for rank in ranks}


def _first_computing(ops: pd.DataFrame) -> dict[int, float]:
    """How far into its steps a rank begins to compute, ns by its own clock."""
    begin = ops.groupby(["rank", "step"])["start_ns"].min()
    compute = ops[ops["kind"] == "compute"].groupby(["rank", "step"])["start_ns"].min()
    later = (compute - begin).groupby("rank").median()
    return {rank: float(later.get(rank, 0.0)) for rank in ops["rank"].unique().tolist()}
