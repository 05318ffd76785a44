"""An edit, worked out on one graph: factors and removals by group of edges, and time cut out of threads."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.replay.graph import Graph
from hta_widgets.analysis.replay.groups import Group
from hta_widgets.analysis.replay.kinds import HANDOFF, ON_HOST
from hta_widgets.analysis.replay.passes import edited_weights, happens
from hta_widgets.arrays import Bool, Float64, Int32, Int64
from hta_widgets.trace.ordering import among, grouped
from hta_widgets.trace.rank_trace import RankTrace

_EVER = -(1 << 62)
# Findings ask for the same few dozen kernels in one replay after another.
_ASKED = 256


class Plan:
    """What edits do to a graph. They add up: factors multiply, and time is cut out once however often asked.

    Attributes:
        graph, rank_trace: what is edited; the graph with the edges that edits add.
        group: int32 group of each edge: those of the graph, and the parts that edits split from them.
        factor: float64 for each group, of its weights. removed: bool for each group.
        moved: bool for each node: the start of an event that left its stream.
        source: int32 node that each edge comes from. weight, residual: int64 ns of each edge.
        order: int32 all nodes, causes first, where that is no longer the order of the graph; else None.
    """

    def __init__(self, graph: Graph, rank_trace: RankTrace) -> None:
        self.graph, self.rank_trace = graph, rank_trace
        self.group = graph.group
        self._split_from = np.arange(len(graph.groups))
        self.factor = np.ones(len(graph.groups))
        self.removed = np.zeros(len(graph.groups), np.bool_)
        self.moved = np.zeros(len(graph.time), np.bool_)
        self.source, self.weight, self.residual = graph.source, graph.weight, graph.residual
        self.order: Int32 | None = None
        self._cuts: dict[tuple[int, float], Intervals] = {}

    def edges(self, matches: Callable[[Group], bool]) -> Bool:
        """The edges whose group matches."""
        return _matching(self.graph, matches)[self.graph.group]

    def scale_groups(self, matches: Callable[[Group], bool], factor: float) -> None:
        """Multiply the time of all edges whose group matches, without looking at each."""
        self.factor[_matching(self.graph, matches)[self._split_from]] *= factor

    def scale(self, edges: Bool, factor: float) -> None:
        """Multiply the time of edges."""
        groups = self._alone(edges)  # this may replace the arrays
        self.factor[groups] *= factor

    def remove(self, edges: Bool) -> None:
        """Let what edges lead to no longer wait for what they come from.

        Only for edges into nodes that others lead to as well.
        """
        groups = self._alone(edges)
        self.removed[groups] = True

    def add_edges(self, like: Sequence[int], source: Sequence[int]) -> None:
        """Let what these edges lead to wait in the same way for these nodes as well."""
        if not len(like):
            return
        graph, alike = self.graph, np.asarray(like, np.int64)
        target = graph.target[alike]
        order = np.argsort(target, kind="stable")
        alike, target, nodes = alike[order], target[order], np.asarray(source, np.int32)[order]
        at = graph.first[target + 1]

        def more(of: npt.NDArray[Any]) -> npt.NDArray[Any]:
            return np.insert(of, at, of[alike])

        def shifted(edge: Int32) -> Int32:
            return edge + np.searchsorted(at, edge, side="right").astype(np.int32)

        # in the recording they say no more than those that they are like
        self.graph = replace(
            graph,
            first=graph.first + np.searchsorted(target, np.arange(len(graph.first))).astype(np.int32),
            source=more(graph.source),
            kind=more(graph.kind),
            weight=more(graph.weight),
            residual=more(graph.residual),
            thread=more(graph.thread),
            inferred=more(graph.inferred),
            group=more(graph.group),
            pair_edge=shifted(graph.pair_edge),
            pair_device=shifted(graph.pair_device),
        )
        self.source = np.insert(self.source, at, nodes)
        self.weight, self.group = more(self.weight), more(self.group)
        self.residual = np.insert(self.residual, at, 0)

    def at_most(self, edges: Bool, ns: Int64) -> None:
        """Let each of these edges take no longer than this; their own factors come on top."""
        weight = self.weight.copy()
        weight[edges] = np.minimum(weight[edges], ns)
        self.weight = weight

    def cut(self, thread: int, spans: Intervals, keep: float = 0.0) -> None:
        """Keep only a share of what a thread (index) spends in spans (as measured, on the job's axis)."""
        key = (thread, keep)
        self._cuts[key] = self._cuts[key] | spans if key in self._cuts else spans

    def kept(self, thread: int, time: Int64) -> Float64:
        """How much of a thread's time up to each of these (ns on the job's axis) is not cut out, in ns."""
        out = time.astype(np.float64)
        for spans, keep in self._cut_spans((thread,)):
            windows = np.stack([np.full(len(time), _EVER), time], axis=1)
            out -= spans.within_each(windows) * (1 - keep)
        return out

    def weights(self, mode: int) -> Int64:
        """The weight of each edge; `mode`: see `passes.MODES`."""
        return self._edited(self._cut_weights(), mode)

    def replays(self, modes: Iterable[int]) -> list[Int64]:
        """In each mode, when each node happens, ns from the graph's origin."""
        cut = self._cut_weights()
        return [self._happens(self._edited(cut, mode)) for mode in modes]

    def replay(self, mode: int) -> Int64:
        """The only one of `replays`."""
        return self.replays((mode,))[0]

    def _happens(self, weight: Int64) -> Int64:
        first = self.graph.first
        if self.order is None:
            return happens(first, self.source, weight)
        place = np.empty_like(self.order)
        place[self.order] = np.arange(len(place), dtype=np.int32)
        edges = np.argsort(place[self.graph.target], kind="stable")
        count = np.diff(first)[self.order]
        begins = np.concatenate([[0], np.cumsum(count)]).astype(np.int32)
        return happens(begins, place[self.source[edges]], weight[edges])[place]

    def _edited(self, weight: Int64, mode: int) -> Int64:
        graph = self.graph
        return edited_weights(
            weight, self.residual, self.group, self.factor, self.removed,
            graph.pair_edge, graph.pair_device, graph.pair_share, mode,
        )  # fmt: skip

    def _alone(self, edges: Bool) -> Int64:
        """The groups that consist of these edges, after splitting those of which only a part is meant."""
        size = np.bincount(self.group, minlength=len(self.factor))
        inside = np.bincount(self.group[edges], minlength=len(self.factor))
        whole = np.flatnonzero((inside > 0) & (inside == size))
        partly = np.flatnonzero((inside > 0) & (inside < size))
        if not len(partly):
            return whole
        renamed = np.arange(len(self.factor))
        renamed[partly] = len(self.factor) + np.arange(len(partly))
        self.group = np.where(edges, renamed[self.group], self.group).astype(np.int32)
        self._split_from = np.append(self._split_from, self._split_from[partly])
        self.factor = np.append(self.factor, self.factor[partly])
        self.removed = np.append(self.removed, self.removed[partly])
        return np.append(whole, renamed[partly])

    def _cut_weights(self) -> Int64:
        """The weights without what is cut: of a hand-off what either of its two threads loses."""
        if not self._cuts:
            return self.weight
        weight = self.weight.copy()
        for threads, edges, begin in _host_edges(self.graph):
            windows = np.stack([begin, begin + np.maximum(weight[edges], 0)], axis=1)
            for spans, keep in self._cut_spans(threads):
                lost = spans.within_each(windows) * (1 - keep)
                weight[edges] -= np.floor(lost + 0.5).astype(np.int64)
        return weight

    def _cut_spans(self, threads: Collection[int]) -> Iterator[tuple[Intervals, float]]:
        """What is cut out of threads, and the share that stays; where cuts meet, the least share counts."""
        done = Intervals.union([], [])
        for thread, keep in sorted(self._cuts, key=lambda cut: cut[1]):
            if thread in threads:
                spans = self._cuts[thread, keep] - done
                yield spans, keep
                done = done | spans


@memoize_per_rank()
def _host_edges(graph: Graph) -> list[tuple[tuple[int, int], Int64, Int64]]:
    """The edges that take time of the host, by the two threads that it may be of, and when each begins, ns.

    Of a hand-off these differ; -1 is none.
    """
    at = np.flatnonzero(among(graph.kind, ON_HOST))
    source = graph.source[at]
    before = np.where(graph.kind[at] == HANDOFF, graph.thread[graph.first[source]], graph.thread[at])
    begin = graph.origin_ns + graph.time[source]
    threads = len(graph.threads) + 1  # and none, -1
    pair = (graph.thread[at].astype(np.int64) + 1) * threads + before + 1
    order, count = grouped(pair), np.bincount(pair)
    pairs = np.flatnonzero(count)
    parts = np.split(order, np.cumsum(count[pairs]))[:-1]  # there is nothing behind the last
    return [
        ((each // threads - 1, each % threads - 1), at[mine], begin[mine])
        for each, mine in zip(pairs.tolist(), parts, strict=True)
    ]


@memoize_per_rank(last=_ASKED)
def _matching(graph: Graph, matches: Callable[[Group], bool]) -> Bool:
    """For each group of a graph whether it matches; known again where that which matches is a value."""
    return np.array([matches(group) for group in graph.groups], np.bool_)
