"""Where ranks stand in the job: as process groups tell it, else from what they run and exchange."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from hta_widgets.analysis.core.components import components
from hta_widgets.analysis.core.medians import medians
from hta_widgets.analysis.job.meetings import Pair
from hta_widgets.analysis.parallelism.coordinates import Coordinates
from hta_widgets.arrays import Int64
from hta_widgets.trace.ordering import differing, distinct, first_of_each, numbered, paired, rows_of_each


@dataclass(frozen=True)
class Places(Coordinates):
    """Where each rank stands, counted from 0, and who does the same work."""

    alike: dict[int, int]  # a number that ranks share which run the same operations in the same order
    peers: dict[int, int]  # a number that ranks share which should take equally long


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
    rank = first["rank"].to_numpy(np.int64)
    _, lane = distinct(paired(rank, first["lane"].to_numpy(np.int64)))
    kind, name = (pd.factorize(first[column])[0] for column in ("kind", "name"))
    numbers: dict[bytes, int] = {}
    found = {}
    ranks, of_rank = distinct(rank)
    for each, own in zip(ranks.tolist(), rows_of_each(of_rank), strict=True):
        work = np.column_stack([lane[own] - lane[own].min(), kind[own], name[own]])
        found[each] = numbers.setdefault(work.tobytes(), len(numbers))
    return found


def _meeting_ranks(ops: pd.DataFrame, collective: Int64) -> list[tuple[int, int]]:
    """Neighbours in collectives that do not hold all ranks."""
    rank = ops["rank"].to_numpy(np.int64)
    rows = np.flatnonzero(collective >= 0)
    rows = rows[np.lexsort((rank[rows], collective[rows]))]
    _, at = distinct(collective[rows])
    ranks, of_rank = distinct(rank)
    few = (differing(at, of_rank[rows]) < len(ranks))[at]
    same = few[:-1] & (at[:-1] == at[1:])
    return sorted(set(zip(rank[rows][:-1][same].tolist(), rank[rows][1:][same].tolist(), strict=True)))


def _first_computing(ops: pd.DataFrame) -> dict[int, float]:
    """How far into its steps a rank begins to compute, ns by its own clock."""
    rank, step, start = (ops[name].to_numpy(np.int64) for name in ("rank", "step", "start_ns"))
    computes = (ops["kind"] == "compute").to_numpy(np.bool_)
    ranks, of_rank = distinct(rank)
    here = numbered(of_rank, step)
    begin, begun = np.full((2, int(here.max(initial=-1)) + 1), np.iinfo(np.int64).max)
    np.minimum.at(begin, here, start)
    np.minimum.at(begun, here[computes], start[computes])
    some = np.bincount(here[computes], minlength=len(begin)) > 0
    later = medians(of_rank[first_of_each(here)][some], (begun - begin)[some], len(ranks))
    return dict(zip(ranks.tolist(), np.nan_to_num(later).tolist(), strict=True))
