"""The time of every step on every rank, split into disjoint parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from hta_widgets.analysis.compare.sampling import Steps
from hta_widgets.analysis.device_time.busy import busy_ranks
from hta_widgets.analysis.idle.breakdown import CONSECUTIVE_KERNEL_DELAY_NS, IDLE_CAUSES
from hta_widgets.analysis.idle.causes import CAUSES, idle_causes
from hta_widgets.charts.spec import Series
from hta_widgets.trace.scope import Scope

if TYPE_CHECKING:
    from hta_widgets.trace.model import Trace

__all__ = ["BUSY", "PARTS", "SERIES", "communication", "evenly", "parts"]

Int64 = npt.NDArray[np.int64]

BUSY: Final = ("compute", "exposed_communication", "exposed_memory")
PARTS: Final = (*BUSY, *CAUSES)
"""Every instant of a step is in exactly one: those of `temporal_breakdown`, and the causes of idleness."""

SERIES = (
    Series("compute_ns", "Compute", "compute"),
    Series("exposed_communication_ns", "Exposed communication", "communication"),
    Series("exposed_memory_ns", "Exposed memory", "memory"),
    *IDLE_CAUSES,
)
"""How a chart shows the parts."""


def parts(trace: Trace, steps: Steps, scope: Scope) -> Int64:
    """int64[S, R, len(PARTS)]: ns of each part in each step on each rank; they add up to the step's time.

    Raises:
        MissingDataError: no rank has device events.
    """
    filters = Scope(ranks=steps.ranks, streams=scope.streams, names=scope.names)
    split = np.zeros((len(steps), len(steps.ranks), len(PARTS)), np.int64)
    for rank, rank_trace, work in busy_ranks(trace, filters):
        at = steps.ranks.index(rank)
        idle = idle_causes(rank_trace, filters, CONSECUTIVE_KERNEL_DELAY_NS).causes
        sets = (work.compute, work.exposed_communication, work.exposed_memory, *(idle[c] for c in CAUSES))
        split[:, at] = np.stack([part.within_each(steps.windows[:, at]) for part in sets], axis=1)
    return split


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
    rounded: Int64 = np.diff((2 * edges + units) // (2 * units))
    return rounded
