"""Where a replay puts each event of a rank, also those that are no points of the dependency graph.

Device work and calls that launch, wait or allocate are points. Whatever else a thread did lies between two
points of its own, and stays there: at the same share of the time between them, not counting time that an edit
cuts out. So what is nested stays nested, and what comes first stays first. Before its first point a thread
begins at the origin; events of a thread or stream without points lie between those of all threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from hta_widgets.analysis.replay.graph import Graph
from hta_widgets.analysis.replay.kinds import CALL_BEGINS, CALL_ENDS, EVENT_ENDS, EVENT_STARTS, MARK
from hta_widgets.analysis.replay.plan import Plan
from hta_widgets.arrays import Float64, Int64, UInt8
from hta_widgets.trace.ordering import among
from hta_widgets.trace.rank_trace import RankTrace

PLACED = ("replayed", "between", "elsewhere")
POINT, BETWEEN, ELSEWHERE = range(len(PLACED))


class Placed(NamedTuple):
    """Of each row: start, end (int64 ns on the job's axis), how that is known (index into `PLACED`)."""

    start: Int64
    end: Int64
    how: UInt8


class Line(NamedTuple):
    """Points in order: when they happened, when they would, and the time up to each that edits leave (ns)."""

    recorded: Int64
    replayed: Int64
    kept: Callable[[Int64], Float64]

    def starts(self, time: Int64) -> Int64:
        """Of what started at these times: behind the last point until then."""
        return self._between(time, np.searchsorted(self.recorded, time, side="right") - 1)

    def ends(self, time: Int64) -> Int64:
        """Of what ended at these times: before the first point from then on."""
        return self._between(time, np.searchsorted(self.recorded, time, side="left") - 1)

    def _between(self, time: Int64, before: Int64) -> Int64:
        last = len(self.recorded) - 1
        low, high = np.maximum(before, 0), np.minimum(before + 1, last)
        at, since, until = (self.kept(times) for times in (time, self.recorded[low], self.recorded[high]))
        room = (self.replayed[high] - self.replayed[low]).astype(np.float64)
        share = np.divide(at - since, until - since, out=np.zeros(len(time)), where=until > since)
        inside = self.replayed[low] + np.floor(np.clip(share, 0.0, 1.0) * room + 0.5).astype(np.int64)
        beyond = np.floor(at - since + 0.5).astype(np.int64)  # before the first point, or after the last one
        return np.where((before < 0) | (before == last), self.replayed[low] + beyond, inside)


def placed(rank_trace: RankTrace, plan: Plan, time: Int64) -> Placed:
    """Where the events of a rank are in a replay.

    Args:
        time: when each node of the graph happens, ns from its origin.
    """
    out = Placed(np.empty(rank_trace.n, np.int64), np.empty(rank_trace.n, np.int64),
                 np.full(rank_trace.n, ELSEWHERE, np.uint8))  # fmt: skip
    rest = np.ones(rank_trace.n, np.bool_)
    for rows, line in _lines(rank_trace, plan, time):
        out.start[rows], out.end[rows] = line.starts(rank_trace.start[rows]), line.ends(rank_trace.end[rows])
        out.how[rows], rest[rows] = BETWEEN, False
    everywhere = every_thread(plan, time)
    rows = np.flatnonzero(rest)
    out.start[rows], out.end[rows] = (
        everywhere.starts(rank_trace.start[rows]), everywhere.ends(rank_trace.end[rows])
    )  # fmt: skip
    graph = plan.graph
    for column, kinds in ((out.start, (CALL_BEGINS, EVENT_STARTS)), (out.end, (CALL_ENDS, EVENT_ENDS))):
        nodes = np.flatnonzero(np.isin(graph.node_kind, kinds))
        column[graph.row[nodes]] = graph.origin_ns + time[nodes]
        out.how[graph.row[nodes]] = POINT
    np.maximum(out.start, out.end, out=out.end)  # what took no time may lie on several points
    return out


def _lines(rank_trace: RankTrace, plan: Plan, time: Int64) -> Iterator[tuple[Int64, Line]]:
    """The rows of each thread and of each stream that has points, and its points."""
    graph = plan.graph
    host = rank_trace.on_host
    for index, thread in enumerate(graph.threads.tolist()):
        line = of_thread(plan, time, index)
        if line is not None:
            yield np.flatnonzero(host & (rank_trace.thread == thread)), line
    points = np.flatnonzero(among(graph.node_kind, (EVENT_STARTS, EVENT_ENDS)))
    width = int(rank_trace.device.max(initial=0)) + 2
    place = rank_trace.stream * width + rank_trace.device + 1
    of_point = place[graph.row[points]]
    for where in np.unique(of_point).tolist():
        yield np.flatnonzero(~host & (place == where)), _line(plan, time, points[of_point == where], _all)


def of_thread(plan: Plan, time: Int64, index: int) -> Line | None:
    """The points of a thread (index into `Graph.threads`), None if it has none."""
    graph = plan.graph
    points = _on_host(graph)
    mine = points[graph.thread[graph.first[:-1][points]] == index]
    return _line(plan, time, mine, partial(plan.kept, index)) if len(mine) else None


def _on_host(graph: Graph) -> Int64:
    return np.flatnonzero(among(graph.node_kind, (CALL_BEGINS, CALL_ENDS, MARK)))


def every_thread(plan: Plan, time: Int64) -> Line:
    """The points of all threads."""
    return _line(plan, time, _on_host(plan.graph), _all)


def _line(plan: Plan, time: Int64, nodes: Int64, kept: Callable[[Int64], Float64]) -> Line:
    graph = plan.graph
    nodes = np.append(0, nodes[np.argsort(graph.time[nodes], kind="stable")])  # the origin stays where it is
    later = np.maximum.accumulate(time[nodes])
    return Line(graph.origin_ns + graph.time[nodes], graph.origin_ns + later, kept)


def _all(time: Int64) -> Float64:
    return time.astype(np.float64)
