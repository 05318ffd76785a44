"""Kernels in which all ranks meet though nothing says so: collectives of a library of one's own."""

from __future__ import annotations

import numpy as np
import pandas as pd

from hta_widgets.analysis.job.clocks import offsets
from hta_widgets.arrays import Int64

_TOGETHER = 0.1
"""Ends are this much closer than the starts, and than the kernel is long."""
_APART_NS = 1_000_000
"""Below this, starts are as close as clocks can tell."""


def unnamed_meetings(ops: pd.DataFrame, meeting: Int64) -> tuple[Int64, list[str]]:
    """Find kernels of equal number on all ranks whose n-th begin apart and end together.

    Returns:
        The meetings with those of these kernels added, and the names of the kernels.
    """
    ranks = ops["rank"].nunique()
    compute = ops[ops["kind"] == "compute"]
    counts = (
        compute.groupby(["name", "rank", "step"]).size().groupby(level="name").agg(["min", "max", "size"])
    )
    everywhere = counts.index[
        (counts["min"] == counts["max"]) & (counts["size"] == ranks * ops["step"].nunique())
    ]
    found, names = meeting.copy(), list[str]()
    if ranks < 2 or not len(everywhere):
        return found, names
    candidates = compute[compute["name"].isin(everywhere)]
    ahead = _ahead(ops, meeting).loc[candidates.index]
    nth = candidates.groupby(["name", "rank", "step"]).cumcount()
    placed = candidates.assign(
        nth=nth, start=candidates["start_ns"] - ahead, end=candidates["end_ns"] - ahead
    )
    for name, rows in placed.groupby("name", sort=True):
        by = rows.groupby(["step", "nth"])
        ends = (by["end"].max() - by["end"].min()).median()
        starts = (by["start"].max() - by["start"].min()).median()
        length = (rows["end"] - rows["start"]).median()
        if starts > _APART_NS and ends < _TOGETHER * min(starts, length):
            found[rows.index] = by.ngroup().to_numpy() + int(found.max(initial=-1)) + 1
            names.append(str(name))
    return found, names


def _ahead(ops: pd.DataFrame, meeting: Int64) -> pd.Series:
    """How far the clock of each operation's rank is ahead in its step, ns."""
    rank, end, step = (ops[column].to_numpy(np.int64) for column in ("rank", "end_ns", "step"))
    found = np.zeros(len(ops), np.int64)
    for number in range(int(step.max()) + 1):
        rows = np.flatnonzero(step == number)
        ahead = offsets(rank[rows], end[rows], meeting[rows])
        ranks = sorted(ahead)
        found[rows] = np.array([ahead[of] for of in ranks])[np.searchsorted(ranks, rank[rows])]
    return pd.Series(found, ops.index)
