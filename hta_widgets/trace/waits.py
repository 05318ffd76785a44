"""Recorded synchronisation (``cuda_sync`` events): which device event each wait waits for.

An event record covers all work launched on its stream before it, so a wait on it waits for the last of that
work. A stream's wait delays what is launched on that stream next, by whichever thread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.links import launches
from hta_widgets.trace.reader.schema import NULL

if TYPE_CHECKING:
    from hta_widgets.trace.rank_trace import RankTrace

Int64 = npt.NDArray[np.int64]
Int32 = npt.NDArray[np.int32]

__all__ = ["named_rows", "stream_waits", "sync_calls", "sync_links", "wait_sources"]

STREAM_WAIT, EVENT_SYNC, STREAM_SYNC, CONTEXT_SYNC = (
    "Stream Wait Event",
    "Event Sync",
    "Stream Sync",
    "Context Sync",
)
_RECORDS = ("cudaEventRecord", "cudaEventRecordWithFlags", "cuEventRecord", "hipEventRecord")


def named_rows(rank_trace: RankTrace, *names: str) -> Int64:
    """The rows with one of these names, in file order."""
    wanted = np.array([name in names for name in rank_trace.names], np.bool_)
    return np.flatnonzero(wanted[rank_trace.name])


def sync_links(rank_trace: RankTrace) -> Int32:
    """For each row of class SYNC the host call it belongs to (by correlation); -1 elsewhere."""
    return launches(
        rank_trace.correlation,
        rank_trace.start,
        rank_trace.event_class == EventClass.SYNC,
        rank_trace.event_class == EventClass.RUNTIME,
    )


def wait_sources(rank_trace: RankTrace) -> Int64:
    """For each row the device row whose end a recorded wait on an event waits for, -1 for none."""
    source = np.full(rank_trace.n, -1, np.int64)
    waits = np.flatnonzero(rank_trace.event_class == EventClass.SYNC)
    on = rank_trace.argument_of("wait_on_cuda_event_record_corr_id", waits)
    waits, on = waits[(on != NULL) & (on > 0)], on[(on != NULL) & (on > 0)]
    stream = rank_trace.argument_of("wait_on_stream", waits)
    records = named_rows(rank_trace, *_RECORDS)
    records = records[rank_trace.correlation[records] != NULL]
    if not len(waits) or not len(records):
        return source
    records = records[np.argsort(rank_trace.correlation[records], kind="stable")]
    ids = rank_trace.correlation[records]
    at = np.minimum(np.searchsorted(ids, on), len(ids) - 1)
    found = ids[at] == on
    waits, stream, recorded_at = waits[found], stream[found], rank_trace.start[records[at[found]]]
    launched = _by_launch(rank_trace)
    launched_at = rank_trace.start[rank_trace.launch[launched]]
    for number in np.unique(stream).tolist():
        mine = rank_trace.stream[launched] == number
        on_stream, times = launched[mine], launched_at[mine]
        of = np.flatnonzero(stream == number)
        last = np.searchsorted(times, recorded_at[of], side="right") - 1
        known = last >= 0
        source[waits[of[known]]] = on_stream[last[known]]
    return source


def stream_waits(rank_trace: RankTrace, *, own_thread: bool = False) -> tuple[Int64, Int64]:
    """(effect, cause) rows of each recorded wait of one stream for another's event, in order of the call.

    Args:
        own_thread: a wait holds only for what its own thread launches next, as in HTA's critical path.
    """
    source, call = wait_sources(rank_trace), sync_links(rank_trace)
    waits = named_rows(rank_trace, STREAM_WAIT)
    waits = waits[(source[waits] >= 0) & (call[waits] >= 0)]
    waits = waits[np.argsort(rank_trace.start[call[waits]], kind="stable")]
    effect = np.full(len(waits), -1, np.int64)
    launched = _by_launch(rank_trace)
    launch = rank_trace.launch[launched]
    key, wanted = _place(rank_trace, launched), _place(rank_trace, waits)
    if own_thread:
        key = np.column_stack([key, rank_trace.thread[launch]])
        wanted = np.column_stack([wanted, rank_trace.thread[call[waits]]])
    for pair in np.unique(wanted, axis=0):
        same = (key == pair).all(axis=1)
        of = np.flatnonzero((wanted == pair).all(axis=1))
        next_one = np.searchsorted(rank_trace.start[launch[same]], rank_trace.start[call[waits[of]]])
        known = next_one < same.sum()
        effect[of[known]] = launched[same][next_one[known]]
    return effect[effect >= 0], source[waits][effect >= 0]


def sync_calls(rank_trace: RankTrace) -> list[tuple[int, int, int, int]]:
    """Each host call that is recorded to wait: (row, device, stream or NULL for all, device row or -1)."""
    source, call = wait_sources(rank_trace), sync_links(rank_trace)
    found: list[tuple[int, int, int, int]] = []
    for name in (EVENT_SYNC, STREAM_SYNC, CONTEXT_SYNC):
        rows = named_rows(rank_trace, name)
        rows = rows[call[rows] >= 0]
        if name == EVENT_SYNC:
            rows = rows[source[rows] >= 0]
        stream = rank_trace.stream[rows] if name == STREAM_SYNC else np.full(len(rows), NULL)
        cause = source[rows] if name == EVENT_SYNC else np.full(len(rows), -1)
        found += zip(
            call[rows].tolist(),
            rank_trace.device[rows].tolist(),
            stream.tolist(),
            cause.tolist(),
            strict=True,
        )
    return found


def _by_launch(rank_trace: RankTrace) -> Int64:
    """Launched device rows in the order of their launches."""
    rows = np.flatnonzero(rank_trace.is_device & (rank_trace.launch >= 0))
    return rows[np.argsort(rank_trace.start[rank_trace.launch[rows]], kind="stable")]


def _place(rank_trace: RankTrace, rows: Int64) -> Int64:
    """int64[k, 2]: device and stream of each row."""
    return np.stack([rank_trace.device[rows], rank_trace.stream[rows]], axis=1)
