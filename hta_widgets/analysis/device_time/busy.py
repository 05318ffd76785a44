"""When each rank's device was busy, and with what: the intervals that breakdowns are computed from.

They are built once per rank (and filter of streams and names) and cached with the rank. A change of the
selected window then only measures them.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.engine import checkpoint
from hta_widgets.errors import RECORD_DEVICE, MissingDataError
from hta_widgets.formatting import none_of
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.model import Trace
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.scope import Scope

_FILTERS = 8
_MEMORY = (EventClass.MEMORY_COPY, EventClass.MEMORY_SET)


class Busy:
    """The busy time of one device side, split by precedence compute > communication > memory.

    Attributes (each an `Intervals`):
        compute: some kernel that is neither a collective nor a copy runs.
        communication, memory: some collective, or some copy or fill, runs.
        exposed_communication: communication runs and compute does not.
        exposed_memory: memory work runs, and neither compute nor communication does.
        overlapped: communication and compute run at once.
        any: anything runs.
    """

    def __init__(self, compute: Intervals, communication: Intervals, memory: Intervals) -> None:
        self.compute, self.communication, self.memory = compute, communication, memory
        self.exposed_communication = communication - compute
        self.overlapped = communication & compute
        foreground = compute | communication
        self.exposed_memory = memory - foreground
        self.any = foreground | memory


class _Device:
    """The device work of a rank in order of start."""

    def __init__(self, rank_trace: RankTrace) -> None:
        rows = np.flatnonzero(rank_trace.is_device & (rank_trace.event_class != EventClass.SYNC))
        self.rows = rows[np.argsort(rank_trace.start[rows], kind="stable")]
        self.start = rank_trace.start[self.rows]
        self.end = rank_trace.end[self.rows]
        self.event_class = rank_trace.event_class[self.rows]


device_work = memoize_per_rank()(_Device)


def busy(rank_trace: RankTrace, scope: Scope) -> Busy:
    """The busy time of one rank under the stream and name filters of `scope`, over the whole trace.

    Device events of unknown class count as compute: the device runs something that is neither a recognised
    collective nor a copy. Waits (`cuda_sync` events, MTIA's `event_wait`) are not work and count nowhere.
    """
    return _busy(rank_trace, scope.streams, scope.names)


def computing(rank_trace: RankTrace) -> Intervals:
    """When kernels compute that are known to, whatever else runs."""
    rows = rank_trace.is_device & (rank_trace.event_class == EventClass.COMPUTE)
    return Intervals.union(rank_trace.start[rows], rank_trace.end[rows])


def device_ranks(trace: Trace, scope: Scope) -> Iterator[tuple[int, RankTrace]]:
    """The ranks of `scope` that have device events, ascending, each with its trace.

    Raises:
        MissingDataError: none of these ranks has any device event.
    """
    ranks = trace.ranks_of(scope)
    with_device = 0
    for rank in ranks:
        checkpoint()
        rank_trace = trace.rank(rank)
        if rank_trace.device_span is None:
            continue
        with_device += 1
        yield rank, rank_trace
    if ranks and not with_device:
        raise MissingDataError(
            "device events",
            RECORD_DEVICE,
            none_of(ranks),
        )


def busy_ranks(trace: Trace, scope: Scope) -> Iterator[tuple[int, RankTrace, Busy]]:
    """`device_ranks`, each with its busy time."""
    for rank, rank_trace in device_ranks(trace, scope):
        yield rank, rank_trace, busy(rank_trace, scope)


def iterations_in(rank_trace: RankTrace, scope: Scope) -> list[int]:
    """The iterations of a rank that are in the scope, ascending."""
    present = sorted({int(number) for number in rank_trace.iterations["iteration"]})
    return [number for number in present if not scope.iterations or number in scope.iterations]


@memoize_per_rank(last=_FILTERS)
def _busy(rank_trace: RankTrace, streams: tuple[int, ...] | None, names: tuple[str, ...] | None) -> Busy:
    device = device_work(rank_trace)
    chosen = np.ones(len(device.rows), np.bool_)
    if streams:
        chosen &= np.isin(rank_trace.stream[device.rows], streams)
    if names:
        known = np.array([name in names for name in rank_trace.names], np.bool_)
        chosen &= known[rank_trace.name[device.rows]]
    return busy_of(device.event_class[chosen], device.start[chosen], device.end[chosen])


def busy_of(
    event_class: npt.NDArray[np.uint8], start: npt.NDArray[np.int64], end: npt.NDArray[np.int64]
) -> Busy:
    """The busy time of device work of these classes and times (ns), in any order."""
    communication = event_class == EventClass.COMMUNICATION
    memory = np.isin(event_class, _MEMORY)

    def when(of_class: npt.NDArray[np.bool_]) -> Intervals:
        checkpoint()
        return Intervals.union(start[of_class], end[of_class])

    return Busy(when(~(communication | memory)), when(communication), when(memory))
