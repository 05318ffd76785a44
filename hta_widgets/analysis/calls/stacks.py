"""Call trees of ranks: calls, what they called, and the kernels that they launched."""

from __future__ import annotations

import numpy as np

from hta_widgets.analysis.calls.nesting import nest
from hta_widgets.analysis.calls.tree import CallTree, adopt_backward
from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.engine import checkpoint
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.rank_trace import RankTrace

PREFIX = "nn.Module: "
"""How PyTorch names the frame of a module's call; the class and the number of the instance follow."""

# The classes of the call stack, outermost first: of calls with equal times, the first is the caller.
_CALLER_FIRST = (
    EventClass.PYTHON,
    EventClass.ANNOTATION,
    EventClass.HOST_OP,
    EventClass.RUNTIME,
    EventClass.OVERHEAD,
)


@memoize_per_rank(last=2)
def stacks(rank_trace: RankTrace, merge_backward: bool = True) -> CallTree:
    """The call tree of one rank: callers, and kernels launched below them; one entry per row of the rank.

    Unlike `RankTrace.parent`, annotations and calls nest together, kernels are children of their launch, and
    what was queued for another thread is a child of the call that queued it.
    Computed once per rank.

    Args:
        merge_backward: attach backward threads below the step that they belong to (see `adopt_backward`).
    """
    checkpoint()
    ties = np.full(len(EventClass), -1, np.int8)
    ties[list(_CALLER_FIRST)] = np.arange(len(_CALLER_FIRST))
    tie = ties[rank_trace.event_class]
    # Device-side rows have a stream or, without one, a category of the device.
    host = (tie >= 0) & rank_trace.on_host
    lane = np.where(host, rank_trace.thread, -1)
    parent = nest(rank_trace.start, rank_trace.end, lane, tie, rank_trace.by_start)
    if merge_backward:
        parent = adopt_backward(
            parent, rank_trace.start, rank_trace.end, lane, rank_trace.name, rank_trace.names
        )
    is_kernel = rank_trace.is_device & (rank_trace.event_class != EventClass.SYNC)
    launch = rank_trace.launch
    linked = np.flatnonzero(is_kernel & (launch >= 0))
    linked = linked[host[launch[linked]]]
    parent[linked] = launch[linked]
    if rank_trace.table.has("queued_by"):
        tasks = np.flatnonzero(rank_trace.queued_by >= 0)
        parent[tasks] = rank_trace.queued_by[tasks]
    return CallTree(rank_trace.start, rank_trace.end, lane, parent, is_kernel, rank_trace.by_start)
