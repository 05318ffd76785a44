"""All dependencies of a recording, node by node in the order of the graph."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hta_widgets.analysis.replay.delays import Delays
from hta_widgets.analysis.replay.device_edges import launched_event, orphan
from hta_widgets.analysis.replay.device_events import DeviceEvents
from hta_widgets.analysis.replay.edge_list import Edges, Nodes, Whole, add, empty, targets
from hta_widgets.analysis.replay.host_edges import CLOCK_SLACK, call_ends, call_or_mark
from hta_widgets.analysis.replay.host_points import NO_WAIT, HostPoints
from hta_widgets.analysis.replay.kinds import CALL_BEGINS, CALL_ENDS, COPY, DEVICE, SYNC
from hta_widgets.analysis.replay.progress import NODE, THREAD, TIME, Progress, start
from hta_widgets.arrays import Bool, Int32, Int64
from hta_widgets.jit import inline, kernel
from hta_widgets.trace.ordering import among, unique


def dependencies(
    nodes: Nodes,
    host: HostPoints,
    device: DeviceEvents,
    delays: Delays,
    waits: tuple[Int64, Int64],
    infer: bool,
    names: npt.NDArray[np.int32],
    allocates: Bool,
) -> tuple[Int32, Edges]:
    """The dependencies of every node: the edges of node v are ``first[v]`` to ``first[v + 1]``.

    Every edge leads from a lower to a higher node, and at the measured times none is violated.

    Args:
        waits: (effect, cause) rows of the recorded waits between streams.
        infer: the recording holds no such waits, so they have to be inferred.
        names: name code of each row; ``allocates``: for each code whether such calls allocate or free.
    """
    event_of_row = np.full(len(names), -1, np.int32)
    event_of_row[device.row] = np.arange(len(device.row), dtype=np.int32)
    wait_first, wait_cause = _sound_waits(
        nodes, device, event_of_row[waits[0]].astype(np.int64), event_of_row[waits[1]].astype(np.int64)
    )
    by_end = np.argsort(device.end, kind="stable")
    size = _most(host, device, len(wait_cause))
    edges = empty(size)
    seen = start(len(host.threads), device.streams, len(host.time))
    ends = nodes.time[nodes.event[by_end] + 1]
    first = _fill(
        edges, nodes, host, device, delays, seen, wait_first, wait_cause, infer, by_end, ends, event_of_row
    )
    count = int(first[-1])
    edges = Edges(
        source=edges.source[:count],
        kind=edges.kind[:count],
        weight=edges.weight[:count],
        residual=edges.residual[:count],
        thread=edges.thread[:count],
    )
    _usual_return(nodes, first, edges, names, allocates)
    return first, edges


def _sound_waits(nodes: Nodes, device: DeviceEvents, effect: Int64, cause: Int64) -> tuple[Int64, Int64]:
    """The causes that each event waits for, as offsets and events; a wait that time contradicts is none."""
    known = (effect >= 0) & (cause >= 0) & (cause < effect)
    effect, cause = effect[known], cause[known]
    done = nodes.time[nodes.event[cause] + 1] <= nodes.time[nodes.event[effect]] + CLOCK_SLACK
    effect, cause = effect[done], cause[done]
    order = np.argsort(effect, kind="stable")
    offsets = np.searchsorted(effect[order], np.arange(len(device.row) + 1))
    return offsets.astype(np.int64), cause[order]


def _most(host: HostPoints, device: DeviceEvents, waits: int) -> int:
    """More edges than there can be."""
    across = int(device.is_communication.sum()) + int((host.waits != NO_WAIT).sum())
    return 4 * (len(host.time) + len(device.row)) + waits + device.streams * across + 8


@kernel
def _fill(
    edges: Edges,
    nodes: Nodes,
    host: HostPoints,
    device: DeviceEvents,
    delays: Delays,
    seen: Progress,
    wait_first: Int64,
    wait_cause: Int64,
    infer: bool,
    by_end: Int64,
    ends: Int64,
    event_of_row: Int32,
) -> Int32:
    """Fill the list of edges; returns the first edge of each node."""
    first = np.zeros(len(nodes.time) + 1, np.int32)
    at: Whole = np.int64(0)
    d = np.int64(0)
    for h in range(-1, len(host.time)):
        if h >= 0:
            node = nodes.host[h]
            first[node] = at
            if host.kind[h] == CALL_ENDS:
                at = call_ends(
                    edges, at, h, nodes, host, device, delays, seen, by_end, ends, event_of_row
                )  # fmt: skip
            else:
                at = call_or_mark(edges, at, h, nodes, host, seen)
            _note_point(h, nodes, host, seen)
        while d < len(device.row) and device.placed[d] == h:
            begin = nodes.event[d]
            first[begin] = at
            if device.launched[d] < 0:
                at = orphan(edges, at, d, nodes, device)
            else:
                waits = wait_cause[wait_first[d] : wait_first[d + 1]]
                at = launched_event(
                    edges, at, d, nodes, device, delays, seen, waits, infer, by_end, ends
                )  # fmt: skip
                _note_event(d, h, host, device, delays, seen)
            first[begin + 1] = at
            at = add(edges, at, begin, DEVICE, nodes.time[begin + 1] - nodes.time[begin], -1)
            d += 1
    first[len(nodes.time)] = at
    return first


@inline
def _note_point(h: Whole, nodes: Nodes, host: HostPoints, seen: Progress) -> None:
    node = nodes.host[h]
    seen.last[host.thread[h]] = node
    if host.kind[h] != CALL_BEGINS:
        seen.done[NODE], seen.done[TIME], seen.done[THREAD] = node, nodes.time[node], host.thread[h]


@inline
def _note_event(
    d: Whole, h: Whole, host: HostPoints, device: DeviceEvents, delays: Delays, seen: Progress
) -> None:
    if device.launched[d] == h:
        seen.last_of_thread[host.thread[h]] = d
        if delays.queue and seen.last_of_call[h] < 0:
            seen.launching[seen.launched[0]] = h
            seen.launched[0] += 1
        seen.last_of_call[h] = d
    seen.last_event[device.stream[d]] = d


def _usual_return(
    nodes: Nodes, first: Int32, edges: Edges, names: npt.NDArray[np.int32], allocates: Bool
) -> None:
    """Calls return as long after what they waited for as is usual for their name; the rest is residual.

    A call that allocates or frees does its own work then, and takes as long where it need not wait.
    """
    waits = np.flatnonzero(among(edges.kind, (SYNC, COPY)))
    target = targets(first, waits)
    measured = nodes.time[target] - nodes.time[edges.source[waits]]
    binding = edges.weight[waits] + edges.residual[waits] == measured
    waits, target, measured = waits[binding], target[binding], measured[binding]
    name = names[nodes.row[target]]
    for code in unique(name).tolist():
        mine = name == code
        weight = np.minimum(measured[mine], int(np.median(measured[mine])))
        edges.weight[waits[mine]] = weight
        edges.residual[waits[mine]] = measured[mine] - weight
        if allocates[code]:
            own = first[target[mine]]
            whole = nodes.time[target[mine]] - nodes.time[edges.source[own]]
            edges.weight[own] = np.minimum(whole, int(np.median(measured[mine])))
