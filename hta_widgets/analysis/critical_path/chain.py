"""The dependencies that decide when a window ends: the binding edges of the unchanged replay."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.critical_path.host_time import busy_until, host_time
from hta_widgets.analysis.replay.graph import Graph, graph_of
from hta_widgets.analysis.replay.host_edges import lets_go_on
from hta_widgets.analysis.replay.kinds import CALL_BEGINS, CALL_ENDS, EVENT_ENDS, HANDOFF, HOST, MARK, ORIGIN
from hta_widgets.analysis.replay.passes import binding_chain
from hta_widgets.arrays import Bool, Int64
from hta_widgets.trace.ordering import among
from hta_widgets.trace.rank_trace import RankTrace

NO_THREAD = -1


class Steps(NamedTuple):
    """A chain of causes, earliest first: each step starts where the one before ends, or at once.

    Attributes (of each step):
        start, end: int64 ns, within the window. kind: int64 (`kinds`).
        row: int64 row of the call or device event that the step leads to, -1 for none.
        giver, thread: int64 thread number of what the step comes from and leads to; NO_THREAD on the device.
        inferred: bool, no event records that the one waited for the other.
    """

    start: Int64
    end: Int64
    kind: Int64
    row: Int64
    giver: Int64
    thread: Int64
    inferred: Bool


class _Rank(NamedTuple):
    """What all windows of a rank share."""

    weight: Int64  # ns of each edge
    thread: Int64  # int64 thread number of each node, NO_THREAD on the device
    points: Int64  # the nodes of the host
    ended: Int64  # int64, those of them at which something ended
    caused: Int64  # ns, when device work was launched (or started, without a launch), ascending
    last: Int64  # of what was caused so far, the node at which the last to end does so
    launches: dict[int, int]  # for each thread number that launches device work, how much

    @property
    def main(self) -> int:
        """The thread with most launches."""
        return max(self.launches, key=lambda thread: self.launches[thread])


def main_thread(rank_trace: RankTrace) -> int:
    """The number of the thread with most launches."""
    return _prepared(rank_trace).main


def has_launches(rank_trace: RankTrace) -> bool:
    """Whether any device work of a rank has a recorded launch."""
    return graph_of(rank_trace) is not None and bool(_prepared(rank_trace).launches)


def chain_of(rank_trace: RankTrace, first: int, last: int) -> Steps:
    """What decided when a window ended, from its start to its end.

    The chain of the device event that finishes last of all work launched before the end, or, if the device is
    done by then, of what the thread does then that was busy last: of those busy at the end, the one with most
    launches.
    """
    graph, known = graph_of(rank_trace), _prepared(rank_trace)
    assert graph is not None  # asked only of ranks with launches
    begin, end = first - graph.origin_ns, last - graph.origin_ns
    at = int(np.searchsorted(known.caused, end, side="left")) - 1
    if at >= 0 and graph.time[known.last[at]] >= end:
        steps = _back(graph, known, int(known.last[at]), begin)
    else:
        thread = _busy_at(rank_trace, known, last)
        points = known.points[known.thread[known.points] == thread]
        after = int(np.searchsorted(graph.time[points], end, side="left"))
        if after < len(points):
            steps = _back(graph, known, int(points[after]), begin)
        else:
            steps = _beyond(graph, known, thread, int(points[-1]) if len(points) else -1, begin, end)
    # Where clocks are skewed a cause may be later than its effect; then the effect's own causes are earlier.
    start = np.clip(np.minimum.accumulate(steps.start[::-1])[::-1], begin, end)
    return steps._replace(start=start + graph.origin_ns, end=np.append(start[1:], end) + graph.origin_ns)


@memoize_per_rank()
def _prepared(rank_trace: RankTrace) -> _Rank:
    graph = graph_of(rank_trace)
    assert graph is not None
    is_host = among(graph.node_kind, (CALL_BEGINS, CALL_ENDS, MARK))
    thread = np.full(len(graph.time), NO_THREAD, np.int64)
    thread[is_host] = graph.threads[graph.thread[graph.first[:-1][is_host]]]
    ends = np.flatnonzero(graph.node_kind == EVENT_ENDS)
    launch = rank_trace.launch[graph.row[ends]].astype(np.int64)
    caused = np.where(launch >= 0, rank_trace.start[launch] - graph.origin_ns, graph.time[ends - 1])
    by_end = np.lexsort((graph.row[ends], graph.time[ends - 1], graph.time[ends]))
    position = np.empty(len(ends), np.int64)
    position[by_end] = np.arange(len(ends))
    order = np.argsort(caused, kind="stable")
    number, count = np.unique(rank_trace.thread[launch[launch >= 0]], return_counts=True)
    points = np.flatnonzero(is_host)
    return _Rank(
        weight=graph.weight + graph.residual,
        thread=thread,
        points=points,
        ended=points[graph.node_kind[points] != CALL_BEGINS],
        caused=caused[order],
        last=ends[by_end[np.maximum.accumulate(position[order])]],
        launches=dict(zip(number.tolist(), count.tolist(), strict=True)),
    )


def _busy_at(rank_trace: RankTrace, known: _Rank, time: int) -> int:
    """Of the threads busy at a time the one with most launches, else the last to be busy."""
    host = host_time(rank_trace)
    busy = [
        (until, known.launches.get(thread, 0), thread)
        for thread in host.threads.tolist()
        if (until := busy_until(host, thread, time)) is not None
    ]
    return int(max(busy)[2]) if busy else known.main


def _beyond(graph: Graph, known: _Rank, thread: int, mine: int, begin: int, end: int) -> Steps:
    """The chain of a time after the last point of a thread (-1: it has none).

    The thread goes on from there, or from where another one let it go on.
    """
    done = int(np.searchsorted(graph.time[known.ended], end, side="left")) - 1
    other = int(known.ended[done]) if done >= 0 else -1
    if mine >= 0 and not (
        other >= 0 and known.thread[other] != thread and lets_go_on(graph.time[mine], graph.time[other], end)
    ):
        cause, kind = mine, HOST
    else:
        cause, kind = other, HANDOFF
    if cause < 0:
        return _step(begin, end, ORIGIN, NO_THREAD, thread)
    rest = _step(int(graph.time[cause]), end, kind, int(known.thread[cause]), thread)
    return joined([_back(graph, known, cause, begin), rest])


def _back(graph: Graph, known: _Rank, node: int, begin: int) -> Steps:
    """The binding edges from a node back to `begin`, as steps; their start and end are not in order yet."""
    edges = binding_chain(graph.first, graph.source, known.weight, graph.time, node, begin)[::-1]
    source = graph.source[edges].astype(np.int64)
    target = np.append(source[1:], node)[: len(edges)]
    steps = Steps(
        start=np.where(source == 0, begin, graph.time[source]),
        end=graph.time[target],
        kind=graph.kind[edges].astype(np.int64),
        row=graph.row[target].astype(np.int64),
        giver=known.thread[source],
        thread=known.thread[target],
        inferred=graph.inferred[edges],
    )
    head = int(source[0]) if len(edges) else node
    if head == 0 or graph.time[head] <= begin:
        return steps
    # As early as the first point: nothing tells what came before.
    before = _step(begin, int(graph.time[head]), ORIGIN, NO_THREAD, int(known.thread[head]))
    return joined([before, steps])


def _step(start: int, end: int, kind: int, giver: int, thread: int) -> Steps:
    start_, end_, kind_, row, giver_, thread_ = np.array([[start], [end], [kind], [-1], [giver], [thread]])
    return Steps(start_, end_, kind_, row, giver_, thread_, np.zeros(1, np.bool_))


def joined(chains: Sequence[Steps]) -> Steps:
    """One chain after the other."""
    return Steps(*(np.concatenate(columns) for columns in zip(*chains, strict=True)))
