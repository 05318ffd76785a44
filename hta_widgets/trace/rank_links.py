"""One rank's links: which call launched each piece of work, and which calls hold which."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

import numpy as np

from hta_widgets.arrays import Int16, Int32, Int64
from hta_widgets.trace import kept_links, links
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.kept_links import Links
from hta_widgets.trace.ordering import unique
from hta_widgets.trace.rank_columns import RankColumns
from hta_widgets.trace.reader.schema import NULL
from hta_widgets.trace.records.work import launching

# Classes that call each other on a host thread: they nest together. Annotations cross Python frames, so they
# nest apart.
_STACK = (EventClass.HOST_OP, EventClass.RUNTIME, EventClass.PYTHON)
# Of calls with equal times the caller is the one that usually calls: Python, then operators, then the
# runtime.
_CALLER_FIRST = {EventClass.PYTHON: 0, EventClass.HOST_OP: 1, EventClass.RUNTIME: 2}


class RankLinks(RankColumns):
    """A rank whose rows are tied to each other: launches, callers, forward operators."""

    @cached_property
    def _kept_links(self) -> Links | None:
        """What an earlier process found of the whole file; None of a part, or under rules of the user."""
        file = self._links_file
        return None if file is None else kept_links.read(file, self.n)

    @property
    def _links_file(self) -> Path | None:
        return self.events.links if self._is_plain else None

    @property
    def _is_plain(self) -> bool:
        """All of the file, by the rules that are built in."""
        return self._kept is None and not self.rules

    @cached_property
    def launch(self) -> Int32:
        """int32 row of the host call that launched each device row, -1 for none."""
        if self._kept_links is not None:
            return self._kept_links.launch
        is_call = self.event_class == EventClass.RUNTIME
        # where no call of a runtime is recorded, the operator itself is (`reader.dialects`)
        is_call |= (self.event_class == EventClass.HOST_OP) & (self.correlation != NULL)
        is_launch = np.zeros(self.n, np.bool_)
        is_launch[is_call] = launching(self.name[is_call], self.names)
        launch = links.launches(self.correlation, self.start, self.is_device, is_call, is_launch)
        untied = self.is_device & ((self.correlation == NULL) | (self.correlation == 0))
        if untied.any() and self.has_argument("external_id"):
            calls = is_call & is_launch
            calls[launch[launch >= 0]] = False
            links.launches_by_operator(launch, self.argument("external_id"), self.start, untied, calls)
        return launch

    @cached_property
    def launched(self) -> Int64:
        """int64 rows of the device's work whose launch is recorded. Shared: not to be changed."""
        rows = self.device_rows[self.launch[self.device_rows] >= 0]
        rows.flags.writeable = False
        return rows

    @cached_property
    def by_launch(self) -> Int64:
        """... in the order of their launches. Shared: not to be changed."""
        rows = self.launched[np.argsort(self.start[self.launch[self.launched]], kind="stable")]
        rows.flags.writeable = False
        return rows

    def launched_at(self, rows: Int64) -> Int64:
        """When each of these device rows was put on its stream, int64 ns; NULL where that is unknown.

        That is when its launching call began, unless the file tells when in the call it was. All that is
        recorded may be the task that did so, or that it was queued: a task does more than to launch, and is
        taken to do so last, but before the work starts.
        """
        launch = self.launch[rows]
        in_task, only_queued = (
            np.array([text == of for text in self.categories], np.bool_)[self.category[launch]]
            for of in ("dequeue", "enqueue")
        )
        at = np.where((launch >= 0) & ~only_queued, self.start[launch], NULL)
        if in_task.any():
            last = np.maximum(np.minimum(self.end[launch], self.start[rows]), self.start[launch])
            at = np.where((launch >= 0) & in_task, last, at)
        if self.table.has("launched_ns"):
            moment = self.argument_of("launched_ns", rows)
            at = np.where(moment != NULL, moment - self.offset_ns, at)
        return at

    @cached_property
    def queued_by(self) -> Int32:
        """int32 row of the call that queued what this one does on another thread, -1 for none (`ascend`)."""
        found = np.full(self.n, -1, np.int32)
        rows, event = self.recorded("queued_by")
        found[rows] = self.row_of_event[event]
        return found

    @cached_property
    def issuer(self) -> Int32:
        """int32 row of the call by which the program asked for each device row, -1 for none.

        Its launch; if another thread did that as a task, the call that queued the task.
        """
        if not self.table.has("queued_by"):
            return self.launch
        issuer, call = self.launch.copy(), self.launch
        while (call >= 0).any():
            queued = np.where(call >= 0, self.queued_by[call], -1)
            issuer[queued >= 0] = queued[queued >= 0]
            call = np.where((call >= 0) & (queued < 0), self.parent[call], -1)
        return issuer

    @cached_property
    def launching_threads(self) -> Int64:
        """int64 numbers of the threads that launch device work, or queue it for those, ascending."""
        work = np.flatnonzero(self.launch >= 0)
        calls = self.launch[work]
        if self.issuer is not self.launch:
            calls = np.append(calls, self.issuer[work])
        return unique(self.thread[calls])

    @cached_property
    def _nesting(self) -> tuple[Int32, Int16]:
        if self._kept_links is not None:
            return self._kept_links.parent, self._kept_links.depth
        lanes = np.full(len(EventClass), 2, np.int64)
        lanes[list(_STACK)] = 0
        lanes[EventClass.ANNOTATION] = 1
        ties = np.full(len(EventClass), 3, np.int64)
        ties[list(_CALLER_FIRST)] = list(_CALLER_FIRST.values())
        lane = self.thread * 3 + lanes[self.event_class]
        lane[self.is_device] = -1
        return links.nesting(self.start, self.end, lane, ties[self.event_class], self.by_start)

    @property
    def parent(self) -> Int32:
        """int32 row of the caller on the same thread (of an annotation, the enclosing one), -1 at the top."""
        return self._nesting[0]

    @property
    def depth(self) -> Int16:
        """int16 number of open rows around each host row, annotations counted apart; -1 for device rows."""
        return self._nesting[1]

    @cached_property
    def forward(self) -> Int32:
        """int32 row of the forward operator of each backward operator (by sequence number), -1 for none."""
        is_backward = np.zeros(self.n, np.bool_)
        rows, thread = self.recorded("fwd_thread_id")
        is_backward[rows] = (thread != NULL) & (thread != 0)
        rows, number = self.recorded("sequence_number")
        forward = np.full(self.n, -1, np.int32)
        found = links.forward_calls(is_backward[rows], number, self.start[rows])
        forward[rows] = np.append(rows, np.int32(-1))[found]
        return forward

    @cached_property
    def earlier_work(self) -> Int64:
        """Positions of the device rows that were launched before the recording began."""
        return links.from_before(self.launch, self.is_device, self.device, self.stream, self.start)
