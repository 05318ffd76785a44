"""The job: which ranks a path holds, on one time axis."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal, cast
from weakref import ref

import numpy as np
import numpy.typing as npt
import pandas as pd

from hta_widgets.engine import checkpoint
from hta_widgets.formatting import counted, encodable
from hta_widgets.trace import clocks
from hta_widgets.trace.absent_ranks import Absent, absent_ranks
from hta_widgets.trace.captures import captures_beside, given_captures
from hta_widgets.trace.class_rules import Classes, ClassRules, find_class_rules
from hta_widgets.trace.classify import EventClass, make_rule, registered
from hta_widgets.trace.events_frame import events_frame
from hta_widgets.trace.health import Finding, findings_in, health_frame, rank_findings
from hta_widgets.trace.iteration_clock import Clock
from hta_widgets.trace.job_health import (
    job_findings,
    memory_findings,
    number_findings,
    rule_findings,
    unlike_findings,
)
from hta_widgets.trace.job_iterations import iterations_of_job
from hta_widgets.trace.job_summary import summary_of
from hta_widgets.trace.kept_of_job import is_kept, kept_of_job
from hta_widgets.trace.lent_marks import is_announced, lent_marks
from hta_widgets.trace.memory import Memory, default_limit, parse_bytes
from hta_widgets.trace.one_job import why_several_jobs, world_size
from hta_widgets.trace.opening import no_trace, why_no_limit
from hta_widgets.trace.rank_events import RankEvents, open_rank, ranks_apart
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.reader.cache import Cache, cache_folder
from hta_widgets.trace.reader.discovery import Discovery, Which, discover
from hta_widgets.trace.reader.parallel import read_all
from hta_widgets.trace.reader.ranks import Assigned, stated_rank
from hta_widgets.trace.reader.stated import whole_number
from hta_widgets.trace.records.table import records_frame
from hta_widgets.trace.records.vetoes import CLAIMS, Claim, Veto
from hta_widgets.trace.roles import FileRow, files_frame, settle, without_foreign
from hta_widgets.trace.scope import Scope
from hta_widgets.trace.trust import Trust, trust_in

IterationClock = Literal["auto"] | Clock
_FILES_NAMED = 4  # files that are left out; more are counted
ITERATION_CLOCKS: tuple[IterationClock, ...] = ("auto", "host", "device")


class Trace:
    """All ranks of a job that could be read. Made by `Trace.open`.

    Attributes:
        ranks: rank numbers, ascending.
        failed: file name -> why it could not be read; the other files are opened all the same.
        memory: which ranks are in memory, and how many bytes they may hold.
        answers: the folder in which answers are stored (`analysis.core.kept`); None without a cache.
        recordings: the names of the recordings in the folder that was opened, where there are several.
        recording: the one that this is; "" if there is one only, or all were opened together.
        clock: how the ranks were put on one axis; ``origin_ns`` is the axis' zero in absolute ns.
        captures: recordings of the capture of graphs that the ranks replay.
        iteration_clock: what is to time the iterations, as in `open`; what does is in `iterations`.
    """

    counted_apart = True

    def __init__(
        self,
        events: list[RankEvents],
        assigned: list[Assigned],
        found: Discovery,
        failed: dict[str, Exception],
        memory: Memory,
        masks: dict[int, npt.NDArray[np.bool_]] | None = None,
        clock: clocks.Clock | None = None,
        iteration_clock: IterationClock = "auto",
        rules: ClassRules | None = None,
        answers: Path | None = None,
        captures: tuple[Path, ...] = (),
    ) -> None:
        self.failed = failed
        self.captures = captures
        self.memory = memory
        self.answers = answers
        self._found = found
        self.recordings, self.recording = found.recordings, found.recording
        self._rules = rules or ClassRules(registered())
        self._assigned = {assignment.rank: assignment for assignment in assigned}
        self._events = {assignment.rank: each for assignment, each in zip(assigned, events, strict=True)}
        for rank, each in self._events.items():
            each.renumber(self._assigned[rank])
        self.ranks: list[int] = sorted(self._events)
        self.iteration_clock = iteration_clock
        self._masks = masks or {}
        headers = {rank: each.header for rank, each in self._events.items()}
        self.clock = clock or clocks.align(
            {rank: extent for rank in self.ranks if (extent := headers[rank].extent) is not None},
            {
                rank: whole_number(header.metadata.get("baseTimeNanoseconds"))
                for rank, header in headers.items()
            },
            {
                rank: {(self._assigned[rank].shift, key): end for key, end in header.evidence.meetings}
                for rank, header in headers.items()
            },
        )
        self.origin_ns = self.clock.origin_ns
        self._ranks: dict[int, RankTrace] = {}
        self._findings: dict[tuple[int, int], list[Finding]] = {}

    @classmethod
    def open(
        cls,
        path: Any,
        client: Any = None,
        cache: Cache = True,
        progress: Callable[[float, int, str], None] | None = None,
        clock: IterationClock = "auto",
        classes: Classes | None = None,
        memory_limit: float | str | None = None,
        recording: Which = None,
        repair: bool = True,
        capture: Any = None,
    ) -> "Trace":
        """Read the traces of a job.

        A job whose columns are in the cache is opened by its headers alone; the columns of a rank are read
        when they are first needed.

        Args:
            path: a folder, a file, a URL that fsspec understands (of a folder, a file, or files:
                `s3://bucket/run/rank*.json.gz`), a binary file object, a list of these, or {rank: one of
                these}. Files of other machines are read 16 at a time; a connection that is cut or silent for
                30 s is made again, and reading goes on where it was.
            client: a ``dask.distributed.Client`` whose workers read the files, keep the columns and answer
                (`far.FarTrace`); they need access to the paths. Without a client, threads of this process
                read the files.
            cache: cache the parsed columns on disk: True for the default folder, False for no cache, a
                folder, or "verify": the default folder, and every byte of the files is compared with those
                that were cached, where else samples, the size and the time are.
            progress: called as progress(done, total, text) with the number of files read (a file that is
                being read counts in part), the number of files, and what is being read; an exception that it
                raises cancels the reading and propagates.
            clock: what times the iterations: the "host" that announces them, the "device" that runs their
                work, or "auto": the device if that of a rank runs behind (`iteration_clock.clock_of_job`).
            classes: rules that decide the class of device work by its name: {pattern: class}, or the path of
                a file of rules. They come before the rules of a file ``hta_widgets.toml`` beside the traces,
                which is always read (`class_rules`).
            memory_limit: how much memory the ranks' columns, and what analyses remember for them, may take in
                all: a number of bytes, or a text such as "1GB" or "1.5 GiB"; default half of the memory of
                the machine or container. Beyond it the ranks that were used
                least recently are dropped, and read from the cache when they are needed again, with the same
                answers. What answers about the whole job hold does not count. File objects cannot be read
                again and stay in memory, and so does everything without a cache; `health` says so where that
                exceeds the limit.
            recording: of several recordings in one folder (`recordings`: jobs, or one job at several times)
                the one to open, by its name or its place. Default: the last; all of them, as ranks, where the
                files do not say for certain that they are several.
            repair: records whose times cannot be true, such as two kernels at once on one in-order queue, are
                estimated from like ones or left out, and listed in `records`. False believes everything.
            capture: a file, a folder or a list of both: traces of the capture of the graphs that the ranks
                replay, which say what launched each kernel (`analysis.roles`). Default: those that lie
                beside the ranks' files.

        Raises:
            TraceNotFoundError: the path does not exist or holds no file to read, or no such `recording`.
            TraceFormatError: no file is a usable trace; the reason lists one per file.
            RemoteError: a URL cannot be read: access is denied, the connection is refused, or a driver or
                credentials are missing. In a list or a folder such a file is one of those that `failed`.
            ClusterError: the cluster of the `client` failed, or its workers do not have the files.
            ValueError: `clock` is none of these, or `classes` is a mapping with a class that device work
                cannot have or a pattern that is not a regular expression (errors in a file are listed in
                `health`), or there is a `memory_limit` that nothing could keep: without a cache, with a
                client, or not an amount above 0.
        """
        if clock not in ITERATION_CLOCKS:
            raise ValueError(f'clock is "auto", "host" or "device", not {clock!r}')
        if why := why_no_limit(memory_limit, cache, client):
            raise ValueError(f"memory_limit={memory_limit!r} cannot be used: {why}")
        captures = given_captures(capture)
        if client is not None:
            if captures:
                raise ValueError("capture= cannot be read by a client's workers: open the job without one")
            from hta_widgets.trace.far import FarTrace  # which is made of this

            return FarTrace.open_on(client, path, cache, progress, clock, classes, recording, repair)
        memory = Memory(default_limit() if memory_limit is None else parse_bytes(memory_limit))
        found = discover(path, recording)
        rules = find_class_rules(path, found.files, classes)
        read_one = partial(open_rank, memory=memory, repair=repair)
        read, failed = read_all(found.files, cache, progress, read_one=read_one)
        failed = found.failed | failed
        usable = [position for position, events in enumerate(read) if events is not None]
        if not usable:
            raise no_trace(path, failed, found.skipped)
        failed, found = without_foreign(failed, found)
        files, events = ranks_apart(
            [found.files[at] for at in usable], [each.by_rank() for each in read if each is not None]
        )
        settled = settle(files, [each.header for each in events], found, recording)
        aside = [
            file for file, each in zip(files, events, strict=True) if each.header.evidence.graphs == "capture"
        ]
        ranks = [files[at] for at in settled.positions]
        events = [events[at] for at in settled.positions]
        if not captures and any(each.header.evidence.graphs == "replay" for each in events):
            captures = captures_beside(ranks, [file for file in aside if file not in ranks])
        folder = cache_folder(cache)
        answers = None if folder is None else folder / "answers"
        return cls(
            events, settled.assigned, settled.found, failed, memory,
            iteration_clock=clock, rules=rules, answers=answers, captures=captures,
        )  # fmt: skip

    def __repr__(self) -> str:
        return f"Trace({', '.join(filter(None, (counted(len(self.ranks), 'rank'), self.without)))})"

    @property
    def without(self) -> str:
        """What no answer holds: "without rank 5 of 8", "without 2 files that could not be read"; or ""."""
        failed = f"{counted(len(self.failed), 'file')} that could not be read" if self.failed else ""
        missing = ", ".join(filter(None, (self.absent.text, failed)))
        return f"without {missing}" if missing else ""

    @cached_property
    def absent(self) -> Absent:
        """The ranks of the job that this trace of several of them lacks."""
        return absent_ranks(
            {rank: events.header.metadata for rank, events in self._events.items()},
            all(self._is_numbered(each) for each in self._assigned.values()),
        )

    def _is_numbered(self, assigned: Assigned) -> bool:
        """Whether the file is the one of that rank, by its own words or the caller's."""
        if assigned.duplicate or assigned.source not in ("file", "collectives", "caller"):
            return False
        return stated_rank(self._events[assigned.rank].header.stated)[0] in (None, assigned.rank)

    @property
    def name(self) -> str:
        """The last part of the path or URL that was opened; "" of several files, or of a file object."""
        return self._found.name

    @cached_property
    def files(self) -> pd.DataFrame:
        """What each file was taken for, and why.

        Columns: file (str, its name below the folder that was opened), taken_as (str: "rank", "another
        recording", "left out" or "unreadable"), rank (Int64, null for all but ranks), recording (str, ""
        where there is one only), reason (str).
        """
        ranks = [self._assigned[rank] for rank in self.ranks]
        rows: list[FileRow] = [(of.file, "rank", of.rank, self.recording, of.reason) for of in ranks]
        rows += [
            (name, "another recording", None, recording, f"open it with recording={recording!r}")
            for name, recording in self._found.unopened.items()
        ]
        left_out = self._found.skipped | self._found.elsewhere
        rows += [(name, "left out", None, "", reason) for name, reason in left_out.items()]
        rows += [(name, "unreadable", None, "", str(error)) for name, error in self.failed.items()]
        return files_frame(rows)

    @property
    def file_notes(self) -> list[str]:
        """What a reader must know of the files before any figure: other recordings, and what is left out."""
        skipped = [f"{name} is left out: {reason}" for name, reason in self._found.skipped.items()]
        more = [f"and {counted(len(skipped) - _FILES_NAMED, 'more file')}: see Trace.files"]
        notes = [*self._found.notes, *skipped[:_FILES_NAMED], *(more if len(skipped) > _FILES_NAMED else [])]
        return [encodable(note) for note in notes]

    def rank(self, rank: int) -> RankTrace:
        """One rank.

        Raises:
            KeyError: the trace has no such rank.
        """
        if rank not in self._events:
            raise KeyError(f"no rank {rank}: this trace has {self.ranks}")
        if rank not in self._ranks:
            # Two threads may both build it; the first to store it wins, so that all share one object.
            built = RankTrace(
                self._events[rank], rank, self._assigned[rank].label,
                self.clock.offset_ns.get(rank, 0), self._masks.get(rank),
                _wanted(self.iteration_clock), self._rules.rules, ref(self),
            )  # fmt: skip
            self._ranks.setdefault(rank, built)
        self._events[rank].used()
        return self._ranks[rank]

    def keep(self, select: Callable[[RankTrace], npt.NDArray[np.bool_]]) -> "Trace":
        """The same job with only the slices that `select` marks on each rank, on the same time axis.

        Links, iterations and spans are computed anew from the remaining slices.
        """
        masks = {}
        for rank in self.ranks:
            chosen, before = select(self.rank(rank)), self._masks.get(rank)
            if before is not None:  # of all slices those that remain of those that remained
                every = before.copy()
                every[before] = chosen
                chosen = every
            masks[rank] = chosen
        return self._again(masks=masks)

    def timed_by(self, clock: IterationClock) -> "Trace":
        """The same job with its iterations timed by another clock; see `open`.

        Nothing is read again, and what no clock changes is shared.
        """
        if clock == self.iteration_clock:
            return self
        other = self._again(clock=clock)
        other._ranks = {
            rank: known.timed_by(_wanted(clock), ref(other)) for rank, known in list(self._ranks.items())
        }
        return other

    def with_classes(self, classes: Mapping[str, EventClass | str]) -> "Trace":
        """The same job with further rules for the classes of device work, which come before those it has.

        Args:
            classes: {pattern: class}, as in `open`.

        Raises:
            ValueError: as in `open`.
        """
        rules = [make_rule(pattern, event_class) for pattern, event_class in classes.items()]
        return self._again(rules=replace(self._rules, rules=(*rules, *self._rules.rules)))

    def _again(
        self,
        masks: dict[int, npt.NDArray[np.bool_]] | None = None,
        clock: IterationClock | None = None,
        rules: ClassRules | None = None,
    ) -> "Trace":
        """The same files on the same time axis, with fewer slices, another clock or other rules."""
        ranks = list(self._assigned)
        return Trace(
            [self._events[rank] for rank in ranks], [self._assigned[rank] for rank in ranks],
            self._found, self.failed, self.memory, masks or self._masks, self.clock,
            clock or self.iteration_clock, rules or self._rules, self.answers, self.captures,
        )  # fmt: skip

    @property
    def exceeds_memory(self) -> bool:
        """Whether the columns of all ranks are more than may be in memory, or with what follows from them."""
        columns = sum(events.header.nbytes for events in self._events.values())
        return columns > self.memory.limit or self.memory.dropped > 0

    @cached_property
    def rank_keys(self) -> dict[int, str]:
        """Of each rank a text that changes with its content and with what makes a rank of it.

        Empty where that is unknown: without a cache, or of slices that were chosen.
        """
        # which clock times a rank's iterations, and whose marks, follows from all ranks
        of_job = self.key if len(self.ranks) > 1 else self.iteration_clock
        return {rank: f"{key} {of_job}" for rank, key in self.slice_keys.items()}

    @cached_property
    def slice_keys(self) -> dict[int, str]:
        """As `rank_keys`, of a rank's slices alone, which no clock of the iterations changes."""
        if self._masks or not all(events.key for events in self._events.values()):
            return {}
        rules = [(rule.pattern.pattern, int(rule.event_class)) for rule in self._rules.rules]
        rules += [(str(path), path.stat().st_mtime_ns) for path in self.captures if path.exists()]
        return {
            rank: f"{events.key} {self._assigned[rank].key} {self.clock.offset_ns.get(rank, 0)} {rules}"
            for rank, events in self._events.items()
        }

    @cached_property
    def key(self) -> str:
        """A text that changes with any rank, with how they were put together, and with what is missing."""
        if not self.slice_keys:
            return ""
        failed = {name: str(error) for name, error in self.failed.items()}
        parts = [
            self.slice_keys,
            self.iteration_clock,
            self.clock,
            failed,
            self._found.skipped,
            self._found.notes,
            self._rules.problems,
        ]
        return hashlib.blake2b(repr(parts).encode(), digest_size=16).hexdigest()

    def metadata(self, rank: int) -> dict[str, Any]:
        """The top-level JSON keys of a rank's file, all but ``traceEvents``."""
        return self.rank(rank).metadata

    def events(self, scope: Scope | None = None) -> pd.DataFrame:
        """One row per event within a scope; columns as `events_frame` documents.

        Args:
            scope: the part to return, by default everything; ranks that the trace lacks are ignored.
        """
        scope = scope or Scope()
        return events_frame([self.rank(rank) for rank in self.ranks_of(scope)], scope)

    def each(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        """`function(rank, *args)` for each `RankTrace`, where it is."""
        answers = []
        for rank in self.ranks:
            checkpoint()
            answers.append(function(self.rank(rank), *args))
        return answers

    def each_with(self, function: Callable[..., Any], args_by_rank: Mapping[int, Any]) -> dict[int, Any]:
        """`function(rank, args_by_rank[rank])` for each `RankTrace` with arguments, where it is."""
        answers = {}
        for rank in sorted(args_by_rank):
            checkpoint()
            answers[rank] = function(self.rank(rank), args_by_rank[rank])
        return answers

    def merged(self, function: Callable[..., Any], merge: Callable[[list[Any]], Any]) -> Any:
        """`merge` of the answers `function(rank)` of all; it may merge some first, in any order."""
        return merge(self.each(function))

    def ranks_of(self, scope: Scope | None) -> list[int]:
        """The ranks of the trace that a scope selects."""
        if scope is None or scope.ranks is None:
            return list(self.ranks)
        return sorted(self._events.keys() & set(scope.ranks))  # of one rank asked for, without a look at all

    @cached_property
    def iterations(self) -> pd.DataFrame:
        """All ranks' iterations by rank and time: columns iteration, rank, then as `RankTrace.iterations`."""
        return kept_of_job(self, "iterations", lambda: iterations_of_job(self))

    @property
    def was_opened(self) -> bool:
        """Whether an earlier process has left what the first view of a job of many ranks needs of each."""
        return is_kept(self, "iterations")

    @cached_property
    def job_clock(self) -> Clock:
        """The clock that times the iterations of all ranks: the one chosen, or the one that fits them all."""
        wanted = _wanted(self.iteration_clock)
        if wanted is not None:
            return wanted
        clocks = self.iterations["clock"]
        return cast(Clock, str(clocks.iloc[0])) if len(clocks) else "host"

    def marks_lent_to(self, rank_trace: RankTrace) -> pd.DataFrame | None:
        """The marks of the first rank that announces its steps, for one that does not but works beside it.

        None where the rank has its own, no other has, or no clock that both share says which of its time they
        are about.
        """
        if is_announced(rank_trace.own_iterations).all() or self.clock.method == "start":
            return None
        lender = None if self.several_jobs else self._lender
        return None if lender is None else lent_marks(lender.own_iterations, lender.rank, rank_trace.extent)

    @cached_property
    def _lender(self) -> RankTrace | None:
        every = (self.rank(rank) for rank in self.ranks)
        return next((each for each in every if is_announced(each.own_iterations).any()), None)

    @cached_property
    def kinds(self) -> list[str]:
        """What kind of run each rank's file records (`Recording.kind`), in the order of `ranks`."""
        return kept_of_job(self, "kinds", self._kinds)["kind"].tolist()

    def _kinds(self) -> pd.DataFrame:
        return pd.DataFrame({"kind": [self.rank(rank).recording.kind for rank in self.ranks]}, dtype="str")

    @cached_property
    def extent_ns(self) -> tuple[int, int]:
        """(first start, last end) over all ranks in ns on the job's axis."""
        extents = [self.rank(rank).extent for rank in self.ranks if self.rank(rank).n]
        return (min(start for start, _ in extents), max(end for _, end in extents)) if extents else (0, 0)

    def records(self) -> pd.DataFrame:
        """The records that cannot be true, and launches and device work whose other half is missing.

        Columns: rank, event_id (int64, row in the file), name, category, mark (str: "no_time", "early_start",
        "late_end", "overlap", "unfinished", "work_lost", "call_lost"), reason (str), excluded (bool: no
        number holds it), recorded_start_ns, recorded_dur_ns (Int64, as in the file; null where it states
        none), start_ns, dur_ns (Int64: what is taken for them, null where excluded). Empty for most files.
        """
        frames: list[pd.DataFrame] = self.each(records_frame)
        return pd.concat(frames, ignore_index=True)

    def vetoes(self, claim: Claim | None = None, scope: Scope | None = None) -> list[Veto]:
        """What the recording cannot show, and why: which classes of claims it does not support, and when.

        Args:
            claim: "idle_causes", "savings", "ranks", "steps" or "efficiency"; all by default.
            scope: the part that a claim is about: vetoes that touch its windows on its ranks. All by default.

        Returns:
            One `Veto` for each stretch of time, by rank and time. A claim that one of them touches must be
            withheld with its ``reason`` and ``remedy``.

        Raises:
            ValueError: there is no such claim.
        """
        if claim is not None and claim not in CLAIMS:
            raise ValueError(f"no class of claims {claim!r}: there are {', '.join(CLAIMS)}")
        found = self.each(_vetoes_within, scope)
        ranks = {*self.ranks_of(scope)}
        return [
            veto
            for of_rank in found
            for veto in of_rank
            if veto.rank in ranks and (claim is None or claim in veto.claims)
        ]

    @cached_property
    def trust(self) -> Trust:
        """How far the records can be trusted, in one line: its level, the line, and notes with remedies."""
        return trust_in(self)

    @cached_property
    def health(self) -> pd.DataFrame:
        """What is wrong, missing or doubtful, most severe first.

        Columns: rank (Int64, null for the job), severity, check (str), count (int64), detail, remedy (str),
        name (str, of the device work that the row is about, "" for none).
        """
        size = 1 if self.several_jobs else self.job_size
        about = kept_of_job(self, f"findings of ranks of {size}", lambda: self._about_ranks(size))
        return health_frame([*self._about_job(), *findings_in(about)])

    def _about_ranks(self, size: int) -> pd.DataFrame:
        return health_frame(finding for rank in self.ranks for finding in self.findings_about(rank, size))

    def findings_about(self, rank: int, job_size: int) -> list[Finding]:
        """What `health` says of a rank of a job of so many; computed once."""
        if (rank, job_size) not in self._findings:
            assigned = self._assigned[rank]
            stated, _ = stated_rank(self._events[rank].header.stated)
            found = number_findings(assigned, stated) + rank_findings(self.rank(rank), job_size)
            self._findings[rank, job_size] = found
        return self._findings[rank, job_size]

    def _about_job(self) -> list[Finding]:
        """What `health` says of the job as a whole."""
        return [
            *job_findings(self.failed, self._found.skipped, self._found.notes, self.clock),
            *rule_findings(self._rules),
            *memory_findings(self._events.values(), self.memory.limit),
            *unlike_findings(self.absent, self.several_jobs, len(self.ranks)),
        ]

    @cached_property
    def several_jobs(self) -> str:
        """What shows that the files are of unrelated jobs, whose ranks cannot be compared; "" if nothing."""
        return str(kept_of_job(self, "several jobs", self._several_jobs)["why"].iloc[0])

    def _several_jobs(self) -> pd.DataFrame:
        return pd.DataFrame(
            {"why": [why_several_jobs([self.rank(rank) for rank in self.ranks])]}, dtype="str"
        )

    @cached_property
    def job_size(self) -> int:
        """How many ranks the job has: as its files say, or at least as many as there are files."""
        stated = [world_size(events.header.metadata) for events in self._events.values()]
        return max(len(self.ranks), *stated, 0)

    @cached_property
    def summary(self) -> dict[str, Any]:
        """Key figures of the job.

        Keys: job, world_size, backend, hosts, devices (rank -> name), ranks, files, events, duration_ns.
        """
        return summary_of(self, [self._events[rank].header for rank in self.ranks])


def _vetoes_within(rank_trace: RankTrace, scope: Scope | None) -> list[Veto]:
    """Those of a rank that touch the windows of a scope."""
    vetoes = sorted(rank_trace.vetoes, key=lambda veto: (veto.start_ns, veto.end_ns))
    if scope is None or not vetoes:
        return vetoes
    windows = rank_trace.windows(scope).tolist()
    return [veto for veto in vetoes if any(veto.touches(start, end) for start, end in windows)]


def _wanted(clock: IterationClock) -> Clock | None:
    """The clock that every rank is to use, None: each the one that fits it."""
    return None if clock == "auto" else clock
