"""How long host calls are open within a time, those inside them aside, and which names that adds up for."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from hta_widgets.analysis.core.autograd import is_node
from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.idle.causes import named
from hta_widgets.arrays import Int64
from hta_widgets.trace.rank_trace import RankTrace

_NAMES: Final = 8


def spans_of(rank_trace: RankTrace, rows: Int64) -> Int64:
    """int64[k, 2] ns: when rows begin and end."""
    return np.stack([rank_trace.start[rows], rank_trace.end[rows]], 1)


def open_time(rank_trace: RankTrace, chosen: npt.NDArray[Any]) -> Intervals:
    """When any of some rows is open; `chosen`: their numbers, or a mask."""
    return Intervals.union(rank_trace.start[chosen], rank_trace.end[chosen])


def without_backward(rank_trace: RankTrace, rows: Int64) -> Int64:
    """Those of these calls in which no backward pass runs, as it does in the step of LBFGS or SAM."""
    nodes = _node_starts(rank_trace)
    runs = nodes.searchsorted(rank_trace.start[rows]) < nodes.searchsorted(rank_trace.end[rows])
    return rows[~runs]


@memoize_per_rank()
def _node_starts(rank_trace: RankTrace) -> Int64:
    """When the nodes of the backward pass start, ascending: asked for each kind of region."""
    return np.sort(rank_trace.start[named(rank_trace, is_node)])


def own_time(time: Intervals, spans: Int64, around: npt.NDArray[np.integer[Any]]) -> Int64:
    """How much of a time lies in each span, that in the spans inside it aside.

    `around`: the innermost span that holds each of them, -1 for none.
    """
    inside = time.within_each(spans)
    own = inside.copy()
    np.subtract.at(own, around[around >= 0], inside[around >= 0])
    return own.clip(0)


def narrowest_open(rank_trace: RankTrace, rows: Int64, time: Intervals, least_ns: float) -> tuple[str, int]:
    """The name of calls that are open for so much of a time, of these the one that is open least in all, and
    how much of the time that is; "" if there is none."""
    inside = np.zeros(len(rank_trace.names), np.int64)
    np.add.at(inside, rank_trace.name[rows], time.within_each(spans_of(rank_trace, rows)))
    found = []
    for code in np.flatnonzero(inside >= max(least_ns, 1)).tolist():  # recursion counts several times here
        calls = open_time(rank_trace, rows[rank_trace.name[rows] == code])
        found.append((calls.length, rank_trace.names[code], (calls & time).length))
    _, name, ns = min((each for each in found if each[2] >= least_ns), default=(0, "", 0))
    return name, ns


def longest_names(rank_trace: RankTrace, rows: Int64, own: Int64) -> dict[str, int]:
    """The names with most own time, the longest first, and how much, ns."""
    total = np.zeros(len(rank_trace.names), np.int64)
    np.add.at(total, rank_trace.name[rows], own)
    order = np.argsort(-total, kind="stable")
    return {rank_trace.names[code]: int(total[code]) for code in order[total[order] > 0][:_NAMES].tolist()}
