"""Traces of Ascend's profiler (`trace_view.json` of torch_npu), with Kineto's categories and links.

Its processes are named: "Ascend Hardware" has the device's streams, "CANN" the calls of the runtime, "Overlap
Analysis" and the planes of HCCL sums of what ran. An operator does not launch its work itself: it queues a
task (`Enqueue`), which another thread executes (`Dequeue@...`) with a call of CANN, and that launches:

    operator > Enqueue -- async_task_queue --> Dequeue > call of CANN -- HostToDevice --> device
        `------------------------------ async_npu ------------------------------------------^
"""

from __future__ import annotations

import re
from typing import Final

import numpy as np
import numpy.typing as npt

from hta_widgets.arrays import Bool, Int32, Int64
from hta_widgets.trace.reader.arrows import (
    arrows,
    categorised,
    having,
    launched_by,
    operators_of,
    places,
    slices_of,
    sparse,
)
from hta_widgets.trace.reader.schema import NULL
from hta_widgets.trace.reader.table import EventTable

NPU: Final = "Ascend Hardware"
_CANN = "CANN"
_SUMMARIES = ("Overlap Analysis", "HCCL", "Communication")
_COPY = re.compile(r"^(MEMCPY|SDMA|aclrtMemcpy)|^Memcpy", re.IGNORECASE)
_WAIT = re.compile(r"(EVENT|NOTIFY)_?(WAIT|RECORD)|CAPTURE_WAIT", re.IGNORECASE)
_HCOM = re.compile(r"^hcom_|^Hccl")
_STEP = re.compile(r"^ProfilerStep\s*[#*]")
_NONE = np.empty(0, np.int64)
_OF_HOST = ("cpu_op", "enqueue", "dequeue", "cann_runtime")


def of_ascend(table: EventTable) -> EventTable:
    """The table with categories, the calls of CANN on the threads that made them, and launches."""
    slices = slices_of(table)
    silent = slices[table.codes("category")[slices] < 0]
    process = _process_names(table)[table.codes("pid")[silent]]
    names = np.array([*table.dictionary("name"), ""], object)
    name = names[table.codes("name")[silent]]

    def named(pattern: re.Pattern[str], rows: npt.NDArray[np.object_]) -> Bool:
        known = {text: bool(pattern.search(text)) for text in set(rows.tolist())}
        return np.array([known[text] for text in rows.tolist()], np.bool_)

    on_device = process == NPU
    waits, copies = named(_WAIT, name), named(_COPY, name)
    collective = named(_HCOM, name)
    summary = np.isin(process, _SUMMARIES)
    if not (on_device & collective).any():  # collectives are on a process of their own
        ours = summary & collective
        on_device, summary = on_device | ours, summary & ~ours
    hosted = slices[table.codes("category")[slices] >= 0]
    steps = hosted[named(_STEP, names[table.codes("name")[hosted]])]
    categories = {
        "kernel": silent[on_device & ~waits & ~copies],
        "gpu_memcpy": silent[on_device & copies],
        "npu_sync": silent[on_device & waits & ~copies],
        "cann_runtime": silent[process == _CANN],
        "npu_summary": silent[summary],
        "user_annotation": steps,
    }
    return _linked(categorised(table, categories), silent[on_device & ~waits])


def _process_names(table: EventTable) -> npt.NDArray[np.object_]:
    """The name of each process, by its code; "" for the one without."""
    found = np.full(len(table.dictionary("pid")) + 1, "", object)
    texts = table.dictionary("args_name")
    rows, codes = table.sparse("args_name")
    of_process = having(table, "name", "process_name")[rows]
    for pid, code in zip(table.codes("pid")[rows[of_process]], codes[of_process], strict=True):
        found[pid] = texts[code]
    return found


def _linked(table: EventTable, device: Int64) -> EventTable:
    """The table with the launch of each device row, and who queued what another thread does.

    The launch is the call from which the arrow `HostToDevice` leads, else the one with the connection of the
    device row, else the execution of the task, else its entry into the queue, or the operator without one.
    """
    host = _Host(table)
    operator_of = operators_of(table, "async_npu", device)
    call_of, moment_of = host.launches(device)
    task_of = host.tasks()
    launch: dict[int, int] = {}
    for row in device.tolist():
        operator, call = operator_of.get(row, -1), call_of.get(row, -1)
        queued = host.queued_in(operator) if operator >= 0 else -1
        task = task_of.get(queued, -1)
        if call >= 0:
            host.adopt(call, task if task >= 0 else operator)
            if task < 0 and queued >= 0 and not host.same_thread(call, queued):
                host.queued_by[call] = queued
        found = next((each for each in (call, task, queued) if each >= 0), -1)
        if found >= 0:
            launch[row] = found
    columns: dict[str, Int32 | tuple[Int32, Int64]] = {"pid": host.pid, "tid": host.tid}
    if host.queued_by:
        columns["queued_by"] = sparse(host.queued_by)
    if moment_of:
        columns["launched_ns"] = sparse(moment_of)
    return launched_by(table.changed(columns), launch)


class _Host:
    """The rows of the host, by thread.

    Attributes:
        pid, tid: the thread of each row. A call of CANN is on the process of the program if that has its
            thread: they are the same.
        queued_by: for tasks, and calls made for one, the row that queued it.
    """

    def __init__(self, table: EventTable) -> None:
        self._table = table
        self.start = table.ints("start_ns")
        self.end = self.start + np.where(table.ints("dur_ns") == NULL, 0, table.ints("dur_ns"))
        self.pid, self.tid = table.codes("pid").copy(), table.codes("tid").copy()
        self.queued_by: dict[int, int] = {}
        self._of = {category: self._rows(category) for category in _OF_HOST}
        program = np.concatenate([self._of[category] for category in _OF_HOST[:-1]])
        self._process_of = dict(zip(self.tid[program].tolist(), self.pid[program].tolist(), strict=True))
        self._at_home(self._of["cann_runtime"])
        queued = self._of["enqueue"][np.argsort(self.start[self._of["enqueue"]], kind="stable")]
        self._queued: dict[int, tuple[Int64, Int64]] = {}  # by thread, with their starts
        for tid in np.unique(self.tid[queued]).tolist():
            own = queued[self.tid[queued] == tid]
            self._queued[tid] = own, self.start[own]

    def _rows(self, category: str) -> Int64:
        rows = slices_of(self._table)
        return rows[having(self._table, "category", category)[rows]]

    def _at_home(self, rows: Int64) -> None:
        """Put rows of the process of CANN on that of the program, where that has their thread."""
        own = zip(self.tid[rows].tolist(), self.pid[rows].tolist(), strict=True)
        self.pid[rows] = [self._process_of.get(tid, pid) for tid, pid in own]

    def launches(self, device: Int64) -> tuple[dict[int, int], dict[int, int]]:
        """The call that launched each device row, and when in that call, where the arrows tell."""
        connection = self._table.ints("connection_id")
        calls = self._of["cann_runtime"]
        made = {connection[call]: call for call in calls.tolist() if connection[call] != NULL}
        call_of = {row: made[connection[row]] for row in device.tolist() if connection[row] in made}
        at_device = dict(zip(places(device, self.start, self.pid, self.tid), device.tolist(), strict=True))
        begins, ends = arrows(self._table, "HostToDevice")
        self._at_home(begins)
        calling = self._open_at(np.concatenate([*self._of.values()]), begins)
        moment_of: dict[int, int] = {}
        reached = places(ends, self.start, self.pid, self.tid)
        for begin, place in zip(begins.tolist(), reached, strict=True):
            row = at_device.get(place, -1)
            if row >= 0 and begin in calling:
                call_of[row], moment_of[row] = calling[begin], int(self.start[begin])
        return call_of, moment_of

    def tasks(self) -> dict[int, int]:
        """The execution of what each `Enqueue` put into the queue, by the arrows or else by their number."""
        queued, taken = self._of["enqueue"], self._of["dequeue"]
        number = self._table.ints("task_id")
        by_number = {number[row]: row for row in queued.tolist() if number[row] != NULL}
        found = {by_number[number[row]]: row for row in taken.tolist() if number[row] in by_number}
        begins, ends = arrows(self._table, "async_task_queue")
        givers, takers = self._open_at(queued, begins), self._open_at(taken, ends)
        for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
            if begin in givers and end in takers:
                found[givers[begin]] = takers[end]
        self.queued_by |= {task: row for row, task in found.items()}
        return found

    def queued_in(self, operator: int) -> int:
        """The first entry into the queue inside an operator, on its thread; the operator if there is none."""
        own, starts = self._queued.get(int(self.tid[operator]), (_NONE, _NONE))
        at = int(np.searchsorted(starts, self.start[operator]))
        return int(own[at]) if at < len(own) and self.end[own[at]] <= self.end[operator] else operator

    def adopt(self, call: int, caller: int) -> None:
        """Put a call that lies in another one on its thread, if no thread of the program is known for it."""
        inside = caller >= 0 and self.start[caller] <= self.start[call] and self.end[call] <= self.end[caller]
        if inside and self.tid[call] not in self._process_of:
            self.pid[call], self.tid[call] = self.pid[caller], self.tid[caller]

    def same_thread(self, first: int, second: int) -> bool:
        """Whether two rows are on one thread."""
        return bool(self.pid[first] == self.pid[second] and self.tid[first] == self.tid[second])

    def _open_at(self, rows: Int64, marks: Int64) -> dict[int, int]:
        """The innermost of the rows that is open on the thread of each mark, at its time."""
        both = np.concatenate([rows, marks])
        is_mark = np.arange(len(both)) >= len(rows)
        order = np.lexsort((-self.end[both], is_mark, self.start[both], self.tid[both], self.pid[both]))
        lane = self.pid.astype(np.int64) * (len(self._table.dictionary("tid")) + 1) + self.tid
        rows, is_mark = both[order], is_mark[order]
        columns = (
            column.tolist() for column in (rows, is_mark, lane[rows], self.start[rows], self.end[rows])
        )
        found: dict[int, int] = {}
        around: list[tuple[int, int, int]] = []  # row, lane and end
        for row, marked, here, begin, end in zip(*columns, strict=True):
            while around and (around[-1][1] != here or around[-1][2] < begin):
                around.pop()
            if not marked:
                around.append((row, here, end))
            elif around:
                found[row] = around[-1][0]
        return found
