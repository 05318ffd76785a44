"""One rank, ready for analysis: its columns (`rank_columns`) and links (`rank_links`), iterations and scopes.

A `RankTrace` is immutable. Its columns are built on first use, and dropped when memory is short: then they
are built again, the same (`rank_events`). The few facts in `_LIGHT` stay.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from copy import copy
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from weakref import ref

import numpy as np
import pandas as pd

from hta_widgets.arrays import Bool, Int32, Int64, UInt8
from hta_widgets.trace import iterations as _iterations
from hta_widgets.trace import kept_iterations, kept_links, links
from hta_widgets.trace.accelerator import Accelerator, accelerator_in
from hta_widgets.trace.captures import of_rank
from hta_widgets.trace.classify import EventClass, Rule
from hta_widgets.trace.iteration_clock import (
    Clock,
    contradicted,
    host_windows,
    membership_windows,
    retimed,
    timed,
    without_beginning,
)
from hta_widgets.trace.kept_links import Links
from hta_widgets.trace.ordering import among, paired
from hta_widgets.trace.rank_events import RankEvents
from hta_widgets.trace.rank_links import RankLinks
from hta_widgets.trace.reader.file_names import natural
from hta_widgets.trace.reader.schema import NULL
from hta_widgets.trace.reader.table import EventTable
from hta_widgets.trace.recording import Recording, recording_of
from hta_widgets.trace.records.doubt import DoubtfulStep, doubtful_steps, may_doubt
from hta_widgets.trace.records.losses import Losses, losses_of, without_launch
from hta_widgets.trace.records.marks import Mark
from hta_widgets.trace.records.standstill import standstills
from hta_widgets.trace.records.vetoes import Veto, vetoes_of
from hta_widgets.trace.scope import Scope
from hta_widgets.trace.threads import threads
from hta_widgets.trace.waits import Waits, recorded_waits

if TYPE_CHECKING:
    from hta_widgets.trace.model import Trace

# Under this name an object holds what `analysis.core.memoize` remembers for it.
REMEMBERED = "_remembered"
# What a rank still holds when its columns are dropped: facts of a few kilobytes.
_LIGHT = frozenset(
    {
        "events", "rank", "label", "path", "metadata", "rules",
        "_kept", "_clock", "offset_ns", "_windows", "_columns",
        "n", "extent", "device_span", "host_span", "device_events", "device_name", "accelerator",
        "work_names", "recording", "drained",
        "_job", "_lent", "announced", "own_iterations", "iterations", "iteration_windows", "iteration_clock",
        "contradicted_iterations",
        "doubtful_steps", "vetoes", "without_launch", "processes", "clock_ahead_ns", "cut_off_ns",
        "standstills",
    }
)  # fmt: skip
# A finding asks for the same few scopes again and again.
_KEPT_WINDOWS = 8
# Fewer records are whole microseconds by chance.
_ENOUGH_WHOLE = 20
_KEPT_ROWS = 2
# What tells iterations apart in which records are doubtful.
_TIMES = ("iteration", "host_start_ns", "host_end_ns", "start_ns", "end_ns")
_OF_PROGRAM = (EventClass.HOST_OP, EventClass.RUNTIME, EventClass.ANNOTATION, EventClass.PYTHON)
_TO_HOST = re.compile(r"DtoH|DeviceToHost|Device -> Host")


class RankTrace(RankLinks):
    """One rank of a job; its columns as `RankColumns` says."""

    counted_apart = True

    def __init__(
        self,
        events: RankEvents | EventTable,
        rank: int,
        label: str | None = None,
        offset_ns: int = 0,
        kept: Bool | None = None,
        clock: Clock | None = None,
        rules: Sequence[Rule] | None = None,
        job: ref[Trace] | None = None,
    ) -> None:
        super().__init__(events, rank, label, offset_ns, kept, rules)
        self._clock = clock
        self._job = job
        self._windows: dict[tuple[Scope, Clock | None], Int64] = {}
        self.events.shown_by(self)

    def __repr__(self) -> str:
        return f"RankTrace(rank={self.label}, events={self.n})"

    def timed_by(self, clock: Clock | None, job: ref[Trace]) -> RankTrace:
        """This rank of a job whose iterations another clock times; all that no clock changes is shared."""
        other = copy(self)
        other._clock, other._job = clock, job
        other._windows = {}
        for name in (
            "_rows",
            "iterations",
            "own_iterations",
            "iteration_windows",
            "iteration_clock",
            "contradicted_iterations",
            "doubtful_steps",
            "vetoes",
            REMEMBERED,
        ):
            other.__dict__.pop(name, None)
        self.events.shown_by(other)
        return other

    def held(self) -> list[Any]:
        """What `drop` would free."""
        own = [value for name, value in list(self.__dict__.items()) if name not in _LIGHT]
        return [*own, *list(self._columns.values())]

    def held_things(self) -> int:
        """How many columns and results there are, also those that stay."""
        remembered = self.__dict__.get(REMEMBERED, {})
        return len(self.__dict__) + len(self._columns) + sum(map(len, list(remembered.values())))

    def drop(self) -> None:
        """Free all that can be made again from the file."""
        for name in [name for name in list(self.__dict__) if name not in _LIGHT]:
            self.__dict__.pop(name, None)
        self._columns.clear()

    # -- what ran where ----------------------------------------------------------------------------

    @cached_property
    def device_name(self) -> str | None:
        """Name of the device this rank used, from ``deviceProperties``."""
        properties = self.metadata.get("deviceProperties")
        known = (
            [device for device in properties if isinstance(device, dict)]
            if isinstance(properties, list)
            else []
        )
        names = {str(device.get("name")) for device in known}
        # hosts have devices of one kind, and to look which one was used takes the columns of the rank
        used = set(np.unique(self.device[self.is_device]).tolist()) if len(names) > 1 else set()
        chosen = [device for device in known if device.get("id") in used] or known
        return str(chosen[0]["name"]) if chosen and "name" in chosen[0] else None

    @cached_property
    def accelerator(self) -> Accelerator:
        """The kind of accelerator that the file shows signs of."""
        properties = self.metadata.get("deviceProperties")
        devices = properties if isinstance(properties, list) else []
        named = [str(device.get("name")) for device in devices if isinstance(device, dict)]
        return accelerator_in([*self.categories, *self.names, *named])

    @cached_property
    def recording(self) -> Recording:
        """What kind of run the file records, and whether what happened can be told from it."""
        return recording_of(self)

    # -- records that cannot be true ---------------------------------------------------------------

    @cached_property
    def estimated(self) -> Bool:
        """Rows whose times are estimates, because those that were recorded cannot be true (`records`)."""
        return self._time_marks > 0

    @cached_property
    def mark(self) -> UInt8:
        """uint8 `records.marks.Mark` of each row: what cannot be true about it, 0 for nothing."""
        mark = self._time_marks.copy()
        mark[self.losses.lost] = Mark.WORK_LOST
        mark[self.losses.uncalled] = Mark.CALL_LOST
        return mark

    @property
    def _time_marks(self) -> UInt8:
        mark = np.zeros(self.n, np.uint8)
        marked = self.slices.marked
        row = self.row_of_event[marked.rows]
        mark[row[row >= 0]] = marked.mark[row >= 0]
        return mark

    @cached_property
    def losses(self) -> Losses:
        """Launches without work, and work without a launch."""
        return losses_of(self)

    @cached_property
    def doubtful_steps(self) -> list[DoubtfulStep]:
        """The steps whose records are not whole; they are `partial` in `iterations`."""
        return self._doubtful(self.iterations)

    def _doubtful(self, frame: pd.DataFrame) -> list[DoubtfulStep]:
        """Those of some iterations; mostly the same before and after these are marked as partial."""
        if not may_doubt(self):
            return []
        times = [frame[name].to_numpy(np.int64).tobytes() for name in _TIMES]
        asked: tuple[bytes | bool, ...] = (*times, bool((frame["clock"] == "device").any()))
        if asked not in self._doubts:
            self._doubts[asked] = doubtful_steps(self, frame)
        return self._doubts[asked]

    @cached_property
    def _doubts(self) -> dict[tuple[bytes | bool, ...], list[DoubtfulStep]]:
        return {}

    @cached_property
    def vetoes(self) -> list[Veto]:
        """What this recording cannot show, and why; see `Trace.vetoes`."""
        return vetoes_of(self)

    @cached_property
    def without_launch(self) -> int:
        """How many device records lack a launch that the recorder should have written."""
        return without_launch(self)

    @cached_property
    def processes(self) -> list[str]:
        """The processes that launch work, and run operators if any does; of one program there is one."""
        calls = np.bincount(self.pid[self.event_class == EventClass.RUNTIME], minlength=len(self.pids))
        operators = np.bincount(self.pid[self.event_class == EventClass.HOST_OP], minlength=len(self.pids))
        works = (operators > 0) | (not operators.any())
        found = [self.pids[code] for code in np.flatnonzero((calls > 0) & works).tolist()]
        return sorted(found, key=natural)

    @cached_property
    def clock_ahead_ns(self) -> int:
        """By how much the device's clock runs ahead of the host's, at least: the earliest start before its
        launch."""
        rows = np.flatnonzero(self.is_device & (self.launch >= 0) & ~self.estimated)
        at = self.launched_at(rows)
        return int((at - self.start[rows])[at != NULL].max(initial=0))

    @cached_property
    def standstills(self) -> Int64:
        """When nothing at all is recorded though work is queued, int64[k, 2] ns."""
        return standstills(self)

    @cached_property
    def cut_off_ns(self) -> int:
        """How much device time a file of whole microseconds cuts off in all: half of one a record, on
        average. 0 in a file of nanoseconds."""
        rows = np.flatnonzero(self.is_device & ~self.estimated)
        is_whole = bool((self.slices.start[rows] % 1000 == 0).all() and (self.dur[rows] % 1000 == 0).all())
        return 500 * len(rows) if len(rows) >= _ENOUGH_WHOLE and is_whole else 0

    @cached_property
    def threads(self) -> pd.DataFrame:
        """Threads and streams: pid, tid, process_name, thread_name (str), sort_index (Int64)."""
        return threads(self.table, self.pid, self.pids, self.tid, self.tids)

    # -- links -------------------------------------------------------------------------------------

    @property
    def captures(self) -> tuple[Path, ...]:
        """Recordings of the capture of the graphs that this rank replays."""
        trace = None if self._job is None else self._job()
        return () if trace is None else of_rank(trace.captures, self.rank)

    @cached_property
    def waits(self) -> Waits:
        """The recorded synchronisation: what each wait belongs to, and waits for."""
        return recorded_waits(self)

    # -- time --------------------------------------------------------------------------------------

    @cached_property
    def iterations(self) -> pd.DataFrame:
        """The rank's iterations in time order, timed by the clock of its job.

        Columns as `iterations.find_iterations` documents, and as `iteration_clock.timed` adds: host_start_ns,
        host_end_ns, device_start_ns, device_end_ns, clock, open; start_ns and end_ns are by that clock.
        """
        clock = self._job_clock
        if (lent := self.by_lent_marks(clock)) is not None:
            return lent
        own = self.own_iterations
        if clock is None or not len(own) or own["clock"].iloc[0] == clock:
            return own
        return self._without_doubtful(retimed(own, clock))

    def by_lent_marks(self, clock: Clock | None) -> pd.DataFrame | None:
        """The iterations by the marks of another rank; None where there are none for this one."""
        if self._lent is None:
            return None
        return self._without_doubtful(self._timed(self._lent, self.iteration, clock))

    @cached_property
    def own_iterations(self) -> pd.DataFrame:
        """As `iterations`, without a look at other ranks: by its own marks, and the clock that fits it."""
        kept = self.kept_iterations
        known = None if kept is None else kept_iterations.read(*kept)
        if known is None:
            known = self._timed(self.announced, self._own_iteration, self._clock)
            known = self._without_doubtful(known)
            if kept is not None:
                kept_iterations.write(*kept, known)
        return known

    def _without_doubtful(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Iterations of which those are partial, too, whose records are not whole."""
        if not may_doubt(self):
            return frame
        doubtful = self._doubtful(frame)
        partial = frame["partial"] | frame["iteration"].isin([step.iteration for step in doubtful])
        lacking = [step.iteration for step in doubtful if step.lacks_first]
        return without_beginning(frame.assign(partial=partial), lacking)

    @property
    def kept_iterations(self) -> tuple[Path, str] | None:
        """Where `own_iterations` are kept, as `trace.kept_iterations` takes it; None where they are not."""
        file = self.events.iterations if self._is_plain else None
        made = f"{self._clock or 'auto'}-{self.offset_ns}"
        return None if file is None else (file, made)

    def _timed(self, marks: pd.DataFrame, iteration: Int32, clock: Clock | None) -> pd.DataFrame:
        rows = np.flatnonzero(self.is_device & (iteration >= 0))
        return timed(
            marks, iteration[rows].astype(np.int64), self.queues(rows),
            self.start[rows], self.end[rows], clock, self.drained,
        )  # fmt: skip

    def queues(self, rows: Int32 | Int64) -> Int64:
        """A number for the queue of each of these device rows, as `iteration_clock.timed` takes it.

        Copies to the host count as queues of their own: a loss that is read after `prof.step()` is work of
        the step before, and begins none.
        """
        to_host = np.array([_TO_HOST.search(name) is not None for name in self.names], np.bool_)
        return 2 * paired(self.stream[rows], self.device[rows]) + to_host[self.name[rows]]

    @cached_property
    def contradicted_iterations(self) -> list[int]:
        """Complete iterations whose window does not hold most of their own device work.

        Where no launch is recorded, whose work is whose is not known: all, if most runs after the last.
        """
        frame, rows = self.iterations, self.device_rows
        announced = len(frame) > 0 and frame["known"].iloc[0] == "announced"
        if announced and len(rows) and not (self.launch[rows] >= 0).any():
            after = self.start[rows] >= int(frame["end_ns"].max())
            if 2 * int(self.dur[rows[after]].sum()) > int(self.dur[rows].sum()):
                return frame.loc[~frame["partial"], "iteration"].tolist()
        rows = rows[self.iteration[rows] >= 0]
        return contradicted(
            self.iterations, self.iteration[rows].astype(np.int64), self.start[rows], self.end[rows]
        )

    @property
    def times_steps_better(self) -> str:
        """What to do where iterations are contradicted; only launches tell whose work is whose."""
        if (self.launch[self.is_device] >= 0).any():
            return 'time the steps on the device: Trace.open(..., clock="device")'
        return f"record the launches, too: {self.accelerator.record}"

    @property
    def all_contradicted(self) -> bool:
        """Whether there are complete iterations, and all of them are contradicted."""
        frame = self.iterations
        complete, is_open = ~frame["partial"].to_numpy(np.bool_), frame["open"].to_numpy(np.bool_)
        ended = complete & ~is_open
        numbers = {*frame["iteration"].to_numpy()[ended if ended.any() else complete].tolist()}
        return bool(numbers) and numbers <= {*self.contradicted_iterations}

    @cached_property
    def iteration_clock(self) -> Clock:
        """What times the iterations: the "host" that announces them, or the "device" that runs behind it."""
        return cast(Clock, str(self.iterations["clock"].iloc[0])) if len(self.iterations) else "host"

    @property
    def is_marked(self) -> bool:
        """Whether the program marks the iterations: they are announced, or annotated; not guessed."""
        return not self.iterations["known"].eq("guessed").any()

    @cached_property
    def announced(self) -> pd.DataFrame:
        """The iterations as the host announces them."""
        return _iterations.find_iterations(
            _iterations.Recorded(
                self.start, self.end, self.name, self.names, self.thread,
                self.event_class, self.is_device, ~self._on_device_side, self.depth,
            )
        )  # fmt: skip

    @cached_property
    def _lent(self) -> pd.DataFrame | None:
        """The marks of another rank of the job, where this one has none of its own."""
        trace = None if self._job is None else self._job()
        return None if trace is None or len(trace.ranks) < 2 else trace.marks_lent_to(self)

    @property
    def _job_clock(self) -> Clock | None:
        """The clock of all ranks of the job; None where this rank is alone, or a clock was chosen."""
        trace = None if self._job is None or self._clock is not None else self._job()
        return self._clock if trace is None or len(trace.ranks) < 2 else trace.job_clock

    @cached_property
    def iteration(self) -> Int32:
        """int32 iteration of each row, -1 for none: host rows by start, device rows by their issuer's.

        Device rows whose launch was not recorded belong to the iteration they start in, except those that run
        before the first launched row of their stream: a stream runs in order of launch, so they were launched
        before the recording began.
        """
        return self._own_iteration if self._lent is None else self._find_iteration(self._lent)

    @cached_property
    def _own_iteration(self) -> Int32:
        if self._kept_links is not None:
            return self._kept_links.iteration
        iteration = self._find_iteration(self.announced)
        if self._links_file is not None:
            kept_links.write(self._links_file, Links(self.launch, self.parent, self.depth, iteration))
        return iteration

    def _find_iteration(self, frame: pd.DataFrame) -> Int32:
        starts, ends = membership_windows(frame)
        caused = np.where(self.issuer >= 0, self.start[self.issuer], self.start) if self.n else self.start
        at = links.windows_of(caused, starts, ends)
        at[self.earlier_work] = -1
        at[self._work_of_pauses(frame)] = -1
        numbers = np.append(frame["iteration"].to_numpy(np.int64), -1).astype(np.int32)
        return numbers[at]

    def _work_of_pauses(self, frame: pd.DataFrame) -> Int64:
        """Positions of the device rows that were launched in the pause before a run of iterations."""
        begins = frame["start_ns"].to_numpy(np.int64)[np.diff(frame["run"], prepend=0) != 0]
        rows = self.device_rows
        found = [np.empty(0, np.int64)]
        for begin in begins.tolist():
            later = rows[self.start[rows] >= begin]
            found.append(
                later[
                    links.from_before(
                        self.launch[later], self.is_device[later], self.device[later], self.stream[later],
                        self.start[later],
                    )
                ]
            )  # fmt: skip
        return np.concatenate(found)

    @cached_property
    def drained(self) -> int | None:
        """When the device had finished its earlier work, in ns, if no recorded launch was made before that.

        Then the device ran empty, and the recording's own work began; None if it overlaps the earlier work.
        """
        earlier = self.earlier_work
        launched = self.launch[self.is_device & (self.launch >= 0)]
        if not len(earlier) or not len(launched):
            return None
        end = int(self.end[earlier].max())
        return end if int(self.start[launched].min()) >= end else None

    @cached_property
    def device_events(self) -> int:
        """How many rows are device work."""
        return int(np.count_nonzero(self.is_device))

    @cached_property
    def work_names(self) -> frozenset[str]:
        """The names of its compute and communication."""
        work = np.isin(self.event_class, (EventClass.COMPUTE, EventClass.COMMUNICATION))
        return frozenset(self.names[code] for code in np.flatnonzero(np.bincount(self.name[work])).tolist())

    @cached_property
    def device_span(self) -> tuple[int, int] | None:
        """(first start, last end) of device work in ns, None without any."""
        rows = self.device_rows
        return (int(self.start[rows].min()), int(self.end[rows].max())) if len(rows) else None

    @cached_property
    def host_span(self) -> tuple[int, int]:
        """(first start, last end) of what the program does on the host, in ns; without any, the extent.

        The profiler writes how long it recorded as a slice of its own, which may end seconds later.
        """
        rows = np.flatnonzero(among(self.event_class, _OF_PROGRAM))
        return (int(self.start[rows].min()), int(self.end[rows].max())) if len(rows) else self.extent

    @cached_property
    def iteration_windows(self) -> tuple[Int64, Int64, Int64]:
        """Numbers of its iterations, their windows by the clock that times them, and those of the host.

        As arrays: of many ranks with few iterations each, tables would take most of the time.
        """
        frame = self.iterations
        tiles = np.stack([frame[name].to_numpy(np.int64) for name in ("start_ns", "end_ns")], axis=1)
        return frame["iteration"].to_numpy(np.int64), tiles, host_windows(frame)

    def windows(self, scope: Scope | None = None, clock: Clock | None = None) -> Int64:
        """The times a scope covers on this rank: int64[k, 2], sorted, disjoint, half-open.

        Its iterations, by the clock that times them or by the one given, clipped to its window. With neither,
        the span of device work, as in HTA; without device work, that of the host's calls. Shared: not to be
        changed.
        """
        scope = scope or Scope()
        known = self._windows.get((scope, clock))
        if known is None:
            known = self._windows_of(scope, clock)
            known.flags.writeable = False
            if len(self._windows) >= _KEPT_WINDOWS:
                self._windows = {}
            self._windows[scope, clock] = known
        return known

    def _windows_of(self, scope: Scope, clock: Clock | None) -> Int64:
        if scope.iterations is not None:
            numbers, tiles, by_host = self.iteration_windows
            spans = (by_host if clock == "host" else tiles)[among(numbers, scope.iterations)]
        else:
            spans = np.array([scope.window_ns or self.device_span or self.host_span], np.int64)
        if scope.window_ns is not None:
            spans = np.clip(spans, *scope.window_ns)
        return np.ascontiguousarray(spans[spans[:, 0] < spans[:, 1]])

    def rows(self, scope: Scope | None = None) -> Int64:
        """int64 positions of the rows that overlap a scope, sorted by start; without times in the scope, all.

        A row of zero length counts where it starts. ``streams`` and ``names`` leave out what is not listed.
        The host rows of an iteration are those in its host's window, the device rows those in the window by
        its clock. Shared: not to be changed.
        """
        scope = scope or Scope()
        known = self._rows.get(scope)
        if known is None:
            known = self._rows_of(scope)
            known.flags.writeable = False
            if len(self._rows) >= _KEPT_ROWS:
                self._rows.clear()
            self._rows[scope] = known
        return known

    @cached_property
    def _rows(self) -> dict[Scope, Int64]:
        return {}

    def _rows_of(self, scope: Scope) -> Int64:
        return self.by_start[np.flatnonzero(self.overlap(slice(None), scope)[self.by_start])]

    def overlap(self, rows: Int64 | slice, scope: Scope) -> Bool:
        """Which of these rows are in `rows` of a scope; cheaper than `rows` for a few rows."""
        keep = self._listed(scope, rows)
        if len(keep) and (scope.iterations is not None or scope.window_ns is not None):
            inside = self._overlaps(rows, self.windows(scope))
            if scope.iterations is not None and self.iteration_clock == "device":
                by_host = self._overlaps(rows, self.windows(scope, "host"))
                inside = np.where(self._on_device_side[rows], inside, by_host)
            keep &= inside
        return keep

    def members(self, scope: Scope | None = None) -> Int64:
        """int64 positions of the rows that belong to a scope, sorted by start; without times in it, all.

        A row belongs to its ``iteration`` (device rows to that of their launch) and to the window that it
        starts in. So unlike `rows`, neighbouring scopes share no row, and their counts add up.
        """
        return self.by_start[self.belong(slice(None), scope or Scope())[self.by_start]]

    def belong(self, rows: Int64 | slice, scope: Scope) -> Bool:
        """Which of these rows are `members` of a scope; cheaper than `members` for a few rows."""
        keep = self._listed(scope, rows)
        if not len(keep):
            return keep
        if scope.iterations is not None:
            keep &= among(self.iteration[rows], scope.iterations)
        if scope.window_ns is not None:
            first, last = scope.window_ns
            start = self.start[rows]
            keep &= (start >= first) & (start < last)
        return keep

    def _listed(self, scope: Scope, rows: Int64 | slice) -> Bool:
        """Which of these rows are on the ranks and streams and have the names that a scope lists."""
        count = len(self.name[rows]) if isinstance(rows, slice) else len(rows)
        listed = np.full(count, scope.ranks is None or self.rank in scope.ranks, np.bool_)
        if scope.streams is not None:
            listed &= np.isin(self.stream[rows], scope.streams)
        if scope.names is not None:
            wanted = set(scope.names)
            listed &= np.array([text in wanted for text in self.names], np.bool_)[self.name[rows]]
        return listed

    def _overlaps(self, rows: Int64 | slice, windows: Int64) -> Bool:
        return links.overlapping(self.start[rows], self.end[rows], windows)
