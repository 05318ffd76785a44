"""The queue of each stream: when each entry entered and left. Built once per rank and filter of names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd

from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.core.step_function import StepFunction
from hta_widgets.analysis.launches.launched import launched, launched_ranks
from hta_widgets.arrays import Int64
from hta_widgets.trace.model import Trace
from hta_widgets.trace.ordering import order_in_groups
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.scope import Scope

SHORTEST_LIMIT: Final = 128  # no known hardware queue is shorter; a short plateau is the program's own rhythm
_PLATEAU_CALLS: Final = 16  # a peak is reached once, a limit again and again
_PLATEAU_SLOWDOWN: Final = 4  # and there a call waits for a place, hence lasts much longer than others


@dataclass(frozen=True)
class Queue:
    """One stream's queue: `row` is the call of an entry that entered (change 1), or the event that left (-1).

    `plateau` is the limit that the queue ran into over the whole trace, None if it did not.
    """

    device: int
    stream: int
    length: StepFunction
    change: Int64
    row: Int64
    device_row: Int64
    plateau: int | None


_FILTERS: Final = 8


def stream_queues(trace: Trace, scope: Scope) -> Iterator[tuple[RankTrace, Queue]]:
    for _, rank_trace, _ in launched_ranks(trace, scope):
        for queue in _of_rank(rank_trace, scope.names):
            if scope.streams is None or queue.stream in scope.streams:
                yield rank_trace, queue


@memoize_per_rank(last=_FILTERS)
def _of_rank(rank_trace: RankTrace, names: tuple[str, ...] | None) -> list[Queue]:
    work = launched(rank_trace)
    at = np.flatnonzero(work.listed(rank_trace, Scope(names=names)))
    # `work` is by call, then by start: of a call's events on one stream the first one leaves the queue.
    place = work.calls[at] * len(work.lanes) + work.lane[at]
    at = at[~pd.Series(place).duplicated().to_numpy()]
    lane, call, rows = work.lane[at], work.calls[at], work.rows[at]
    came = work.came[at]
    left = np.maximum(work.start[at], came)
    time = np.concatenate([came, left])
    change = np.repeat(np.array([1, -1]), len(at))
    at_once = np.concatenate([np.ones(len(at), np.int8), np.where(left == came, 2, 0).astype(np.int8)])
    row, device_row, lane = np.concatenate([call, rows]), np.tile(rows, 2), np.tile(lane, 2)
    order = order_in_groups(lane, time, at_once, device_row)
    bounds = np.searchsorted(lane[order], np.arange(len(work.lanes) + 1))
    queues = []
    for number, (device, stream) in enumerate(work.lanes.tolist()):
        of_lane = order[bounds[number] : bounds[number + 1]]
        if len(of_lane):
            length = StepFunction.of_changes(time[of_lane], change[of_lane])
            entry = length, change[of_lane], row[of_lane]
            queues.append(Queue(device, stream, *entry, device_row[of_lane], _plateau(rank_trace, *entry)))
    return queues


def _plateau(rank_trace: RankTrace, length: StepFunction, change: Int64, row: Int64) -> int | None:
    came = change > 0
    reached, call_ns = length.value[came], rank_trace.dur[row[came]]
    most = int(reached.max(initial=0))
    there = reached == most
    if most < SHORTEST_LIMIT or there.sum() < _PLATEAU_CALLS or there.all():
        return None
    slow = np.median(call_ns[there]) >= _PLATEAU_SLOWDOWN * np.median(call_ns[~there])
    return most if slow else None


def observed_windows(rank_trace: RankTrace, scope: Scope) -> Int64:
    """The windows of a scope; without times, from the rank's first launch to the end of its device work."""
    span = rank_trace.device_span
    if span is None or scope.iterations is not None or scope.window_ns is not None:
        return rank_trace.windows(scope)
    return np.array([[min(int(launched(rank_trace).call_start[0]), span[0]), span[1]]], np.int64)
