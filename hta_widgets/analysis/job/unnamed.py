"""Kernels in which all ranks meet though nothing says so: collectives of a library of one's own."""

from __future__ import annotations

import numpy as np
import pandas as pd

from hta_widgets.analysis.core.medians import medians
from hta_widgets.analysis.job.clocks import offsets
from hta_widgets.arrays import Int64
from hta_widgets.trace.ordering import distinct, first_of_each, nth_of_each, numbered

_TOGETHER = 0.1
"""Ends are this much closer than the starts, and than the kernel is long."""
_APART_NS = 1_000_000
"""Below this, starts are as close as clocks can tell."""


def unnamed_meetings(ops: pd.DataFrame, meeting: Int64) -> tuple[Int64, list[str]]:
    """Find kernels of equal number on all ranks whose n-th begin apart and end together.

    Returns:
        The meetings with those of these kernels added, and the names of the kernels.
    """
    found, names = meeting.copy(), list[str]()
    _, rank = distinct(ops["rank"].to_numpy(np.int64))
    step = ops["step"].to_numpy(np.int64)
    ranks, steps = (int(numbers.max(initial=-1)) + 1 for numbers in (rank, step))
    rows = np.flatnonzero(ops["kind"] == "compute")
    name, known = pd.factorize(ops["name"].iloc[rows], sort=True)
    # of each name on each rank in each step
    here = numbered(name, rank[rows], step[rows])
    size, of = np.bincount(here), name[first_of_each(here)]
    least, most = np.full(len(known), np.iinfo(np.int64).max), np.zeros(len(known), np.int64)
    np.minimum.at(least, of, size)
    np.maximum.at(most, of, size)
    everywhere = (least == most) & (np.bincount(of, minlength=len(known)) == ranks * steps)
    if ranks < 2 or not everywhere.any():
        return found, names
    nth, candidates = nth_of_each(here), everywhere[name]
    rows, name, nth = rows[candidates], name[candidates], nth[candidates]
    ahead = _ahead(ops, meeting)[rows]
    start, end = (ops[column].to_numpy(np.int64)[rows] - ahead for column in ("start_ns", "end_ns"))
    # the n-th of a name in a step, on all ranks
    together = numbered(name, step[rows], nth)
    of = name[first_of_each(together)]
    starts, ends = (medians(of, _spread(together, times), len(known)) for times in (start, end))
    length = medians(name, end - start, len(known))
    meets = (starts > _APART_NS) & (ends < _TOGETHER * np.minimum(starts, length))
    for code in np.flatnonzero(meets).tolist():
        own = name == code
        number = step[rows[own]] * most[code] + nth[own]
        found[rows[own]] = number + int(found.max(initial=-1)) + 1
        names.append(str(known[code]))
    return found, names


def _spread(group: Int64, times: Int64) -> Int64:
    """From the first to the last of the times of each group."""
    first = np.full(int(group.max(initial=-1)) + 1, np.iinfo(np.int64).max)
    last = np.full(len(first), np.iinfo(np.int64).min)
    np.minimum.at(first, group, times)
    np.maximum.at(last, group, times)
    return last - first


def _ahead(ops: pd.DataFrame, meeting: Int64) -> Int64:
    """How far the clock of each operation's rank is ahead in its step, ns."""
    rank, end, step = (ops[column].to_numpy(np.int64) for column in ("rank", "end_ns", "step"))
    found = np.zeros(len(ops), np.int64)
    for number in range(int(step.max()) + 1):
        rows = np.flatnonzero(step == number)
        ahead = offsets(rank[rows], end[rows], meeting[rows])
        ranks = sorted(ahead)
        found[rows] = np.array([ahead[of] for of in ranks])[np.searchsorted(ranks, rank[rows])]
    return found
