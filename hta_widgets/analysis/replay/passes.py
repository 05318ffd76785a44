"""The passes over a dependency graph: its weights under an edit, when each node happens, the binding chain.

An edit changes weights, never the pass. All of it is whole nanoseconds; a factor rounds each edge by
floor(x + 0.5), as the browser does.
"""

from __future__ import annotations

import numpy as np

from hta_widgets.arrays import Bool, Float64, Int32, Int64
from hta_widgets.jit import kernel

GONE = -(1 << 52)
"""Weight of a removed edge: before any time, and exact as a float64 in the browser."""

WHOLE = -1
"""Before the first point: a chain that is followed until then is whole."""

MODES = ("pinned", "estimate", "most")
"""What becomes of a residual beside edited work: it stays; the part of each event beside it changes with
that event; all of it changes with the most edited event beside it."""
PINNED, ESTIMATE, MOST = range(len(MODES))


@kernel
def edited_weights(
    weight: Int64,
    residual: Int64,
    group: Int32,
    factor: Float64,
    removed: Bool,
    pair_edge: Int32,
    pair_device: Int32,
    pair_share: Int64,
    mode: int,
) -> Int64:
    """The weight of each edge under factors and removals by group.

    A weight below zero is slack between the clocks, no time that could be scaled.
    """
    out = np.empty(len(weight), np.int64)
    for e in range(len(weight)):
        g = group[e]
        if removed[g]:
            out[e] = GONE
        elif factor[g] == 1.0 or weight[e] < 0:
            out[e] = weight[e] + residual[e]
        else:
            out[e] = np.int64(np.floor(weight[e] * factor[g] + 0.5)) + residual[e]
    if mode == ESTIMATE:
        for p in range(len(pair_edge)):
            f = factor[group[pair_device[p]]]
            if f != 1.0 and not removed[group[pair_edge[p]]]:
                out[pair_edge[p]] += np.int64(np.floor(pair_share[p] * f + 0.5)) - pair_share[p]
    elif mode == MOST:
        p = 0
        while p < len(pair_edge):
            e, f = pair_edge[p], 1.0
            while p < len(pair_edge) and pair_edge[p] == e:
                beside = factor[group[pair_device[p]]]
                if beside < 1.0 and f <= 1.0:
                    f = min(f, beside)
                elif beside > 1.0 and f >= 1.0:
                    f = max(f, beside)
                p += 1
            if f != 1.0 and not removed[group[e]]:
                out[e] += np.int64(np.floor(residual[e] * f + 0.5)) - residual[e]
    return out


@kernel
def happens(first: Int32, source: Int32, weight: Int64) -> Int64:
    """When each node happens: at the latest of its causes, no earlier than the origin."""
    time = np.zeros(len(first) - 1, np.int64)
    for node in range(1, len(time)):
        latest = np.int64(0)
        for e in range(first[node], first[node + 1]):
            ready = time[source[e]] + weight[e]
            if ready > latest:
                latest = ready
        time[node] = latest
    return time


@kernel
def binding_chain(
    first: Int32, source: Int32, weight: Int64, time: Int64, node: int | np.int64, until: int | np.int64
) -> Int64:
    """The edges that decide when a node happens, from the node back to what happens at `until` or before."""
    chain, n, at = np.empty(64, np.int64), 0, np.int64(node)
    while time[at] > until:
        binding = -1
        for e in range(first[at], first[at + 1]):
            if time[source[e]] + weight[e] == time[at]:
                binding = e
        if binding < 0:  # as early as the origin: nothing decides it
            break
        if n == len(chain):
            longer = np.empty(2 * n, np.int64)
            longer[:n] = chain
            chain = longer
        chain[n] = binding
        n += 1
        at = np.int64(source[binding])
    return chain[:n].copy()
