"""Recordings to replay, and readings of their graphs that owe nothing to the code under test."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from hta_widgets import examples
from hta_widgets.analysis.replay.graph import Graph, graph_of
from hta_widgets.analysis.replay.kinds import CALL_BEGINS, CALL_ENDS, EVENT_STARTS, KINDS, START
from hta_widgets.analysis.replay.passes import ESTIMATE, MOST, edited_weights, happens
from hta_widgets.trace.model import Trace
from hta_widgets.trace.rank_trace import RankTrace
from tests.support import GPU_TRACES, shared_trace

EXAMPLES = examples.names()
RECORDINGS = [*(f"shared:{name}" for name in GPU_TRACES), *(f"example:{name}" for name in EXAMPLES)]


@lru_cache(maxsize=4)
def recorded(name: str) -> Trace:
    """A recording of `RECORDINGS`; skips the test where it is not there."""
    place, _, what = name.partition(":")
    return Trace.open(examples.path(what) if place == "example" else shared_trace(what))


def ranks_of(trace: Trace) -> list[tuple[RankTrace, Graph]]:
    """Ranks that have a graph: of large jobs the first and the last will do."""
    ranks = [trace.rank(rank) for rank in {trace.ranks[0]: None, trace.ranks[-1]: None}]
    return [(rank, graph) for rank in ranks if (graph := graph_of(rank)) is not None]


@dataclass(frozen=True)
class Change:
    """An edit by groups, as arrays of one value per group."""

    factor: np.ndarray
    removed: np.ndarray

    def together(self, other: Change) -> Change:
        """What either of them shortens or removes, as far as the one that does more."""
        return Change(np.minimum(self.factor, other.factor), self.removed | other.removed)


def replayed(graph: Graph, change: Change, mode: int) -> np.ndarray:
    """When each node happens under a change."""
    weights = edited_weights(
        graph.weight, graph.residual, graph.group, change.factor, change.removed,
        graph.pair_edge, graph.pair_device, graph.pair_share, mode,
    )  # fmt: skip
    return happens(graph.first, graph.source, weights)


def slow_weights(graph: Graph, change: Change, mode: int) -> list[int]:
    """The weight of each edge by the definition, edge by edge."""
    weights = []
    for edge, group in enumerate(graph.group.tolist()):
        weight, residual = int(graph.weight[edge]), int(graph.residual[edge])
        if change.removed[group]:
            weights.append(-(10**18))
            continue
        if weight > 0:
            weight = math.floor(weight * float(change.factor[group]) + 0.5)
        beside = [
            (float(change.factor[graph.group[other]]), int(share))
            for other, share in _beside(graph).get(edge, ())
        ]
        if mode == ESTIMATE:
            residual += sum(math.floor(share * factor + 0.5) - share for factor, share in beside)
        elif mode == MOST:
            # speed-ups only: that of the most edited event
            residual = math.floor(residual * min([1.0, *(factor for factor, _ in beside)]) + 0.5)
        weights.append(weight + residual)
    return weights


@lru_cache(maxsize=4)
def _beside(graph: Graph) -> dict[int, list[tuple[int, int]]]:
    pairs: dict[int, list[tuple[int, int]]] = {}
    for edge, device, share in zip(
        graph.pair_edge.tolist(), graph.pair_device.tolist(), graph.pair_share.tolist(), strict=True
    ):
        pairs.setdefault(edge, []).append((device, share))
    return pairs


def slow_replay(graph: Graph, weights: list[int]) -> list[int]:
    """When each node happens: the latest of its causes, and none before the first."""
    into: dict[int, list[tuple[int, int]]] = {}
    for edge, (node, source) in enumerate(zip(graph.target.tolist(), graph.source.tolist(), strict=True)):
        into.setdefault(node, []).append((source, weights[edge]))
    times = [0] * len(graph.time)
    for node in range(1, len(times)):
        times[node] = max(0, *(times[source] + weight for source, weight in into[node]))
    return times


def random_change(graph: Graph, dice: np.random.Generator) -> Change:
    """Some groups shortened, some waits removed."""
    count = len(graph.groups)
    factor, removed = np.ones(count), np.zeros(count, np.bool_)
    some = dice.random(count) < dice.choice([0.02, 0.2, 0.6])
    factor[some] = dice.choice([0.0, 0.3, 0.5, 0.9], some.sum())
    waits = np.array([KINDS[group.kind] in _REMOVABLE for group in graph.groups])
    removed[waits & (dice.random(count) < 0.1)] = True
    return Change(factor, removed)


# Of these a node has others beside.
_REMOVABLE = ("sync", "copy", "queue", "late", "collective", "wait")


Edge = tuple[str, str, int, int]


def edges_of(trace: Trace, rank: int = 0) -> dict[str, list[Edge]]:
    """The edges of a small recording in words: of each node (kind, source, weight, residual) of its edges.

    Nodes are "call x" and "return x" for the call that launches x (else of that name), "start x" and
    "finish x" for device work, "mark" and "origin".
    """
    rank_trace = trace.rank(rank)
    graph = graph_of(rank_trace)
    assert graph is not None
    names = [_node(rank_trace, graph, node) for node in range(len(graph.time))]
    found: dict[str, list[Edge]] = {name: [] for name in names[1:]}
    for edge, node in enumerate(graph.target.tolist()):
        found[names[node]].append(
            (
                KINDS[graph.kind[edge]],
                names[graph.source[edge]],
                int(graph.weight[edge]),
                int(graph.residual[edge]),
            )
        )
    return found


def _node(rank_trace: RankTrace, graph: Graph, node: int) -> str:
    kind, row = graph.node_kind[node], int(graph.row[node])
    if kind == START:
        return "origin"
    if row < 0:
        return "mark"
    if kind in (CALL_BEGINS, CALL_ENDS):
        launched = np.flatnonzero(rank_trace.launch == row)
        row = int(launched[0]) if len(launched) else row
        return f"{'call' if kind == CALL_BEGINS else 'return'} {rank_trace.names[rank_trace.name[row]]}"
    return f"{'start' if kind == EVENT_STARTS else 'finish'} {rank_trace.names[rank_trace.name[row]]}"
