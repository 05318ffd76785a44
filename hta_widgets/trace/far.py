"""A job whose ranks lie on the workers of a Dask cluster.

Each worker reads files, keeps their columns and makes a `RankTrace` of them; what is asked about a rank is
computed there, and only the answer travels. What needs all ranks together is computed on one worker, to which
the others send their columns once, or in the notebook where no worker can hold them. Columns come to the
notebook for that, and for what looks at single events: a rank at a time, and again only if they were dropped
meanwhile because memory is short.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from hta_widgets.errors import ClusterError, HtaWidgetsError, TraceFormatError, TraceNotFoundError
from hta_widgets.formatting import counted
from hta_widgets.trace import clocks
from hta_widgets.trace.class_rules import Classes, ClassRules, find_class_rules
from hta_widgets.trace.cluster import largest_worker, mapped, results, submitted
from hta_widgets.trace.health import Finding, health_frame
from hta_widgets.trace.memory import Memory, default_limit
from hta_widgets.trace.model import IterationClock, Trace, no_trace
from hta_widgets.trace.one_job import device_names, several_jobs, world_size
from hta_widgets.trace.rank_events import Header, RankEvents, ranks_apart
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.reader.cache import Cache
from hta_widgets.trace.reader.discovery import Assigned, Discovery, Which, assign_ranks, discover
from hta_widgets.trace.reader.file_names import TraceFile
from hta_widgets.trace.reader.parallel import labels, read_file
from hta_widgets.trace.reader.table import EventTable
from hta_widgets.trace.slices import Slices

__all__ = ["FarTrace"]

Progress = Callable[[float, int, str], None]

# Beside columns, a rank holds what follows from them.
_HELD_PER_COLUMN_BYTE = 2.0
_PART_OF_WORKER = 0.6


@dataclass(frozen=True)
class Part:
    """The events of one rank."""

    header: Header
    table: EventTable
    slices: Slices

    @classmethod
    def of(cls, events: RankEvents) -> Part:
        """Those of one rank."""
        return cls(events.header, events.table, events.slices)

    def __sizeof__(self) -> int:  # Dask moves and spills by it
        return int(_HELD_PER_COLUMN_BYTE * self.table.nbytes)


@dataclass(frozen=True)
class Plan:
    """How ranks become a trace; the same on every machine."""

    assigned: tuple[Assigned, ...]
    clock: clocks.Clock
    iteration_clock: IterationClock
    rules: ClassRules
    found: Discovery
    failed: dict[str, Exception]
    job_size: int

    def trace(self, parts: Sequence[Part]) -> Trace:
        """The trace of all ranks of the plan."""
        trace = Trace(
            [RankEvents(part.header, part.table, part.slices) for part in parts],
            list(self.assigned), self.found, self.failed, Memory(default_limit()),
            clock=self.clock, iteration_clock=self.iteration_clock, rules=self.rules,
        )  # fmt: skip
        vars(trace)["job_size"] = self.job_size  # that of the job, also for one of its ranks
        return trace

    def of(self, assigned: Assigned) -> Plan:
        """The plan of one rank, without what others need."""
        rank, offsets = assigned.rank, self.clock.offset_ns
        clock = replace(self.clock, offset_ns={rank: offsets[rank]} if rank in offsets else {})
        return replace(self, assigned=(assigned,), clock=clock, found=Discovery([]), failed={})


class There:
    """A trace on a worker."""

    def __init__(self, plan: Plan, *parts: Part) -> None:
        self.plan, self.parts = plan, parts

    @cached_property
    def trace(self) -> Trace:
        return self.plan.trace(self.parts)

    def __sizeof__(self) -> int:
        return sum(part.__sizeof__() for part in self.parts)

    def __reduce__(self) -> tuple[Any, ...]:  # without what was remembered
        return There, (self.plan, *self.parts)


# -- on the workers ----------------------------------------------------------------------------------------


def _read(file: TraceFile, cache: Cache) -> list[Part] | Exception:
    """The ranks of a file, or why there are none: one bad file must not fail the other tasks."""
    try:
        return [Part.of(events) for events in RankEvents.of(read_file(file, cache)).by_rank()]
    except (HtaWidgetsError, OSError) as error:
        return error
    except Exception as error:  # those of drivers need not be known to the notebook
        return TraceFormatError(file.name, f"{type(error).__name__}: {error}")


def _headers(parts: list[Part] | Exception) -> list[Header] | Exception:
    return parts if isinstance(parts, Exception) else [part.header for part in parts]


def _part(parts: list[Part], at: int) -> Part:
    return parts[at]


def _columns(part: Part) -> EventTable:
    return part.table


def _of_rank(there: There, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    trace = there.trace
    return function(trace.rank(trace.ranks[0]), *args)


def _of_trace(
    there: There, function: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]
) -> Any:
    """What a function says of a trace; an error of ours is an answer, not a failure of the worker."""
    try:
        return function(there.trace, *args, **named)
    except (HtaWidgetsError, ValueError) as error:
        return _Raised(error)


@dataclass(frozen=True)
class _Raised:
    error: Exception


def _known(rank: RankTrace) -> dict[str, Any]:
    """What is asked about every rank of a job, and small."""
    names = ("n", "iterations", "extent", "device_span", "device_name", "recording")
    return {name: getattr(rank, name) for name in names}


def _findings(trace: Trace, size: int) -> list[Finding]:
    return trace.findings_about(trace.ranks[0], size)


# -- in the notebook ---------------------------------------------------------------------------------------


class FarTrace(Trace):
    """A job on a cluster, whose answers are those of `Trace`.

    `each`, `ask_ranks` and `ask_whole` compute where the ranks lie.

    Attributes:
        client: the ``dask.distributed.Client``.
    """

    def __init__(
        self,
        client: Any,
        parts: Mapping[int, Any],
        events: list[RankEvents],
        assigned: list[Assigned],
        found: Discovery,
        failed: dict[str, Exception],
        memory: Memory,
        clock: clocks.Clock | None,
        iteration_clock: IterationClock,
        rules: ClassRules,
    ) -> None:
        super().__init__(
            events, assigned, found, failed, memory,
            clock=clock, iteration_clock=iteration_clock, rules=rules,
        )  # fmt: skip
        self.client, self._parts = client, dict(parts)
        self._plan = Plan(tuple(assigned), self.clock, iteration_clock, rules, found, failed, self.job_size)
        plans = [self._plan.of(self._assigned[rank]) for rank in self.ranks]
        futures = [self._parts[rank] for rank in self.ranks]
        self._there = dict(zip(self.ranks, mapped(client, There, plans, futures), strict=True))
        for rank, known in zip(self.ranks, self.each(_known), strict=True):
            vars(self.rank(rank)).update(known)

    @classmethod
    def open_on(
        cls,
        client: Any,
        path: Any,
        cache: Cache,
        progress: Progress | None,
        clock: IterationClock,
        classes: Classes | None,
        recording: Which,
    ) -> FarTrace:
        """See `Trace.open`."""
        found = discover(path, recording)
        rules = find_class_rules(path, found.files, classes)
        files = [_sent(file) for file in found.files]
        reads = mapped(client, partial(_read, cache=cache), files)

        def report(done: int) -> None:
            if progress is not None:
                progress(done, len(files), f"workers read {done} of {counted(len(files), 'file')}")

        told = results(client, mapped(client, _headers, reads), report)
        failed = found.failed | {
            label: answer
            for label, answer in zip(labels(found.files), told, strict=True)
            if isinstance(answer, Exception)
        }
        if len(failed) >= len(told) and (unseen := _unseen(failed)):
            raise ClusterError(unseen, "Keep them where every worker can read: a shared folder or a URL.")
        if all(isinstance(answer, Exception) for answer in told):
            raise no_trace(path, failed, found.skipped)
        usable = [at for at, answer in enumerate(told) if not isinstance(answer, Exception)]
        memory = Memory(default_limit())
        sources, read, merged = ranks_apart(
            [found.files[at] for at in usable],
            [_on_worker(client, reads[at], told[at], memory) for at in usable],
        )
        found.notes += merged
        assigned = assign_ranks(sources, [events.header.as_table() for _, events in read])
        found.files = []  # which need not travel
        parts = {each.rank: part for each, (part, _) in zip(assigned, read, strict=True)}
        events = [each for _, each in read]
        return cls(client, parts, events, assigned, found, failed, memory, None, clock, rules)

    @property
    def pulled(self) -> set[int]:
        """The ranks whose columns are here."""
        return {rank for rank, events in self._events.items() if events.here}

    # -- asking ------------------------------------------------------------------------------------

    def each(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        """See `Trace.each`; the function can be pickled, and only what it returns travels."""
        there = [self._there[rank] for rank in self.ranks]
        asked = mapped(self.client, partial(_of_rank, function=function, args=args), there)
        return results(self.client, asked)

    def ask_ranks(
        self, function: Callable[..., Any], args: Sequence[tuple[Any, ...]], named: Any
    ) -> list[Any]:
        """`function(trace of one rank, *args, **named)` for each (rank, *args)."""
        asked = [
            submitted(self.client, _of_trace, self._there[rank], function, rest, named)
            for rank, *rest in args
        ]
        return _returned(results(self.client, asked))

    def ask_whole(self, function: Callable[..., Any], *args: Any, **named: Any) -> Any:
        """`function(trace, *args, **named)` on the worker that has all ranks; only if `fits_a_worker`."""
        asked = submitted(self.client, _of_trace, self._whole, function, args, named)
        return _returned(results(self.client, [asked]))[0]

    @cached_property
    def fits_a_worker(self) -> bool:
        """Whether the largest worker has the memory for all ranks."""
        need = int(_HELD_PER_COLUMN_BYTE * sum(events.header.nbytes for events in self._events.values()))
        most = largest_worker(self.client)
        return not most or need <= _PART_OF_WORKER * most

    @cached_property
    def _whole(self) -> Any:
        """All ranks on one worker."""
        parts = [self._parts[each.rank] for each in self._plan.assigned]
        return submitted(self.client, There, self._plan, *parts)

    # -- what `Trace` takes from columns -----------------------------------------------------------

    def timed_by(self, clock: IterationClock) -> Trace:
        """See `Trace.timed_by`; the columns stay where they are."""
        return self if clock == self.iteration_clock else self._again(clock=clock)

    def _again(
        self,
        kept: dict[int, npt.NDArray[np.bool_]] | None = None,
        clock: IterationClock | None = None,
        rules: ClassRules | None = None,
    ) -> Trace:
        if kept is not None:  # by columns, which are here
            return super()._again(kept, clock, rules)
        assigned = list(self._plan.assigned)
        return FarTrace(
            self.client, self._parts, [self._events[each.rank] for each in assigned], assigned, self._found,
            self.failed, self.memory, self.clock, clock or self.iteration_clock, rules or self._rules,
        )  # fmt: skip

    @cached_property
    def health(self) -> pd.DataFrame:
        """See `Trace.health`."""
        size = 1 if self.several_jobs else self.job_size
        rows = [(rank, size) for rank in self.ranks]
        about = [finding for found in self.ask_ranks(_findings, rows, {}) for finding in found]
        return health_frame([*self._about_job(), *about])

    @cached_property
    def several_jobs(self) -> str:
        """See `Trace.several_jobs`."""
        sizes = [world_size(self._events[rank].header.metadata) for rank in self.ranks]
        return several_jobs(
            [self._assigned[rank].label for rank in self.ranks], sizes, lambda: self.each(device_names)
        )


def _on_worker(
    client: Any, read: Any, headers: Sequence[Header], memory: Memory
) -> list[tuple[Any, RankEvents]]:
    """Of each rank of a file its future and its events, whose columns come when they are read."""
    parts = [submitted(client, _part, read, at) for at in range(len(headers))]
    return [
        (part, RankEvents(header, reload=partial(_pulled, client, part), memory=memory))
        for part, header in zip(parts, headers, strict=True)
    ]


def _pulled(client: Any, part: Any) -> EventTable:
    table: EventTable = results(client, [submitted(client, _columns, part)])[0]
    return table


def _returned(answers: list[Any]) -> list[Any]:
    for answer in answers:
        if isinstance(answer, _Raised):
            raise answer.error
    return answers


def _sent(file: TraceFile) -> TraceFile:
    """A file as workers find it.

    Raises:
        ClusterError: it is an open file of this process.
    """
    if hasattr(file.source, "read"):
        raise ClusterError(
            f"{file.name} is an open file of this process, which workers cannot read", "Pass its path or URL."
        )
    return replace(file, source=file.source.absolute()) if isinstance(file.source, Path) else file


def _unseen(failed: Mapping[str, Exception]) -> str:
    """That the workers do not have the files, which were found from here; "" if that is not all."""
    if not all(isinstance(error, FileNotFoundError | TraceNotFoundError) for error in failed.values()):
        return ""
    return f"the workers cannot find the files that are found from here: {next(iter(failed.values()))}"
