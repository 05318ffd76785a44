"""What a device event depends on: its launch, its stream, and work on other streams."""

from __future__ import annotations

import numpy as np

from hta_widgets.analysis.replay.delays import Delays
from hta_widgets.analysis.replay.device_events import DeviceEvents
from hta_widgets.analysis.replay.edge_list import Edges, Nodes, Whole, add, last_until, settle
from hta_widgets.analysis.replay.host_edges import CLOCK_SLACK
from hta_widgets.analysis.replay.kinds import (
    COLLECTIVE,
    LATE,
    LAUNCH,
    LAUNCH_FIRST,
    ORIGIN,
    ORPHAN,
    STREAM,
    WAIT,
)
from hta_widgets.analysis.replay.progress import Progress
from hta_widgets.arrays import Int64
from hta_widgets.jit import inline

UNEXPLAINED = 5_000
"""A shorter delay of a start needs no cause on another stream, ns."""
REACH = 15_000
"""How long before a start such a cause may have ended, ns: at least; slow launches need a longer reach."""


@inline
def orphan(edges: Edges, at: Whole, d: Whole, nodes: Nodes, device: DeviceEvents) -> Whole:
    """An event without a recorded launch starts as long after the one before on its stream as it did."""
    now, previous = nodes.time[nodes.event[d]], device.previous[d]
    if previous < 0:
        return add(edges, at, 0, ORIGIN, now, -1)
    end = nodes.event[previous] + 1
    return add(edges, at, end, ORPHAN, now - nodes.time[end], -1)


@inline
def launched_event(
    edges: Edges,
    at: Whole,
    d: Whole,
    nodes: Nodes,
    device: DeviceEvents,
    delays: Delays,
    seen: Progress,
    waits: Int64,
    infer: bool,
    by_end: Int64,
    ends: Int64,
) -> Whole:
    """An event starts after its launch, the event before on its stream, and what its stream waits for.

    Of what a graph launches only the first event of each stream waits for the launch. The first event of a
    stream keeps its delay: a recording that was cut begins with a full queue.

    What a node of a graph waits for on other streams is never recorded. Where no waits between streams are, a
    collective waits for the last work launched before it on each other stream. What is launched right after a
    call that lets a stream wait may not start before the last collectives have ended, though that did not
    delay it in the recording.

    Args:
        waits: events on other streams that the recording says this one waits for.
        infer: the recording holds no waits between streams.
    """
    low, now, previous = at, nodes.time[nodes.event[d]], device.previous[d]
    in_graph = previous >= 0 and device.launched[previous] == device.launched[d]
    if not in_graph:
        begin = nodes.host[device.launched[d]]
        kind = LAUNCH if previous >= 0 else LAUNCH_FIRST
        at = add(
            edges, at, begin, kind, min(delays.latency_of[device.launched[d]], now - nodes.time[begin]), -1
        )
    if previous >= 0:
        at = _after(edges, at, previous, STREAM, now, nodes, delays)
    for cause in waits:
        at = _after(edges, at, cause, WAIT, now, nodes, delays)
    if infer and device.is_communication[d]:
        at = _across(edges, at, d, now, nodes, device, delays, seen)
    best = settle(edges, nodes.time, low, at, now)
    unexplained = edges.residual[best] > max(UNEXPLAINED, delays.latency)
    if device.streams > 1 and unexplained:
        cause = _just_ended(d, now, nodes, device, delays, by_end, ends, infer and not in_graph)
        if cause >= 0:
            edges.residual[best] = 0
            at = _after(edges, at, cause, LATE, now, nodes, delays)
            best = settle(edges, nodes.time, low, at, now)
    if edges.kind[best] == LAUNCH_FIRST:
        edges.weight[best] += edges.residual[best]
        edges.residual[best] = 0
    if infer and device.after_wait[d] and not device.is_communication[d]:
        at = _across(edges, at, d, now, nodes, device, delays, seen)
    return at


@inline
def _across(
    edges: Edges,
    at: Whole,
    d: Whole,
    now: Whole,
    nodes: Nodes,
    device: DeviceEvents,
    delays: Delays,
    seen: Progress,
) -> Whole:
    """Edges from the last work of other streams: into a collective from other work, and the other way round.

    What had not ended by then is no cause, nor is a copy: what is exchanged was computed.
    """
    for stream in range(device.streams):
        last = seen.last_event[stream]
        if stream == device.stream[d] or last < 0 or device.gpu[last] != device.gpu[d]:
            continue
        other_kind = device.is_communication[last] != device.is_communication[d]
        done = nodes.time[nodes.event[last] + 1] <= now + CLOCK_SLACK
        if other_kind and done and not device.is_copy[last]:
            at = _after(edges, at, last, COLLECTIVE, now, nodes, delays)
    return at


@inline
def _after(
    edges: Edges, at: Whole, cause: Whole, kind: Whole, now: Whole, nodes: Nodes, delays: Delays
) -> Whole:
    """An edge from the end of an event."""
    end = nodes.event[cause] + 1
    return add(edges, at, end, kind, min(delays.gap, now - nodes.time[end]), -1)


@inline
def _just_ended(
    d: Whole,
    now: Whole,
    nodes: Nodes,
    device: DeviceEvents,
    delays: Delays,
    by_end: Int64,
    ends: Int64,
    earlier: bool,
) -> Whole:
    """Work on another stream that ended just before event d starts: communication first.

    It is of the same graph, in which nothing else says what a node depends on, or, if asked, was launched
    earlier. What was launched later is no cause: it only shared the device.
    """
    found = np.int64(-1)
    since = now - max(REACH, 2 * delays.latency + 10_000)
    j = last_until(ends, now + CLOCK_SLACK)
    while j >= 0 and ends[j] >= since:
        cause = by_end[j]
        of_graph = device.launched[cause] == device.launched[d]
        before = cause < d and (of_graph or (earlier and 0 <= device.launched[cause] < device.launched[d]))
        if before and device.stream[cause] != device.stream[d] and device.gpu[cause] == device.gpu[d]:
            if device.is_communication[cause]:
                return np.int64(cause)
            if found < 0:
                found = cause
        j -= 1
    return found
