"""What a point of the host depends on: its thread, another thread, or device work that a call waits for."""

from __future__ import annotations

import numpy as np

from hta_widgets.analysis.replay.delays import Delays
from hta_widgets.analysis.replay.device_events import DeviceEvents
from hta_widgets.analysis.replay.edge_list import Edges, Nodes, Whole, add, last_until, settle
from hta_widgets.analysis.replay.host_points import NO_WAIT, WAITS_FOR_DEVICE, HostPoints
from hta_widgets.analysis.replay.kinds import CALL, COPY, HANDOFF, HOST, ORIGIN, QUEUE, SYNC, WAITING_CALL
from hta_widgets.analysis.replay.progress import NODE, THREAD, TIME, Progress
from hta_widgets.arrays import Int32, Int64
from hta_widgets.jit import inline

OWN_GAP = 50_000
"""A shorter pause of a thread is its own, ns."""
BEFORE_PAUSE = 1_000
"""What ended at most this long after the thread's own last point did not let it go on, ns."""
CLOCK_SLACK = 500
"""An effect may be stamped this much before its cause, ns."""
COPY_SLACK = 1_000
"""A blocking copy may be stamped as done this much after its call, ns."""
SHARED = 2
"""A call also blocks for a copy that runs for one part of both in so many: the device still has the last of
pageable memory to take when the call, which has read all of it, returns."""
RETURN = 3_000
"""A synchronising call returns about this long after what it waits for, ns."""


@inline
def lets_go_on(mine: Whole, other: Whole, now: Whole) -> bool:
    """Whether a thread whose last point is `mine` goes on at `now` because another one ended something."""
    return bool(now - mine > OWN_GAP and other > mine + BEFORE_PAUSE)


@inline
def blocks(begun: Whole, returned: Whole, start: Whole, end: Whole) -> bool:
    """Whether a call returned only when the copy that it ordered was done, or all but done."""
    both = SHARED * (returned - start)
    return bool(end <= returned + COPY_SLACK or both >= max(end - start, returned - begun))


@inline
def call_or_mark(edges: Edges, at: Whole, h: Whole, nodes: Nodes, host: HostPoints, seen: Progress) -> Whole:
    """A call begins, or a mark: after what its thread did before, or what another thread let it do.

    A pause in which another thread ended something was a wait for that thread; the pause's own part is then
    none of it. The first point of a thread hangs on the last of any thread.
    """
    now, thread = nodes.time[nodes.host[h]], host.thread[h]
    mine = seen.last[thread]
    if mine < 0:
        kind = HANDOFF if seen.done[NODE] else ORIGIN
        return add(edges, at, seen.done[NODE], kind, now - seen.done[TIME], thread)
    if seen.done[THREAD] != thread and lets_go_on(nodes.time[mine], seen.done[TIME], now):
        at = add(edges, at, mine, HOST, 0, thread)
        return add(edges, at, seen.done[NODE], HANDOFF, now - seen.done[TIME], thread)
    return add(edges, at, mine, HOST, now - nodes.time[mine], thread)


@inline
def call_ends(
    edges: Edges,
    at: Whole,
    h: Whole,
    nodes: Nodes,
    host: HostPoints,
    device: DeviceEvents,
    delays: Delays,
    seen: Progress,
    by_end: Int64,
    ends: Int64,
    event_of_row: Int32,
) -> Whole:
    """A call ends: after its own time and after the device work that it waits for.

    A copy that is done before its call returns was waited for, and so was one that ran for most of the call,
    as from pageable memory. A launch into a full queue waits for an earlier launch to be done.
    """
    node, thread, begin = nodes.host[h], host.thread[h], host.begin[h]
    low, now, begun = at, nodes.time[node], nodes.time[nodes.host[begin]]
    at = add(edges, at, nodes.host[begin], CALL, now - begun, thread)
    own = seen.last_of_call[begin]
    if own >= 0:
        end = nodes.event[own] + 1
        if device.is_copy[own] and blocks(begun, now, nodes.time[nodes.event[own]], nodes.time[end]):
            edges.weight[low] = min(now - begun, delays.launch)
            at = add(edges, at, end, COPY, min(0, now - nodes.time[end]), thread)
        elif delays.blocked[h]:
            edges.weight[low] = min(now - begun, delays.own[h])
        if delays.queue and seen.launched[0] > delays.queue:
            earlier = seen.launching[seen.launched[0] - 1 - delays.queue]
            end = nodes.event[seen.last_of_call[earlier]] + 1
            at = add(edges, at, end, QUEUE, min(0, now - nodes.time[end]), thread)
    elif host.waits[h] != NO_WAIT:
        awaited = _awaited(h, nodes, host, device, by_end, ends, event_of_row)
        if awaited >= 0:
            edges.weight[low] = min(now - begun, RETURN)
            at = _returns_after(edges, at, awaited, now, thread, nodes)
        else:
            # It did not wait, but may not return before what it asks for either.
            recorded = np.int64(event_of_row[host.awaited_row[h]] if host.awaited_row[h] >= 0 else -1)
            if recorded >= 0:
                at = _returns_after(edges, at, recorded, now, thread, nodes)
            elif host.awaited[h] < 0 and host.waits[h] != WAITS_FOR_DEVICE:
                at = _returns_after(edges, at, seen.last_of_thread[thread], now, thread, nodes)
            else:
                for stream in range(device.streams):
                    if stream == host.awaited[h] or host.waits[h] == WAITS_FOR_DEVICE:
                        at = _returns_after(edges, at, seen.last_event[stream], now, thread, nodes)
    if at > low + 1 and edges.weight[low] < now - begun:
        edges.kind[low] = WAITING_CALL
    settle(edges, nodes.time, low, at, now)
    return at


@inline
def _returns_after(edges: Edges, at: Whole, event: Whole, now: Whole, thread: Whole, nodes: Nodes) -> Whole:
    """An edge from the end of an event into the end of a call, if the event was done by then."""
    if event < 0 or nodes.time[nodes.event[event] + 1] > now + CLOCK_SLACK:
        return at
    end = nodes.event[event] + 1
    return add(edges, at, end, SYNC, min(RETURN, now - nodes.time[end]), thread)


@inline
def _awaited(
    h: Whole,
    nodes: Nodes,
    host: HostPoints,
    device: DeviceEvents,
    by_end: Int64,
    ends: Int64,
    event_of_row: Int32,
) -> Whole:
    """The event that a call which waits returned after, -1 if what it asked for was done before.

    Recorded, or the last to end within the call of what was placed before it began, on the stream that the
    call is recorded to wait for, else on any.
    """
    begin = host.begin[h]
    begun, now = nodes.time[nodes.host[begin]], nodes.time[nodes.host[h]]
    if host.awaited_row[h] >= 0:
        found = np.int64(event_of_row[host.awaited_row[h]])
        if found >= 0:
            end = nodes.event[found] + 1
            inside = begun <= nodes.time[end] <= now + CLOCK_SLACK
            return found if inside and end < nodes.host[h] else np.int64(-1)
    j = last_until(ends, now + CLOCK_SLACK)
    while j >= 0 and ends[j] >= begun:
        found = by_end[j]
        if device.placed[found] <= begin and (host.awaited[h] < 0 or device.stream[found] == host.awaited[h]):
            return np.int64(found)
        j -= 1
    return np.int64(-1)
