"""Where ranks stand in the job: as process groups tell it, else from what they run and exchange."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from hta_widgets.analysis.core.components import components
from hta_widgets.analysis.job.meetings import Pair
from hta_widgets.analysis.parallelism.coordinates import Coordinates
from hta_widgets.arrays import Int64


@dataclass(frozen=True)
class Places(Coordinates):
    """Where each rank stands, counted from 0, and who does the same work.

    Attributes:
        alike: a number that ranks share which run the same operations in the same order.
        peers: a number that ranks share which should take equally long.
    """

    alike: dict[int, int]
    peers: dict[int, int]


def places(
    ops: pd.DataFrame, collective: Int64, pairs: list[Pair], known: Coordinates | None = None
) -> Places:
    """The grid of stages and replicas: as process groups tell it, else as the work does.

    Ranks do the same if they run the same kinds of operations under the same names in the same order, and
    meet in a collective that leaves out some rank, or if nobody sends to anybody. Then they are of one stage,
    if anybody sends. Ranks that send to each other are one replica; without sends each rank is its own.
    Stages are numbered as a microbatch passes them: a stage comes before those that begin to compute later.

    Args:
        known: what the process groups tell of these ranks, if they do.
    """
    ranks = sorted(ops["rank"].unique().tolist())
    same = _same_work(ops)
    alike = components(
        ranks, [pair for pair in _meeting_ranks(ops, collective) if same[pair[0]] == same[pair[1]]]
    )
    if not pairs:
        first = {same[rank]: rank for rank in reversed(ranks)}
        alike = {rank: first[same[rank]] for rank in ranks}
    if known is not None:
        stage, replica, tensor, context = (
            {rank: place[rank] for rank in ranks}
            for place in (known.stage, known.replica, known.tensor, known.context)
        )
        return Places(stage, replica, tensor, context, alike=alike, peers=stage)
    replica = components(ranks, [(pair.sender, pair.receiver) for pair in pairs])
    copies = {of: at for at, of in enumerate(sorted(set(replica.values())))}
    begin = _first_computing(ops)
    begun: dict[int, float] = {}
    for rank in ranks:
        begun[alike[rank]] = min(begin[rank], begun.get(alike[rank], begin[rank]))
    order = sorted(begun, key=lambda of: (begun[of], of))
    number = {of: at if pairs else 0 for at, of in enumerate(order)}
    nowhere = dict.fromkeys(ranks, 0)
    return Places(
        stage={r: number[alike[r]] for r in ranks},
        replica={r: copies[replica[r]] for r in ranks},
        tensor=nowhere,
        context=nowhere,
        alike=alike,
        peers=alike,
    )


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


def _first_computing(ops: pd.DataFrame) -> dict[int, float]:
    """How far into its steps a rank begins to compute, ns by its own clock."""
    begin = ops.groupby(["rank", "step"])["start_ns"].min()
    compute = ops[ops["kind"] == "compute"].groupby(["rank", "step"])["start_ns"].min()
    later = (compute - begin).groupby("rank").median()
    return {rank: float(later.get(rank, 0.0)) for rank in ops["rank"].unique().tolist()}
