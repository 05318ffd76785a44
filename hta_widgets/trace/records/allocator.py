"""Memory events whose numbers contradict each other, and places where events are missing."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hta_widgets.trace.reader.schema import NULL
from hta_widgets.trace.reader.table import EventTable

_CHANGE, _REFUSED = "[memory]", "[OutOfMemory]"
# A pebibyte: no device or host has as much.
_LARGEST = 1 << 50


class AllocatorFaults(NamedTuple):
    """Rows of the event table: events that cannot be true, events before which others are missing, and
    requests that were refused, by time.
    """

    contradictory: npt.NDArray[np.int32]
    gaps: npt.NDArray[np.int32]
    refused: npt.NDArray[np.int32]


def allocator_faults(table: EventTable) -> AllocatorFaults:
    """The memory events of a file that cannot be true.

    A total is the one before it plus the bytes of the event, on each device in order of time: no recording
    breaks that. More is reserved than allocated, and no allocation is larger than the total after it.
    """
    rows, change = table.sparse("alloc_bytes")
    is_change = _named(table, _CHANGE)[rows]
    rows, change = rows[is_change], change[is_change]
    total, reserved = (
        table.ints_of(column, rows) for column in ("total_allocated_bytes", "total_reserved_bytes")
    )
    counts, reserves = total != NULL, (reserved != NULL) & (reserved != 0)
    wrong = (change > _LARGEST) | (change < -_LARGEST)
    wrong |= counts & ((total < 0) | (total > _LARGEST) | ((change > 0) & (change > total)))
    wrong |= reserves & ((reserved < 0) | (reserved > _LARGEST) | (counts & (reserved < total)))
    start = table.ints("start_ns")[rows]
    sound = ~wrong & counts & (start != NULL)
    kind, number = (table.ints_of(column, rows) for column in ("device_type", "device_id"))
    at = np.lexsort((start, number, kind))
    same = (kind[at][1:] == kind[at][:-1]) & (number[at][1:] == number[at][:-1])
    same &= sound[at][1:] & sound[at][:-1]
    breaks = same & (total[at][1:] != total[at][:-1] + change[at][1:])
    return AllocatorFaults(rows[wrong], rows[at[1:][breaks]], _refused(table))


def _refused(table: EventTable) -> npt.NDArray[np.int32]:
    """Requests that failed: instants, which may lack every number."""
    start = table.ints("start_ns")
    rows = np.flatnonzero(_named(table, _REFUSED) & (start != NULL)).astype(np.int32)
    return rows[np.argsort(start[rows], kind="stable")]


def _named(table: EventTable, name: str) -> npt.NDArray[np.bool_]:
    """Which events have this name."""
    names = table.dictionary("name")
    codes = table.codes("name")
    return codes == names.index(name) if name in names else np.zeros(len(codes), np.bool_)
