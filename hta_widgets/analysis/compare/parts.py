"""The time of every step on every rank, split into disjoint parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hta_widgets.analysis.compare.sampling import Steps
from hta_widgets.analysis.device_time.busy import busy_ranks
from hta_widgets.analysis.idle.split import PARTS, split
from hta_widgets.arrays import Int64
from hta_widgets.trace.scope import Scope

if TYPE_CHECKING:
    from hta_widgets.trace.model import Trace


def parts(trace: Trace, steps: Steps, scope: Scope) -> Int64:
    """int64[S, R, len(PARTS)]: ns of each part in each step on each rank; they add up to the step's time.

    Raises:
        MissingDataError: no rank has device events.
    """
    filters = Scope(ranks=steps.ranks, streams=scope.streams, names=scope.names)
    found = np.zeros((len(steps), len(steps.ranks), len(PARTS)), np.int64)
    for rank, rank_trace, work in busy_ranks(trace, filters):
        at = steps.ranks.index(rank)
        found[:, at] = split(rank_trace, work, filters, steps.windows[:, at])
    return found


def communication(trace: Trace, steps: Steps, scope: Scope) -> Int64:
    """int64[S, R]: ns in which any collective ran, hidden or not."""
    filters = Scope(ranks=steps.ranks, streams=scope.streams, names=scope.names)
    total = np.zeros((len(steps), len(steps.ranks)), np.int64)
    for rank, _, work in busy_ranks(trace, filters):
        at = steps.ranks.index(rank)
        total[:, at] = work.communication.within_each(steps.windows[:, at])
    return total


def evenly(totals: Int64, units: int) -> Int64:
    """Each total divided by `units`, in whole ns that add up to the rounded quotient of their sum.

    The running sums are rounded, and each value is the difference of two of them: exact as a sum, and less
    than one ns off as a value.
    """
    if not units:
        return np.zeros_like(totals)
    edges = np.concatenate([[0], np.cumsum(totals)])
    return np.diff((2 * edges + units) // (2 * units))
