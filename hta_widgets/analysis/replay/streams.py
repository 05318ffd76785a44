"""Device work on a stream of its own: neither it nor the work behind it waits for the other any more."""

from __future__ import annotations

import numpy as np

from hta_widgets.analysis.replay.kinds import DEVICE, LAUNCH, LAUNCH_FIRST, ORPHAN, STREAM
from hta_widgets.analysis.replay.passes import GONE
from hta_widgets.analysis.replay.plan import Plan
from hta_widgets.arrays import Bool


def move(plan: Plan, edges: Bool) -> None:
    """Move the work of these DEVICE edges; that of one stream stays in order.

    What waits for the work by an event, and what it waits for, stays as it was. Only work that a recorded
    call launched is moved: of other work nothing else says when it may start.

    Raises:
        ValueError: another edit has changed the order of streams.
    """
    if plan.order is not None:
        raise ValueError("work is launched ahead or on another stream once: leave one of these edits out")
    graph = plan.graph
    moved = np.zeros(len(graph.time), np.bool_)  # by the node of the start
    moved[graph.source[edges & (graph.kind == DEVICE)]] = True
    launched = np.zeros(len(graph.time), np.bool_)
    launched[graph.target[np.isin(graph.kind, (LAUNCH, LAUNCH_FIRST))]] = True
    moved &= launched
    source, weight, residual = plan.source.copy(), plan.weight.copy(), plan.residual.copy()
    # of the start of each event: the last one up to it on its stream that stays, and that is moved; 0: none
    stays, goes = [0] * len(graph.time), [0] * len(graph.time)
    for edge in np.flatnonzero(np.isin(graph.kind, (STREAM, ORPHAN))).tolist():
        node, before = int(graph.target[edge]), int(graph.source[edge]) - 1
        if before <= 0:
            continue
        staying = before if not moved[before] else stays[before]
        going = before if moved[before] else goes[before]
        stays[node], goes[node] = staying, going
        follows = going if moved[node] else staying
        if follows == before:
            continue
        if follows:
            source[edge] = follows + 1
        elif launched[node]:
            weight[edge], residual[edge] = GONE, 0
    plan.source, plan.weight, plan.residual = source, weight, residual
    plan.moved = plan.moved | moved
