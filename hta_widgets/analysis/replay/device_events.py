"""The device's side of a dependency graph: its work in an order in which causes come first.

An event comes right behind the begin of the call that launched it. A stream runs in order even where two
threads launch into it, so along a stream the place is the running maximum of the launches; events without a
recorded launch are placed by the same rule. Start times give no order across streams: the clocks of host and
device are skewed, and the device may run far behind.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
import pandas as pd

from hta_widgets.analysis.replay.host_points import HostPoints, named
from hta_widgets.arrays import Bool, Int32, Int64
from hta_widgets.jit import kernel
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.ordering import among, order_in_groups
from hta_widgets.trace.rank_trace import RankTrace

STREAM_WAITS = re.compile("StreamWaitEvent")


class DeviceEvents(NamedTuple):
    """The device work of a rank, in the order of the graph. Arrays of one value per event:"""

    row: Int32  # row
    # int64 ns
    start: Int64
    end: Int64
    stream: Int32  # index of its (device, stream); gpu: int32 index of its device
    gpu: Int32
    launched: Int32  # the host point where its launching call begins, -1 for none recorded
    placed: Int32  # the host point that it comes right behind in the order, -1 for before all
    previous: Int32  # the event before it on its stream, -1 for none
    # bool
    is_kernel: Bool
    is_copy: Bool
    is_communication: Bool
    after_wait: Bool  # launched right after a call that lets a stream wait for an event
    streams: int  # number of streams


def device_rows(rank_trace: RankTrace) -> Int64:
    """The rows that are device work (no waits), in file order."""
    return np.flatnonzero(rank_trace.is_device & (rank_trace.event_class != EventClass.SYNC))


def streams_of(rank_trace: RankTrace, rows: Int64) -> tuple[Int64, dict[tuple[int, int], int]]:
    """Index of the (device, stream) of each of these rows, and of each (device, stream)."""
    gpu, gpus = pd.factorize(rank_trace.device[rows], sort=True)
    number, numbers = pd.factorize(rank_trace.stream[rows], sort=True)
    index, keys = pd.factorize(gpu * len(numbers) + number, sort=True)
    pairs = zip(gpus[keys // len(numbers)].tolist(), numbers[keys % len(numbers)].tolist(), strict=True)
    return index.astype(np.int64), {pair: at for at, pair in enumerate(pairs)}


def device_events(rank_trace: RankTrace, rows: Int64, stream: Int64, host: HostPoints) -> DeviceEvents:
    """The device work of a rank in the order of the graph.

    Args:
        rows: of device work; ``stream``: the index of the stream of each.
    """
    by_stream = order_in_groups(stream, rank_trace.start[rows], rank_trace.end[rows])
    rows, stream = rows[by_stream], stream[by_stream]
    by = host.launched_by[rows]
    launched = np.where(by >= 0, host.begin_of_row[by], np.int32(-1))
    placed = launched.copy()
    _running_maximum(placed, stream)
    order = np.lexsort((rank_trace.start[rows], placed))
    position = np.empty(len(rows), np.int32)
    position[order] = np.arange(len(rows), dtype=np.int32)
    first = np.append(True, stream[1:] != stream[:-1])
    previous = np.where(first, np.int32(-1), np.append(np.int32(-1), position[:-1]))
    rows, event_class = rows[order], rank_trace.event_class[rows[order]]
    return DeviceEvents(
        row=rows.astype(np.int32),
        start=rank_trace.start[rows],
        end=rank_trace.end[rows],
        stream=stream[order].astype(np.int32),
        gpu=pd.factorize(rank_trace.device[rows], sort=True)[0].astype(np.int32),
        launched=launched[order],
        placed=placed[order],
        previous=previous[order],
        is_kernel=(event_class != EventClass.MEMORY_COPY) & (event_class != EventClass.MEMORY_SET),
        is_copy=event_class == EventClass.MEMORY_COPY,
        is_communication=event_class == EventClass.COMMUNICATION,
        after_wait=_after_wait(rank_trace, host)[host.launched_by[rows]],
        streams=int(stream.max()) + 1,
    )


def _after_wait(rank_trace: RankTrace, host: HostPoints) -> Bool:
    """For each row, and for none, whether it is the first launch after a call that lets a stream wait."""
    first = np.zeros(rank_trace.n + 1, np.bool_)
    launching = np.flatnonzero(host.launches > 0)
    launching = launching[np.argsort(rank_trace.start[launching], kind="stable")]
    waits = np.flatnonzero(among(rank_trace.name, np.flatnonzero(named(rank_trace, STREAM_WAITS)).tolist()))
    waits = waits[~rank_trace.is_device[waits]]
    following = np.searchsorted(rank_trace.start[launching], rank_trace.start[waits], side="right")
    first[launching[following[following < len(launching)]]] = True
    return first


@kernel
def _running_maximum(values: Int32, lane: Int64) -> None:
    for i in range(1, len(values)):
        if lane[i] == lane[i - 1] and values[i] < values[i - 1]:
            values[i] = values[i - 1]
