"""Allocations that failed, which PyTorch records as instants called `[OutOfMemory]`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hta_widgets.trace.reader.schema import NULL
from hta_widgets.trace.reader.table import EventTable

NAME = "[OutOfMemory]"


@dataclass(frozen=True)
class FailedAllocation:
    """One that failed."""

    time_ns: int  # when, as in the file
    # bytes; None where the file does not say
    wanted: int | None
    allocated: int | None
    reserved: int | None


def failed_allocations(table: EventTable) -> list[FailedAllocation]:
    """Those of a file, in the order of time."""
    names = table.dictionary("name")
    if NAME not in names:
        return []
    rows = np.flatnonzero((table.codes("name") == names.index(NAME)) & (table.ints("start_ns") != NULL))
    rows = rows[np.argsort(table.ints("start_ns")[rows], kind="stable")]
    columns = ("start_ns", "alloc_bytes", "total_allocated_bytes", "total_reserved_bytes")
    values = zip(*(table.ints(column)[rows].tolist() for column in columns), strict=True)
    return [
        FailedAllocation(at, *(None if value == NULL or value < 0 else value for value in sizes))
        for at, *sizes in values
    ]
