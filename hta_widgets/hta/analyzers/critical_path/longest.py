"""The longest path of a directed acyclic graph."""

from __future__ import annotations

import numpy as np

from hta_widgets.arrays import Float64, Int64
from hta_widgets.jit import kernel


def longest_path(begin: Int64, end: Int64, weight: Float64) -> Int64 | None:
    """The nodes of the longest path, first to last; None if the graph has a cycle.

    Of paths of equal length it is the one that `networkx.dag_longest_path` finds on a graph with these edges
    added in this order: the first predecessor, and the end that comes first in topological order.
    """
    both = np.stack([begin, end], axis=1).reshape(-1)
    number, seen, which = np.unique(both, return_index=True, return_inverse=True)
    # Nodes by first appearance, as networkx holds them.
    by_appearance = np.argsort(seen, kind="stable")
    local = np.empty(len(number), np.int64)
    local[by_appearance] = np.arange(len(number))
    tail, head = local[which.reshape(-1)[0::2]], local[which.reshape(-1)[1::2]]
    leaving, entering = np.argsort(tail, kind="stable"), np.argsort(head, kind="stable")
    nodes = np.arange(len(number) + 1)
    path = _search(
        len(number),
        tail,
        head,
        weight,
        leaving,
        np.searchsorted(tail[leaving], nodes),
        entering,
        np.searchsorted(head[entering], nodes),
    )
    return number[by_appearance][path] if len(path) else None


@kernel
def _search(
    n: int,
    tail: Int64,
    head: Int64,
    weight: Float64,
    leaving: Int64,
    leaves: Int64,
    entering: Int64,
    enters: Int64,
) -> Int64:
    """The nodes along the longest path; none if the graph has a circle or nothing."""
    waiting = np.zeros(n, np.int64)
    for i in range(n):
        waiting[i] = enters[i + 1] - enters[i]
    order = np.empty(n, np.int64)
    ready = 0
    for i in range(n):
        if waiting[i] == 0:
            order[ready] = i
            ready += 1
    distance, before = np.zeros(n, np.float64), np.arange(n)
    done = 0
    while done < ready:
        node = order[done]
        done += 1
        best, through = 0.0, node
        for k in range(enters[node], enters[node + 1]):
            edge = entering[k]
            length = distance[tail[edge]] + weight[edge]
            if length > best or (length >= best and through == node):
                best, through = length, tail[edge]
        distance[node], before[node] = best, through
        for k in range(leaves[node], leaves[node + 1]):
            child = head[leaving[k]]
            waiting[child] -= 1
            if waiting[child] == 0:
                order[ready] = child
                ready += 1
    if ready < n or n == 0:
        return np.empty(0, np.int64)
    last = order[0]
    for i in range(n):
        if distance[order[i]] > distance[last]:
            last = order[i]
    path, length = np.empty(n, np.int64), 0
    path[0] = last
    length = 1
    while before[last] != last:
        last = before[last]
        path[length] = last
        length += 1
    return path[:length][::-1].copy()
