"""The allocations and frees that the profiler recorded, and what was running on their threads."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.arrays import Int16, Int32, Int64, UInt8
from hta_widgets.jit import kernel
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.reader.schema import NULL
from hta_widgets.trace.reader.table import EventTable
from hta_widgets.trace.records.allocator import allocator_faults

# c10::DeviceType, as far as PyTorch's allocators report it.
_DEVICE_TYPES = {
    0: "cpu", 1: "cuda", 2: "mkldnn", 6: "hip", 7: "fpga", 8: "maia", 9: "xla", 10: "vulkan", 11: "metal",
    12: "xpu", 13: "mps", 14: "meta", 15: "hpu", 16: "ve", 17: "lazy", 18: "ipu", 19: "mtia",
    20: "privateuseone",
}  # fmt: skip


_COLUMNS = ("device_type", "device_id", "total_allocated_bytes", "total_reserved_bytes", "addr")


@dataclass(frozen=True, eq=False)
class Changes:
    """The memory events of one rank by time, then place in the file."""

    event_id: Int64  # row in the event table
    time: Int64  # ns on the job's axis
    place: npt.NDArray[np.intp]  # code into ``places``, the devices ("cuda:0", "cpu")
    places: list[str]
    # of the block; its bytes, negative when freed
    address: Int64
    change: Int64
    # the allocator's totals after the event (reserved: NULL where not recorded, and of allocators that
    # reserve nothing, as that of the host)
    allocated: Int64
    reserved: Int64
    # codes as in the event table
    pid: npt.NDArray[np.int32]
    tid: npt.NDArray[np.int32]


@memoize_per_rank()
def changes_of(rank_trace: RankTrace, offset_ns: int) -> Changes:
    """The memory events of a rank whose file counts from `offset_ns` before the axis' zero.

    Those whose numbers contradict each other are left out, unless everything in the file is to be believed.
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
    if rank_trace.events.header.repair:
        usable &= ~np.isin(found, allocator_faults(table).contradictory)
    change = change.astype(np.int64)
    if not usable.all() or (time[1:] < time[:-1]).any():  # as good as never
        order = np.flatnonzero(usable)
        order = order[np.argsort(time[order], kind="stable")]
        rows, time, change, *columns = (values[order] for values in (rows, time, change, *columns))
    types, numbered, allocated, reserved, address = columns
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
    """Row of the innermost event of a class that is open on the thread of each change, -1 for none.

    `at`: the places of the changes, ascending.
    """
    tids = len(rank_trace.tids)
    pid, tid = changes.pid[at].astype(np.int64), changes.tid[at]
    thread = np.where((pid >= 0) & (tid >= 0), pid * tids + tid, -1)
    row = np.empty(len(at), np.int64)
    _find_open(
        rank_trace.by_start, rank_trace.start, rank_trace.end, rank_trace.event_class, rank_trace.depth,
        rank_trace.parent, rank_trace.thread, int(event_class), changes.time[at], thread,
        np.zeros(len(rank_trace.pids) * tids, np.int32), row,
    )  # fmt: skip
    return row


@kernel
def _find_open(
    by_start: Int64, start: Int64, end: Int64, event_class: UInt8, depth: Int16, parent: Int32, lane: Int64,
    wanted: int, time: Int64, thread: Int64, last: Int32, row: Int64,
) -> None:  # fmt: skip
    """What is open on a thread at a time, of ascending ones, is the last to start, or calls it.

    `last`: zeros, for each lane one more than the last row of the class to start, of several the deepest.
    """
    at = 0
    for i in range(len(time)):
        while at < len(by_start) and start[by_start[at]] <= time[i]:
            each = by_start[at]
            at += 1
            if event_class[each] == wanted and depth[each] >= 0:
                before = last[lane[each]] - 1
                if before < 0 or start[before] < start[each] or depth[before] <= depth[each]:
                    last[lane[each]] = each + 1
        inner = np.int64(-1)
        if thread[i] >= 0:
            inner = np.int64(last[thread[i]]) - 1
        while inner >= 0 and (end[inner] < time[i] or event_class[inner] != wanted):
            inner = np.int64(parent[inner])
        row[i] = inner


def outermost(rank_trace: RankTrace, event_class: EventClass, row: Int64) -> Int64:
    """The outermost caller of each row that is of a class, or the row itself; -1 where the row is."""
    top, caller = row.copy(), row
    while (caller >= 0).any():
        caller = np.where(caller >= 0, rank_trace.parent[caller], -1)
        better = (caller >= 0) & (rank_trace.event_class[caller] == event_class)
        top[better] = caller[better]
    return top
