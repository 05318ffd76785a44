"""Device work with the host calls that launched it, shared by the launch, queue and operator analyses.

Built once per rank and cached with it; a scope then only selects rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

import numpy as np
import pandas as pd

from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.arrays import Bool, Int64
from hta_widgets.engine import checkpoint
from hta_widgets.errors import RECORD_DEVICE, MissingDataError
from hta_widgets.formatting import none_of
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.model import Trace
from hta_widgets.trace.ordering import order_in_groups
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.reader.schema import NULL
from hta_widgets.trace.scope import Scope

ALWAYS: Final = -(1 << 62)  # before any time, and differences with times still fit


class Launched:
    """The device events of a rank whose launching call was recorded, by start of the call, then their own.

    Args:
        waits: of the device (`EventClass.SYNC`), which are no work, are among them.

    Attributes (arrays of equal length):
        rows: int64 row of the device event; ``calls``: row of the call that launched it.
        siblings: int64 number of device events that the same call launched (a graph launches many).
        lane: int64 number of the (device, stream); ``lanes``: int64[k, 2] device and stream of each one with
            device work, ascending.
        free_ns: int64 ns at which all earlier work of the same stream had ended, ALWAYS for the first.
        came: int64 ns at which it was put on its stream, as far as that is known (`RankTrace.launched_at`).
        iteration: int32 iteration of the call.
    """

    def __init__(self, rank_trace: RankTrace, *, waits: bool = False) -> None:
        work = rank_trace.is_device & (waits | (rank_trace.event_class != EventClass.SYNC))
        everything = np.flatnonzero(work)
        linked = np.flatnonzero(rank_trace.launch[everything] >= 0)
        rows = everything[linked]
        calls = rank_trace.launch[rows].astype(np.int64)
        by_call = rank_trace.start[calls]
        order = order_in_groups(np.zeros(len(rows), np.int8), by_call, calls, rank_trace.start[rows])
        self.rows, self.calls = rows[order], calls[order]
        of_call = np.bincount(self.calls, minlength=1)
        self.siblings: Int64 = of_call[self.calls].astype(np.int64)
        self.lanes, lane = _lanes(rank_trace.device[everything], rank_trace.stream[everything])
        at = linked[order]
        self.lane: Int64 = lane[at]
        self.free_ns: Int64 = _stream_free(rank_trace.start[everything], rank_trace.end[everything], lane)[at]
        self.iteration = rank_trace.iteration[self.rows]
        self.start, self.call_start = rank_trace.start[self.rows], rank_trace.start[self.calls]
        came = rank_trace.launched_at(self.rows)
        self.came: Int64 = np.where(came == NULL, self.call_start, came)

    def __len__(self) -> int:
        return len(self.rows)

    def members(self, rank_trace: RankTrace, scope: Scope) -> Int64:
        """Positions of the events that belong to a scope, as `RankTrace.members` defines it."""
        if scope == Scope(ranks=scope.ranks):
            return np.arange(len(self.rows))
        keep = self.listed(rank_trace, scope)
        if scope.iterations is not None:
            keep &= np.isin(self.iteration, scope.iterations)
        if scope.window_ns is not None:
            first, last = scope.window_ns
            keep &= (self.start >= first) & (self.start < last)
        return np.flatnonzero(keep)

    def listed(self, rank_trace: RankTrace, scope: Scope) -> Bool:
        """Which events are on the streams and have the names that a scope lists."""
        listed = np.ones(len(self.rows), np.bool_)
        if scope.streams is not None:
            listed &= np.isin(self.lanes[:, 1], scope.streams)[self.lane]
        if scope.names is not None:
            wanted = set(scope.names)
            named = np.array([text in wanted for text in rank_trace.names], np.bool_)
            listed &= named[rank_trace.name[self.rows]]
        return listed


launched = memoize_per_rank()(Launched)


def launched_ranks(trace: Trace, scope: Scope) -> Iterator[tuple[int, RankTrace, Launched]]:
    """The ranks of `scope` that have device work with a recorded launch, ascending.

    Raises:
        MissingDataError: none of these ranks has any device event, or no launch of one.
    """
    ranks = trace.ranks_of(scope)
    with_launches, with_device = 0, 0
    for rank in ranks:
        checkpoint()
        rank_trace = trace.rank(rank)
        with_device += rank_trace.device_span is not None
        work = launched(rank_trace)
        if len(work):
            with_launches += 1
            yield rank, rank_trace, work
    if ranks and not with_launches:
        which = none_of(ranks)
        raise MissingDataError(
            "launch calls of device events" if with_device else "device events", RECORD_DEVICE, which
        )


def _lanes(device: Int64, stream: Int64) -> tuple[Int64, Int64]:
    """The distinct (device, stream), ascending, and the number of each row's."""
    device_code, devices = pd.factorize(device, sort=True)
    stream_code, streams = pd.factorize(stream, sort=True)
    code = device_code * len(streams) + stream_code
    found = np.flatnonzero(np.bincount(code))
    number = np.zeros(len(devices) * len(streams), np.int64)
    number[found] = np.arange(len(found))
    which = np.divmod(found, max(1, len(streams)))
    return np.stack([devices[which[0]], streams[which[1]]], axis=1), number[code]


def _stream_free(start: Int64, end: Int64, lane: Int64) -> Int64:
    """For each row the time at which all work that started before it on its lane had ended."""
    free = np.full(len(start), ALWAYS, np.int64)
    order = order_in_groups(lane, start)
    bounds = np.searchsorted(lane[order], np.arange(int(lane.max(initial=-1)) + 2))
    for first, stop in pairwise(bounds.tolist()):
        of_lane = order[first:stop]
        free[of_lane[1:]] = np.maximum.accumulate(end[of_lane])[:-1]
    return free
