"""Recorded synchronisation (``cuda_sync`` events): which device event each wait waits for.

An event record covers all work launched on its stream before it, so a wait on it waits for the last of that
work. A stream's wait delays what is launched on that stream next, by whichever thread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hta_widgets.arrays import Int32, Int64
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.links import launches
from hta_widgets.trace.ordering import rows_with
from hta_widgets.trace.reader.schema import NULL

if TYPE_CHECKING:
    from hta_widgets.trace.rank_trace import RankTrace

STREAM_WAIT, EVENT_SYNC, STREAM_SYNC, CONTEXT_SYNC = (
    "Stream Wait Event",
    "Event Sync",
    "Stream Sync",
    "Context Sync",
)
_RECORDS = ("cudaEventRecord", "cudaEventRecordWithFlags", "cuEventRecord", "hipEventRecord")


class Waits(NamedTuple):
    """The rows of class SYNC: few of all."""

    row: Int64  # int64, ascending
    call: Int64  # row of the host call that each belongs to (by correlation), -1 for none
    source: Int64  # int64 device row whose end a recorded wait on an event waits for, -1 for none

    def named(self, rank_trace: RankTrace, name: str) -> Waits:
        """Those with this name."""
        code = rank_trace.names.index(name) if name in rank_trace.names else -1
        return self.take(np.flatnonzero(rank_trace.name[self.row] == code))

    def take(self, at: Int64) -> Waits:
        """Those at these places."""
        return Waits(self.row[at], self.call[at], self.source[at])


def recorded_waits(rank_trace: RankTrace) -> Waits:
    """The waits of a rank; `RankTrace.waits` keeps them."""
    rows = np.flatnonzero(rank_trace.event_class == EventClass.SYNC)
    return Waits(rows, _calls_of(rank_trace, rows), _sources_of(rank_trace, rows))


def named_rows(rank_trace: RankTrace, *names: str) -> Int64:
    """The rows with one of these names, in file order."""
    return rows_with(rank_trace.name, np.array([name in names for name in rank_trace.names], np.bool_))


def sync_links(rank_trace: RankTrace) -> Int32:
    """For each row of class SYNC the host call it belongs to (by correlation); -1 elsewhere."""
    links = np.full(rank_trace.n, -1, np.int32)
    links[rank_trace.waits.row] = rank_trace.waits.call
    return links


def wait_sources(rank_trace: RankTrace) -> Int64:
    """For each row the device row whose end a recorded wait on an event waits for, -1 for none."""
    source = np.full(rank_trace.n, -1, np.int64)
    source[rank_trace.waits.row] = rank_trace.waits.source
    return source


def _calls_of(rank_trace: RankTrace, rows: Int64) -> Int64:
    """The host call of each of these rows, as `launches` finds it among calls with one of their ids."""
    calls = np.flatnonzero(rank_trace.event_class == EventClass.RUNTIME)
    calls = calls[np.isin(rank_trace.correlation[calls], rank_trace.correlation[rows])]
    both = np.concatenate([calls, rows])
    is_call = np.arange(len(both)) < len(calls)
    at = launches(rank_trace.correlation[both], rank_trace.start[both], ~is_call, is_call)[len(calls) :]
    return np.where(at >= 0, both[at], -1)


def _sources_of(rank_trace: RankTrace, rows: Int64) -> Int64:
    """For each of these rows the device row whose end it waits for, -1 for none."""
    source = np.full(len(rows), -1, np.int64)
    on = rank_trace.argument_of("wait_on_cuda_event_record_corr_id", rows)
    waits = np.flatnonzero((on != NULL) & (on > 0))
    on = on[waits]
    records = named_rows(rank_trace, *_RECORDS)
    records = records[rank_trace.correlation[records] != NULL]
    if not len(waits) or not len(records):
        return source
    stream = rank_trace.argument_of("wait_on_stream", rows[waits])
    records = records[np.argsort(rank_trace.correlation[records], kind="stable")]
    ids = rank_trace.correlation[records]
    at = np.minimum(np.searchsorted(ids, on), len(ids) - 1)
    found = ids[at] == on
    waits, stream, recorded_at = waits[found], stream[found], rank_trace.start[records[at[found]]]
    launched = rank_trace.by_launch
    launched_at = rank_trace.start[rank_trace.launch[launched]]
    on_stream = rank_trace.stream[launched]
    for number in np.unique(stream).tolist():
        mine = np.flatnonzero(on_stream == number)
        of = np.flatnonzero(stream == number)
        last = np.searchsorted(launched_at[mine], recorded_at[of], side="right") - 1
        known = last >= 0
        source[waits[of[known]]] = launched[mine[last[known]]]
    return source


def stream_waits(rank_trace: RankTrace, *, own_thread: bool = False) -> tuple[Int64, Int64]:
    """(effect, cause) rows of each recorded wait of one stream for another's event, in order of the call.

    Args:
        own_thread: a wait holds only for what its own thread launches next, as in HTA's critical path.
    """
    found = rank_trace.waits.named(rank_trace, STREAM_WAIT)
    found = found.take(np.flatnonzero((found.source >= 0) & (found.call >= 0)))
    waits, call, source = found.take(np.argsort(rank_trace.start[found.call], kind="stable"))
    effect = np.full(len(waits), -1, np.int64)
    launched = rank_trace.by_launch
    launch = rank_trace.launch[launched]
    key, wanted = _place(rank_trace, launched), _place(rank_trace, waits)
    if own_thread:
        key = np.column_stack([key, rank_trace.thread[launch]])
        wanted = np.column_stack([wanted, rank_trace.thread[call]])
    for pair in np.unique(wanted, axis=0):
        same = (key == pair).all(axis=1)
        of = np.flatnonzero((wanted == pair).all(axis=1))
        next_one = np.searchsorted(rank_trace.start[launch[same]], rank_trace.start[call[of]])
        known = next_one < same.sum()
        effect[of[known]] = launched[same][next_one[known]]
    return effect[effect >= 0], source[effect >= 0]


def sync_calls(rank_trace: RankTrace) -> list[tuple[int, int, int, int]]:
    """Each host call that is recorded to wait: (row, device, stream or NULL for all, device row or -1)."""
    found: list[tuple[int, int, int, int]] = []
    for name in (EVENT_SYNC, STREAM_SYNC, CONTEXT_SYNC):
        waits = rank_trace.waits.named(rank_trace, name)
        known = waits.call >= 0
        if name == EVENT_SYNC:
            known &= waits.source >= 0
        rows, call, source = waits.take(np.flatnonzero(known))
        stream = rank_trace.stream[rows] if name == STREAM_SYNC else np.full(len(rows), NULL)
        cause = source if name == EVENT_SYNC else np.full(len(rows), -1)
        found += zip(
            call.tolist(), rank_trace.device[rows].tolist(), stream.tolist(), cause.tolist(), strict=True
        )
    return found


def _place(rank_trace: RankTrace, rows: Int64) -> Int64:
    """int64[k, 2]: device and stream of each row."""
    return np.stack([rank_trace.device[rows], rank_trace.stream[rows]], axis=1)
