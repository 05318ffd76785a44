"""Device records of a file with the calls that launched them, queue by queue."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from hta_widgets.arrays import Bool, Int32, Int64, UInt8
from hta_widgets.trace.classify import EventClass, category_of
from hta_widgets.trace.links import first_calls
from hta_widgets.trace.ordering import order_in_groups, unique
from hta_widgets.trace.reader.schema import NULL
from hta_widgets.trace.reader.table import EventTable

Codes = UInt8

DEVICE, CALL, NOTE = 1, 2, 3
"""Kinds of events: device work, calls of a runtime or driver, annotations."""

# Calls of CUDA, HIP, SYCL, Level Zero, MUSA, MTIA, Cambricon and CANN that each put a kernel, a graph or a
# copy on a queue.
_ANSWERED = re.compile(
    r"^(?:cuda|hip|cu|mu|ur|sycl|ze|mtia)[A-Za-z]*"
    r"(?:LaunchKernel|LaunchCooperativeKernel|KernelLaunch|GraphLaunch|Memcpy|MemBufferCopy|AppendMemoryCopy)"
    r"|^cnInvokeKernel|@launch$",
    re.IGNORECASE,
)
# What only resembles a launch. Fills are not among the above: their work is recorded at random.
_NEVER = re.compile(
    r"MemcpyToSymbol|MemcpyFromSymbol|HostFunc|MemcpyPeerPtr|Attribute|GraphAdd|Node(?!@launch$)|Params"
)


def launching(codes: Int32, names: list[str]) -> Bool:
    """Which calls device work always follows, unless a stream is being captured; by their names."""
    found = np.zeros(len(names) + 1, np.bool_)
    for code in (np.flatnonzero(np.bincount(codes + 1)) - 1).tolist():  # few differ
        found[code] = code >= 0 and bool(_ANSWERED.search(names[code])) and not _NEVER.search(names[code])
    return found[codes]


def each_queue(queue: Int64) -> list[slice]:
    """The stretch of each queue in an order by queues."""
    edges = np.flatnonzero(np.append(True, queue[1:] != queue[:-1])).tolist() if len(queue) else []
    return [slice(first, last) for first, last in pairwise([*edges, len(queue)])] if edges else []


@dataclass
class Work:
    """Device records of a file, and its calls. Positions are those of the device records.

    Attributes:
        table: the events of the file.
        rows: row of each record in the table.
        start, dur: ns as recorded, NULL where there is none; the rules write their estimates here.
        is_timed: it is a slice: it has a time and a plausible length.
        correlation: NULL where absent.
        call: row of the launching call in the table, -1 for none; called: when it began, NULL for none.
        mark: `Mark` of each; excluded: its time stays unknown; error: ns by which an estimate may be off.
        processes: codes of the processes that both run operators and launch work.
    """

    table: EventTable
    rows: Int32
    start: Int64
    dur: Int64
    is_timed: Bool
    correlation: Int64
    call: Int64
    called: Int64
    processes: list[int]

    def __post_init__(self) -> None:
        self.mark = np.zeros(len(self.rows), np.uint8)
        self.excluded = np.zeros(len(self.rows), np.bool_)
        self.error = np.zeros(len(self.rows), np.int64)

    @cached_property
    def queue(self) -> Int64:
        """A number for each in-order queue."""
        pid, tid = (self.table.codes_of(column, self.rows).astype(np.int64) for column in ("pid", "tid"))
        return (pid + 1) * (len(self.table.dictionary("tid")) + 1) + tid + 1

    @cached_property
    def by_queue(self) -> Int64:
        """Positions by queue, start and end, as recorded."""
        return order_in_groups(self.queue, self.start, self.start + np.maximum(self.dur, 0))

    @cached_property
    def by_call(self) -> Int64:
        """Positions of the linked ones by queue, then in order of their calls."""
        linked = np.flatnonzero(self.call >= 0)
        order = order_in_groups(self.queue[linked], self.called[linked], self.correlation[linked])
        return linked[order]

    @cached_property
    def group(self) -> Int64:
        """A number for each name with its grid, or with the bytes that are copied: peers take alike long."""
        group = self.table.codes("name")[self.rows].astype(np.int64)
        for column in ("grid", "block"):
            code = self.table.codes_of(column, self.rows)
            group = np.unique(
                group * (len(self.table.dictionary(column)) + 1) + code + 1, return_inverse=True
            )[1]
        size = np.unique(self.table.ints_of("bytes", self.rows), return_inverse=True)[1]
        return group * (int(size.max(initial=0)) + 1) + size

    @cached_property
    def is_ring(self) -> Bool:
        """Engines of MTIA that transfer several requests at once: no order of ends."""
        names = self.table.dictionary("category")
        ring = np.array([text == "mtia_ccp_events" for text in names], np.bool_)
        return ring[self.table.codes("category")[self.rows]] & (self.correlation <= 0)

    @cached_property
    def is_kernel(self) -> Bool:
        """No copy or fill."""
        names = self.table.dictionary("category")
        kernel = np.array([category_of(text).named for text in names], np.bool_)
        return kernel[self.table.codes("category")[self.rows]]

    @cached_property
    def in_nanoseconds(self) -> bool:
        """Whether the file holds fractions of a microsecond."""
        dur = self.dur[self.is_timed & (self.dur > 0)]
        return bool(len(dur)) and bool((dur % 1000 != 0).mean() > 0.5)

    @property
    def is_sound(self) -> Bool:
        """Records that no rule has marked."""
        return self.is_timed & (self.mark == 0)

    def call_names(self, positions: Int64) -> list[str]:
        """The name of the launching call of each, "" without one."""
        names, codes = self.table.dictionary("name"), self.table.codes("name")
        calls = self.call[positions].tolist()
        return ["" if call < 0 or codes[call] < 0 else names[codes[call]] for call in calls]


def work_of(table: EventTable, kind: Codes, rows: Int32, untimed: Int64) -> Work | None:
    """The device records of a file; None without any.

    Args:
        kind: what each is: `DEVICE`, `CALL`, `NOTE` or something else.
        rows: the device records, ascending.
        untimed: events whose times mean nothing.
    """
    if not len(rows):
        return None
    start, dur = table.ints("start_ns"), table.ints("dur_ns")
    events, ids = table.sparse("correlation")
    of_event = kind[events]
    of_call = np.flatnonzero(of_event == CALL)
    calls, call_ids = events[of_call], ids[of_call]
    if not (has_id := (call_ids != 0) & (call_ids != NULL)).all():
        calls, call_ids = calls[has_id], call_ids[has_id]
    known = ~np.isin(rows, untimed) if len(untimed) else np.ones(len(rows), np.bool_)
    if len(untimed):
        is_timed = ~np.isin(calls, untimed)
        calls, call_ids = calls[is_timed], call_ids[is_timed]
    correlation = np.full(len(rows), NULL, np.int64)
    of_work = np.flatnonzero(of_event == DEVICE)
    numbered = events[of_work]
    if np.array_equal(numbered, rows):
        correlation = ids[of_work].astype(np.int64)
    else:
        at = np.minimum(np.searchsorted(rows, numbered), len(rows) - 1)
        found = rows[at] == numbered
        correlation[at[found]] = ids[of_work][found]
    is_launch = launching(table.codes("name")[calls], table.dictionary("name"))
    first = first_calls(correlation, call_ids, start[calls], is_launch)
    call = np.append(calls, np.int32(-1)).astype(np.int64)[first]
    called = np.where(call >= 0, start[call], NULL)
    return Work(
        table, rows, start[rows], dur[rows], known, correlation, call, called, _processes(table, calls)
    )


def _processes(table: EventTable, calls: Int32) -> list[int]:
    """The processes that both run operators and launch: one, or the file is of several programs."""
    pid = table.codes("pid")
    calling: list[int] = (np.flatnonzero(np.bincount(pid[calls] + 1)) - 1).tolist()
    if len(calling) < 2:
        return calling
    kinds = [category_of(text).event_class == EventClass.HOST_OP for text in table.dictionary("category")]
    operators = np.array([*kinds, False], np.bool_)[table.codes("category")]
    return sorted({*calling} & {*unique(pid[operators]).tolist()}) or calling[:1]
