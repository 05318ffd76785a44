"""Runs of short kernels as graphs: after its first launch a run costs the host nothing."""

from __future__ import annotations

import numpy as np

from hta_widgets.analysis.replay.kinds import CALL, CALL_ENDS, EVENT_STARTS, HOST, LAUNCH, STREAM
from hta_widgets.analysis.replay.plan import Plan
from hta_widgets.arrays import Int64

GAP_IN_GRAPH = 0.3
"""Share of the usual gap between kernels that is left inside a graph: on an H100 0.45 us of 1.4."""


def fuse(plan: Plan, at_least: int, shorter_than_ns: int) -> None:
    """Replace runs of at least so many launches of kernels shorter than this by graphs."""
    graph = plan.graph
    begin, own, before = _calls(plan)
    last = len(graph.node_kind) - 1
    launched = (begin < last) & (graph.node_kind[np.minimum(begin + 1, last)] == EVENT_STARTS)
    node = np.minimum(begin + 1, last - 1)
    length = np.where(launched, graph.time[node + 1] - graph.time[node], 0)
    plain = (graph.kind[own] == CALL) & (graph.kind[before] == HOST) & (graph.source[before] > 0)
    breaks = ~plain | (length > shorter_than_ns)
    weight, residual = plan.weight.copy(), plan.residual.copy()
    for thread in np.unique(graph.thread[own]).tolist():
        mine = np.flatnonzero(graph.thread[own] == thread)
        run = np.cumsum(breaks[mine])
        for number, count in zip(
            *np.unique(run[~breaks[mine] & launched[mine]], return_counts=True), strict=True
        ):
            if count >= at_least:
                inner = mine[(run == number) & ~breaks[mine]]
                weight[own[inner[1:]]] = weight[before[inner[1:]]] = 0
                _close_up(plan, begin[inner[launched[inner]]][1:] + 1, weight, residual)
    plan.weight, plan.residual = weight, residual


def _calls(plan: Plan) -> tuple[Int64, Int64, Int64]:
    """Of every call, in order: the node of its begin, the edge of its own time, the edge into its begin."""
    graph = plan.graph
    own = graph.first[np.flatnonzero(graph.node_kind == CALL_ENDS)]
    begin = graph.source[own]
    order = np.argsort(begin)
    return (
        begin[order].astype(np.int64),
        own[order].astype(np.int64),
        graph.first[begin[order]].astype(np.int64),
    )


def _close_up(plan: Plan, starts: Int64, weight: Int64, residual: Int64) -> None:
    """Let events (the nodes of their starts) follow the one before on their stream after a graph's gap."""
    graph = plan.graph
    for node in starts.tolist():
        for edge in range(graph.first[node], graph.first[node + 1]):
            if graph.kind[edge] in (STREAM, LAUNCH):
                residual[edge] = 0
            if graph.kind[edge] == STREAM:
                weight[edge] = min(int(weight[edge] * GAP_IN_GRAPH), int(weight[edge]))
