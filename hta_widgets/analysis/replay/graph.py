"""The dependency graph of one rank: what each call and each piece of device work had to wait for.

A max-plus graph as flat arrays. A node happens at the latest of (time of the source + weight + residual) over
its edges; nodes are in an order in which causes come first, so a replay is one pass (`passes`). The weight of
an edge is what is usual or, if less, what was measured; what no weight explains is the residual of the latest
cause. So the replay of an unchanged recording is exact, and without residuals it tells how much the graph
explains (`quality`).

The dependencies are those of HTA's critical path analysis (`CPGraph`), with launch queues, hand-offs between
threads and waits between streams that no event records added.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.replay.delays import Delays, delays_of
from hta_widgets.analysis.replay.device_events import (
    STREAM_WAITS,
    DeviceEvents,
    device_events,
    device_rows,
    streams_of,
)
from hta_widgets.analysis.replay.edge_list import Edges, Nodes, targets
from hta_widgets.analysis.replay.edges import dependencies
from hta_widgets.analysis.replay.elastic import shared_delays
from hta_widgets.analysis.replay.graph_launches import waits_of_graphs
from hta_widgets.analysis.replay.groups import Group, groups_of
from hta_widgets.analysis.replay.host_points import ALLOCATES, NOT_RECORDED, HostPoints, host_points, named
from hta_widgets.analysis.replay.kinds import EVENT_ENDS, EVENT_STARTS, INFERRED, START, SYNC
from hta_widgets.analysis.replay.marks import marks_of
from hta_widgets.arrays import Bool, Int32, Int64, UInt8
from hta_widgets.engine import checkpoint
from hta_widgets.jit import kernel
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.ordering import among
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.waits import (
    CONTEXT_SYNC,
    EVENT_SYNC,
    STREAM_SYNC,
    STREAM_WAIT,
    named_rows,
    stream_waits,
)


@dataclass(frozen=True, eq=False)
class Graph:
    """The dependency graph of a rank: n nodes, m edges, those into the same node next to each other.

    Attributes:
        time: int64[n], measured, ns from ``origin_ns``.
        row: int32[n], row of the rank, -1 for the origin and marks. node_kind: uint8[n] (`kinds`).
        mark: int64[k], the node of each boundary of iterations, as `marks.Marks` lists them; -1 for none.
        first: int32[n + 1]: the edges of node v are first[v] to first[v + 1].
        source: int32[m], node. kind: uint8[m]. weight, residual: int64[m], ns.
        thread: int32[m], index into ``threads`` (`RankTrace.thread`) of host edges, -1 on the device.
        inferred: bool[m], no event records this dependency.
        group: int32[m], index into ``groups``: edges that edits of a slider treat alike.
        pair_edge, pair_device (int32[p], edges), pair_share (int64[p], ns): see `elastic.shared_delays`.
        latency, graph_latency, gap: usual latency of launches and of launches of graphs, and usual gap on a
            stream, ns. queue: launches that the queue holds, 0
            where it was never full.
        waits_recorded: the recording holds the waits between streams.
        origin_ns: time of the origin on the job's axis.
    """

    time: Int64
    row: Int32
    node_kind: UInt8
    mark: Int64
    first: Int32
    source: Int32
    kind: UInt8
    weight: Int64
    residual: Int64
    thread: Int32
    threads: Int64
    inferred: Bool
    group: Int32
    groups: tuple[Group, ...]
    pair_edge: Int32
    pair_device: Int32
    pair_share: Int64
    latency: int
    graph_latency: int
    gap: int
    queue: int
    waits_recorded: bool
    origin_ns: int

    @property
    def extent(self) -> int:
        """From the first point to the last, in ns."""
        return int(self.time.max())

    @property
    def last(self) -> int:
        """The node that happens last."""
        return len(self.time) - 1 - int(self.time[::-1].argmax())

    @property
    def target(self) -> Int32:
        """The node that each edge leads to."""
        return np.repeat(np.arange(len(self.time), dtype=np.int32), np.diff(self.first))


@memoize_per_rank()
def graph_of(rank_trace: RankTrace) -> Graph | None:
    """The dependency graph of a rank, built once; None without device work."""
    rows = device_rows(rank_trace)
    if not len(rows):
        return None
    stream, streams = streams_of(rank_trace, rows)
    marks = marks_of(rank_trace)
    host = host_points(rank_trace, rows, streams, (marks.time, marks.thread))
    device = device_events(rank_trace, rows, stream, host)
    checkpoint()
    delays = delays_of(rank_trace, host, device)
    origin = min(int(times.min()) for times in (device.start, host.time) if len(times))
    nodes = _nodes(host, device, origin)
    waits, recorded = _stream_waits(rank_trace)
    effect, cause = waits_of_graphs(rank_trace, device)
    waits = np.append(waits[0], effect), np.append(waits[1], cause)
    allocates = named(rank_trace, ALLOCATES)
    first, edges = dependencies(nodes, host, device, delays, waits, not recorded, rank_trace.name, allocates)
    checkpoint()
    groups, group = groups_of(rank_trace, nodes, first, edges, host.launches)
    pairs = shared_delays(nodes, first, edges, device, delays)
    return _graph(nodes, host, first, edges, groups, group, pairs, delays, recorded, origin, len(marks.time))


def _nodes(host: HostPoints, device: DeviceEvents, origin: int) -> Nodes:
    """Number the points: behind each host point the events that are placed there, start and end next."""
    count = 1 + len(host.time) + 2 * len(device.row)
    nodes = Nodes(
        time=np.zeros(count, np.int64),
        row=np.full(count, -1, np.int32),
        kind=np.full(count, START, np.uint8),
        host=np.empty(len(host.time), np.int32),
        event=np.empty(len(device.row), np.int32),
    )
    _number(host, device, origin, nodes)
    return nodes


@kernel
def _number(host: HostPoints, device: DeviceEvents, origin: int | np.int64, nodes: Nodes) -> None:
    node, d = 1, 0
    for h in range(-1, len(host.time)):
        if h >= 0:
            nodes.host[h] = node
            nodes.time[node], nodes.row[node] = host.time[h] - origin, host.row[h]
            nodes.kind[node] = host.kind[h]
            node += 1
        while d < len(device.row) and device.placed[d] == h:
            nodes.event[d] = node
            nodes.time[node], nodes.time[node + 1] = device.start[d] - origin, device.end[d] - origin
            nodes.row[node] = nodes.row[node + 1] = device.row[d]
            nodes.kind[node], nodes.kind[node + 1] = EVENT_STARTS, EVENT_ENDS
            node += 2
            d += 1


def _stream_waits(rank_trace: RankTrace) -> tuple[tuple[Int64, Int64], bool]:
    """(effect, cause) rows of the waits between streams, and whether the recording holds them.

    Where the profiler recorded what calls wait for, and no call let a stream wait, there are none.
    """
    if not (rank_trace.event_class == EventClass.SYNC).any():
        return (np.empty(0, np.int64), np.empty(0, np.int64)), False
    between = len(named_rows(rank_trace, STREAM_WAIT)) > 0
    of_calls = len(named_rows(rank_trace, EVENT_SYNC, STREAM_SYNC, CONTEXT_SYNC)) > 0
    recorded = bool(named(rank_trace, STREAM_WAITS).any())
    return stream_waits(rank_trace), between or (of_calls and not recorded)


def _inferred(nodes: Nodes, host: HostPoints, first: Int32, edges: Edges) -> Bool:
    """Which edges no event records: by their kind, or since nothing tells what the call waits for."""
    inferred = among(edges.kind, INFERRED)
    recorded = np.zeros(len(nodes.time), np.bool_)
    recorded[nodes.host[host.awaited != NOT_RECORDED]] = True
    waits = np.flatnonzero(edges.kind == SYNC)
    inferred[waits] = ~recorded[targets(first, waits)]
    return inferred


def _graph(
    nodes: Nodes,
    host: HostPoints,
    first: Int32,
    edges: Edges,
    groups: tuple[Group, ...],
    group: Int32,
    pairs: tuple[Int32, Int32, Int64],
    delays: Delays,
    recorded: bool,
    origin: int,
    marks: int,
) -> Graph:
    mark = np.full(marks, -1, np.int64)
    is_mark = host.mark >= 0
    mark[host.mark[is_mark]] = nodes.host[is_mark]
    return Graph(
        time=nodes.time,
        row=nodes.row,
        node_kind=nodes.kind,
        mark=mark,
        first=first,
        source=edges.source,
        kind=edges.kind,
        weight=edges.weight,
        residual=edges.residual,
        thread=edges.thread,
        threads=host.threads,
        inferred=_inferred(nodes, host, first, edges),
        group=group,
        groups=groups,
        pair_edge=pairs[0],
        pair_device=pairs[1],
        pair_share=pairs[2],
        latency=delays.latency,
        graph_latency=delays.graph_latency,
        gap=delays.gap,
        queue=delays.queue,
        waits_recorded=recorded,
        origin_ns=origin,
    )
