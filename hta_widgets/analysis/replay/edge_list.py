"""The nodes and edges that building a dependency graph fills in, and the rule for what is left over."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hta_widgets.arrays import Int32, Int64, UInt8
from hta_widgets.jit import inline

Whole = int | np.int64


class Nodes(NamedTuple):
    """Where the points of host and device are in the order of the graph; node 0 is the origin."""

    time: Int64  # int64[n], measured, ns from the first point
    row: Int32  # int32[n], -1 for the origin and marks
    kind: UInt8  # uint8[n], see `kinds`
    # int32 node of each host point; ``event``: of the start of each device event, whose end is next
    host: Int32
    event: Int32


class Edges(NamedTuple):
    """Edges, those into the same node next to each other."""

    # int32 node; kind: uint8; weight, residual: int64 ns; thread: int32 index, -1 on the device
    source: Int32
    kind: UInt8
    weight: Int64
    residual: Int64
    thread: Int32


def empty(size: int) -> Edges:
    """Room for so many edges."""
    return Edges(
        source=np.empty(size, np.int32),
        kind=np.empty(size, np.uint8),
        weight=np.empty(size, np.int64),
        residual=np.empty(size, np.int64),
        thread=np.empty(size, np.int32),
    )


def targets(first: Int32, edges: Int64) -> Int64:
    """The nodes that these few edges lead to; those of node v are ``first[v]`` to ``first[v + 1]``."""
    return np.searchsorted(first, edges.astype(first.dtype), side="right") - 1


@inline
def last_until(values: Int64, limit: Whole) -> Whole:
    """Position of the last of ascending values that is not above a limit, -1 if all are.

    np.searchsorted would take numba seconds to compile.
    """
    low, high = 0, len(values)
    while low < high:
        middle = (low + high) // 2
        if values[middle] <= limit:
            low = middle + 1
        else:
            high = middle
    return low - 1


@inline
def add(edges: Edges, at: Whole, source: Whole, kind: Whole, weight: Whole, thread: Whole) -> Whole:
    """Add an edge at a place; returns the next place."""
    edges.source[at], edges.kind[at], edges.weight[at] = source, kind, weight
    edges.residual[at], edges.thread[at] = 0, thread
    return at + 1


@inline
def settle(edges: Edges, time: Int64, low: Whole, high: Whole, now: Whole) -> Whole:
    """Give what the weights of the edges into a node leave open to the latest cause; returns that edge.

    No weight may say that the node happens after `now`, when it was measured: then the replay of an unchanged
    recording is exact by construction.
    """
    best, latest = low, time[edges.source[low]] + edges.weight[low]
    for edge in range(low + 1, high):
        ready = time[edges.source[edge]] + edges.weight[edge]
        if ready > latest:
            best, latest = edge, ready
    edges.residual[best] = now - latest
    return best
