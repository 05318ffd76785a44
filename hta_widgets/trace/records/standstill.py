"""Silences that no program makes: nothing at all is recorded, though a queue holds work.

A device goes on with what is queued whatever its host does. If it begins only after a long time in which
nothing is recorded of either, the clock jumped, or the machine stood still as when it is suspended.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hta_widgets.arrays import Int64
from hta_widgets.trace.classify import EventClass

if TYPE_CHECKING:
    from hta_widgets.trace.rank_trace import RankTrace

LEAST_NS = 100_000_000
"""Work that waits for other streams, or for a device that is shared, waits far less."""


def standstills(rank_trace: RankTrace) -> Int64:
    """When nothing is recorded of a rank though work is queued, int64[k, 2] ns.

    Annotations may be open: they do nothing themselves.
    """
    device = rank_trace.device_rows
    gaps = _gaps(rank_trace, device)
    if not len(gaps):
        return gaps
    rows = np.flatnonzero(rank_trace.event_class != EventClass.ANNOTATION)
    gaps = _gaps(rank_trace, rows)
    launched = device[rank_trace.launch[device] >= 0]
    called, start = rank_trace.start[rank_trace.launch[launched]], rank_trace.start[launched]
    held = [bool(((called < begin) & (start >= end)).any()) for begin, end in gaps.tolist()]
    return gaps[np.array(held, np.bool_)]


def _gaps(rank_trace: RankTrace, rows: Int64) -> Int64:
    """The long gaps between some slices."""
    rows = rows[np.argsort(rank_trace.start[rows], kind="stable")]
    begin, end = np.maximum.accumulate(rank_trace.end[rows])[:-1], rank_trace.start[rows][1:]
    long = end - begin >= LEAST_NS
    return np.column_stack([begin[long], end[long]])
