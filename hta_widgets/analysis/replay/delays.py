"""How long launches, gaps and calls of a recording usually take, and how many launches its queue holds."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd

from hta_widgets.analysis.core.step_function import time_with
from hta_widgets.analysis.replay.device_events import DeviceEvents
from hta_widgets.analysis.replay.host_points import HostPoints
from hta_widgets.arrays import Bool, Int64
from hta_widgets.trace.ordering import first_of_each, grouped
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.reader.schema import NULL

# Of a recording in which nothing shows them, ns.
LATENCY, GAP, CALL = 6_000, 1_000, 5_000
BACK_TO_BACK = 20_000
"""A longer gap is none between events that were both waiting for their stream, ns."""

IDLE = 10_000
"""A device that has idled so long before the work of a graph was waiting for its launch, ns."""
PREPARED = 4
"""Latencies after its call returns in which a graph has started."""

QUEUE_FROM = 900
"""No launch queue that holds less was ever seen full."""
AT_PLATEAU = 0.97
"""The queue counts as full from this share of its greatest length on."""
HELD_UP, ENOUGH = 3, 5
"""A full queue holds so many launches up for more than this many times their usual duration."""


class Delays(NamedTuple):
    """What is usual in a recording."""

    # ns from the begin of a call to the start of the kernel that it launched, on an idle stream (median)
    latency: int
    graph_latency: int  # the same of calls that launch a graph, whose events they prepare first
    latency_of: Int64  # ns for each host point: that of its call
    gap: int  # ns from event to event of a stream that has more to do (median)
    launch: int  # ns that a call takes that launches a kernel (median)
    # int64 ns for each host point: median of the launching calls of its name that no full queue held up, 0
    # without any
    own: Int64
    queue: int  # launches that the queue holds, 0 where none was seen full
    blocked: Bool  # for each host point: a call that the full queue held up


def delays_of(rank_trace: RankTrace, host: HostPoints, device: DeviceEvents) -> Delays:
    """The usual delays of a rank."""
    has, begun = device.launched >= 0, device.previous >= 0
    any_call = len(host.time) > 0
    called = host.time[device.launched] if any_call else device.start
    call = host.row[device.launched] if any_call else device.row
    before = np.maximum(device.previous, 0)
    gap = device.start - device.end[before]
    other_call = ~begun | (device.launched[before] != device.launched)
    until = _busy_until(device)
    found_idle = has & device.is_kernel & other_call & (called > until)
    latency = _median((device.start - called)[found_idle], LATENCY)
    is_graph = host.launches[host.row] > 1
    of_graph = is_graph[device.launched] if any_call else has
    waited_for = has & other_call & of_graph & (device.start - until > IDLE)
    # A graph starts as its launching call returns: what starts much later waited for something else.
    duration = rank_trace.dur[call]
    waited_for &= device.start - called < duration + PREPARED * latency
    of_graphs = (device.start - called)[waited_for]
    graph_latency = _median(of_graphs, latency) if len(of_graphs) >= ENOUGH else latency
    queued = has & begun & (device.start - called > 4 * max(latency, 1_000))
    queued &= (gap > -1_000) & (gap < BACK_TO_BACK)

    launching = np.flatnonzero(host.launches > 0)
    own = _own_times(rank_trace, launching)
    queue, blocked = _queue(rank_trace, host, device, called, own)
    if queue:  # else it held no call up
        free = _own_times(rank_trace, launching[~blocked[launching]])
        own = np.where(free > 0, free, own)
    of_kernels = host.launched_by[device.row[device.is_kernel & has]]
    of_kernels = of_kernels[host.launches[of_kernels] == 1]
    return Delays(
        latency=latency,
        graph_latency=graph_latency,
        latency_of=np.where(is_graph, graph_latency, latency),
        gap=max(_median(gap[queued], GAP), 0),
        launch=_median(rank_trace.dur[of_kernels], CALL),
        own=own[rank_trace.name[host.row]],
        queue=queue,
        blocked=blocked[host.row],
    )


def _busy_until(device: DeviceEvents) -> Int64:
    """When the device of each event was done with all that comes before the event; NULL before its first."""
    until = np.full(len(device.row), NULL)
    for gpu in range(int(device.gpu.max(initial=-1)) + 1):
        mine = np.flatnonzero(device.gpu == gpu)
        until[mine[1:]] = np.maximum.accumulate(device.end[mine])[:-1]
    return until


def _own_times(rank_trace: RankTrace, calls: Int64) -> Int64:
    """For each name code the median duration of these calls of that name, 0 without any."""
    own, name = np.zeros(len(rank_trace.names), np.int64), rank_trace.name[calls]
    calls = calls[grouped(name)]
    count = np.bincount(name)
    until = np.cumsum(count)
    for code in np.flatnonzero(count).tolist():
        own[code] = np.median(rank_trace.dur[calls[until[code] - count[code] : until[code]]])
    return own


def _median(values: Int64, otherwise: int) -> int:
    return int(np.median(values)) if len(values) else otherwise


def _queue(
    rank_trace: RankTrace, host: HostPoints, device: DeviceEvents, called: Int64, own: Int64
) -> tuple[int, Bool]:
    """How many launches the queue holds (0: never seen full), and for each row whether it held that call up.

    It counts launches, not events: a graph of many kernels is one.
    """
    held, blocked = 0, np.zeros(rank_trace.n, np.bool_)
    for gpu in range(int(device.gpu.max(initial=-1)) + 1):
        mine = np.flatnonzero((device.launched >= 0) & (device.gpu == gpu))
        # each launch in the queue has an event that has not ended
        ended = np.maximum(device.end[mine], called[mine])
        if not time_with(called[mine], ended, QUEUE_FROM):
            continue
        by = host.launched_by[device.row[mine]]
        launch, rows = pd.factorize(by)
        done = np.zeros(len(rows), np.int64)
        np.maximum.at(done, launch, device.end[mine])
        when = called[mine[first_of_each(launch)]]
        order = np.argsort(when, kind="stable")
        in_turn = when[order]
        length = np.empty(len(rows), np.int64)
        first = np.arange(len(rows))
        first[1:][in_turn[1:] == in_turn[:-1]] = 0
        length[order] = np.maximum.accumulate(first)  # earlier launches
        length[order] -= np.searchsorted(np.sort(done, kind="stable"), in_turn, "right")
        longest = int(length.max())
        full = length >= AT_PLATEAU * longest
        held_up = full & (rank_trace.dur[rows] > HELD_UP * own[rank_trace.name[rows]])
        if longest >= QUEUE_FROM and held_up.sum() >= ENOUGH:
            held = longest
            blocked[rows[full]] = True
    return held, blocked
