"""The allocations and frees that the profiler recorded, and what was running on their threads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pandas as pd

from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.trace.ordering import order_of_nesting, unique
from hta_widgets.trace.reader.schema import NULL

if TYPE_CHECKING:
    from hta_widgets.trace.classify import EventClass
    from hta_widgets.trace.rank_trace import RankTrace
    from hta_widgets.trace.reader.table import EventTable

__all__ = ["Changes", "changes_of", "innermost", "outermost"]

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]

# c10::DeviceType, as far as PyTorch's allocators report it.
_DEVICE_TYPES = {
    0: "cpu", 1: "cuda", 2: "mkldnn", 6: "hip", 7: "fpga", 8: "maia", 9: "xla", 10: "vulkan", 11: "metal",
    12: "xpu", 13: "mps", 14: "meta", 15: "hpu", 16: "ve", 17: "lazy", 18: "ipu", 19: "mtia",
    20: "privateuseone",
}  # fmt: skip


_COLUMNS = ("device_type", "device_id", "total_allocated_bytes", "total_reserved_bytes", "addr")


@dataclass(frozen=True, eq=False)
class Changes:
    """The memory events of one rank by time, then place in the file.

    Attributes:
        event_id: row in the event table.
        time: ns on the job's axis.
        place: code into ``places``, the devices ("cuda:0", "cpu").
        address, change: of the block; its bytes, negative when freed.
        allocated, reserved: the allocator's totals after the event (reserved: NULL where not recorded, and
            of allocators that reserve nothing, as that of the host).
        pid, tid: codes as in the event table.
    """

    event_id: Int64
    time: Int64
    place: npt.NDArray[np.intp]
    places: list[str]
    address: Int64
    change: Int64
    allocated: Int64
    reserved: Int64
    pid: npt.NDArray[np.int32]
    tid: npt.NDArray[np.int32]


@memoize_per_rank()
def changes_of(rank_trace: RankTrace, offset_ns: int) -> Changes:
    """The memory events of a rank whose file counts from `offset_ns` before the axis' zero.

    They have no duration and are therefore not slices; they come from the event table.
    """
    table = rank_trace.table
    found, change = table.sparse("alloc_bytes")
    rows = found.astype(np.int64)
    columns = [_ints(table, column, found) for column in _COLUMNS]
    time = table.ints("start_ns")[rows]
    names = table.dictionary("name")
    memory = table.codes("name")[rows] == (names.index("[memory]") if "[memory]" in names else -2)
    usable = memory & (time != NULL)
    order = np.flatnonzero(usable)
    order = order[np.argsort(time[order], kind="stable")]
    rows, time, change = rows[order], time[order], change[order].astype(np.int64)
    types, numbered, allocated, reserved, address = (values[order] for values in columns)
    kind, kinds = pd.factorize(types, sort=True)
    number, numbers = pd.factorize(numbered, sort=True)
    place, pairs = pd.factorize(kind * len(numbers) + number, sort=True)
    distinct = [divmod(pair, len(numbers)) for pair in pairs.tolist()]
    places = [_place(int(kinds[name]), int(numbers[other])) for name, other in distinct]
    for code in range(len(places)):
        here = place == code
        if not reserved[here].any():
            reserved[here] = NULL
        if (allocated[here] == NULL).any():
            # Old recordings lack the totals: count from zero then.
            allocated[here] = np.cumsum(change[here])
    return Changes(
        rows, time - offset_ns, place, places, address, change, allocated,
        reserved, table.codes("pid")[rows], table.codes("tid")[rows],
    )  # fmt: skip


def _ints(table: EventTable, column: str, events: Int32) -> Int64:
    """The values of a column for some events, which ascend; NULL where absent.

    Most columns are those of memory events alone.
    """
    having, found = table.sparse(column)
    if np.array_equal(having, events):
        return found.astype(np.int64)
    if not len(having):
        return np.full(len(events), NULL)
    at = np.minimum(np.searchsorted(having, events), len(having) - 1)
    return np.where(having[at] == events, found[at], NULL)


def _place(kind: int, number: int) -> str:
    word = _DEVICE_TYPES.get(kind, "device" if kind == NULL else f"device type {kind}")
    return word if number in (NULL, -1) else f"{word}:{number}"


def innermost(rank_trace: RankTrace, event_class: EventClass, changes: Changes, at: Int64) -> Int64:
    """Row of the innermost event of a class that is open on the thread of each change, -1 for none."""
    row = np.full(len(at), -1, np.int64)
    threads = int(changes.tid.max(initial=0)) + 2
    thread = changes.pid[at].astype(np.int64) * threads + changes.tid[at] + 1
    rows = _by_start(rank_trace, event_class)
    for number in unique(thread).tolist():
        here = np.flatnonzero(thread == number)
        pid, tid = divmod(number, threads)
        on_thread = rows[(rank_trace.pid[rows] == pid) & (rank_trace.tid[rows] == tid - 1)]
        if len(on_thread):
            # What is open then is the last to start, or calls it.
            last = np.searchsorted(rank_trace.start[on_thread], changes.time[at[here]], side="right") - 1
            row[here] = np.where(last >= 0, on_thread[np.maximum(last, 0)], -1)
    time = changes.time[at]
    left = np.flatnonzero(row >= 0)
    while len(left):
        inner = row[left]
        closed = (rank_trace.end[inner] < time[left]) | (rank_trace.event_class[inner] != event_class)
        left, inner = left[closed], inner[closed]
        row[left] = rank_trace.parent[inner]
        left = left[row[left] >= 0]
    return row


def _by_start(rank_trace: RankTrace, event_class: EventClass) -> Int64:
    """The host rows of a class by start, then depth."""
    chosen = (rank_trace.event_class == event_class) & (rank_trace.depth >= 0)
    return order_of_nesting(
        np.where(chosen, 0, -1), rank_trace.start, rank_trace.start, rank_trace.depth,
        rank_trace.by_start,
    )  # fmt: skip


def outermost(rank_trace: RankTrace, event_class: EventClass, row: Int64) -> Int64:
    """The outermost caller of each row that is of a class, or the row itself; -1 where the row is."""
    top, caller = row.copy(), row
    while (caller >= 0).any():
        caller = np.where(caller >= 0, rank_trace.parent[caller], -1)
        better = (caller >= 0) & (rank_trace.event_class[caller] == event_class)
        top[better] = caller[better]
    return top
