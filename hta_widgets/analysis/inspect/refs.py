"""References to events by their row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from hta_widgets.analysis.inspect.record import EventRef, Several
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.reader.schema import NULL

LISTED: Final = 50
"""The most events that an answer lists; it counts the others."""


def row_of(rank_trace: RankTrace, event_id: int) -> int:
    """The row of an event.

    Raises:
        KeyError: no slice of the rank has this number.
    """
    at = int(np.searchsorted(rank_trace.event_id, event_id))
    if at == rank_trace.n or rank_trace.event_id[at] != event_id:
        raise KeyError(f"no event {event_id} with a duration on rank {rank_trace.label}")
    return at


def ref(rank_trace: RankTrace, row: int) -> EventRef:
    """The event of a row."""
    return EventRef(
        rank_trace.rank,
        int(rank_trace.event_id[row]),
        rank_trace.names[rank_trace.name[row]],
        EventClass(rank_trace.event_class[row]).label,
        lane_of(rank_trace, row),
        int(rank_trace.start[row]),
        int(rank_trace.dur[row]),
    )


def ref_or_none(rank_trace: RankTrace, row: int) -> EventRef | None:
    """The event of a row, None for -1."""
    return ref(rank_trace, row) if row >= 0 else None


def several(rank_trace: RankTrace, rows: npt.NDArray[np.integer] | Sequence[int]) -> Several:
    """Events of rows in any order; of many, the first by start are listed."""
    rows = np.asarray(rows, np.int64)
    rows = rows[np.lexsort((rank_trace.event_id[rows], rank_trace.start[rows]))]
    listed = tuple(ref(rank_trace, row) for row in rows[:LISTED].tolist())
    return Several(len(rows), int(rank_trace.dur[rows].sum()), listed)


def lane_of(rank_trace: RankTrace, row: int) -> str:
    """Where a row ran: `device 0 stream 7`, or `thread 21587`."""
    device, stream = int(rank_trace.device[row]), int(rank_trace.stream[row])
    if device == NULL and stream == NULL:
        return f"thread {rank_trace.tids[rank_trace.tid[row]]}"
    words = [
        f"{word} {number}" for word, number in (("device", device), ("stream", stream)) if number != NULL
    ]
    return " ".join(words)
