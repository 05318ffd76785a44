"""A job whose ranks lie on the workers of a Dask cluster.

Each worker reads files, keeps their columns and makes a `RankTrace` of them; what is asked about a rank is
computed there, and only the answer travels. Ranks that lie on one worker are asked in groups: a scheduler
takes as long for a task as many a rank takes to answer, and what a group says is put together where it lies.

What needs columns of all ranks together is computed on one worker, to which the others send them once, or in
the notebook where no worker can hold them. Columns come to the notebook for that, and for what looks at
single events: a rank at a time, and again only if they were dropped meanwhile because memory is short.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
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
from hta_widgets.trace.cluster import (
    largest_worker,
    mapped,
    packed,
    places,
    results,
    submitted,
    threads_of,
    unpacked,
)
from hta_widgets.trace.health import Finding, health_frame
from hta_widgets.trace.iteration_clock import clock_of_job
from hta_widgets.trace.memory import Memory, default_limit
from hta_widgets.trace.model import IterationClock, Trace
from hta_widgets.trace.one_job import device_names, several_jobs, world_size
from hta_widgets.trace.opening import no_trace
from hta_widgets.trace.rank_events import Header, RankEvents, ranks_apart
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.reader.cache import Cache
from hta_widgets.trace.reader.discovery import Discovery, Which, discover
from hta_widgets.trace.reader.file_names import TraceFile
from hta_widgets.trace.reader.parallel import labels, read_file
from hta_widgets.trace.reader.ranks import Assigned
from hta_widgets.trace.reader.table import EventTable
from hta_widgets.trace.roles import settle, without_foreign
from hta_widgets.trace.slices import Slices

Progress = Callable[[float, int, str], None]

# Beside columns, a rank holds what follows from them.
_HELD_PER_COLUMN_BYTE = 2.0
_PART_OF_WORKER = 0.6
# Of ranks on one worker. More would be fewer tasks, but one that is no longer wanted would run on for longer.
_GROUP = 32


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

    def of(self, assigned: Sequence[Assigned]) -> Plan:
        """The plan of some ranks, without what others need."""
        offsets = self.clock.offset_ns
        own = {each.rank: offsets[each.rank] for each in assigned if each.rank in offsets}
        clock = replace(self.clock, offset_ns=own)
        return replace(self, assigned=tuple(assigned), clock=clock, found=Discovery([]), failed={})


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


def _read(file: TraceFile, cache: Cache, repair: bool) -> list[Part] | Exception:
    """The ranks of a file, or why there are none: one bad file must not fail the other tasks."""
    try:
        return [Part.of(events) for events in RankEvents.of(read_file(file, cache), repair).by_rank()]
    except (HtaWidgetsError, OSError) as error:
        return error
    except Exception as error:  # those of drivers need not be known to the notebook
        return TraceFormatError(file.name, f"{type(error).__name__}: {error}")


def _headers(parts: list[Part] | Exception) -> list[Header] | Exception:
    return parts if isinstance(parts, Exception) else [part.header for part in parts]


def _columns(parts: list[Part], at: int) -> EventTable:
    return parts[at].table


def _apart(plan: Plan, at: Sequence[int], *read: list[Part]) -> list[There]:
    """The ranks of a plan, each by itself, from the files that hold them and their places in these."""
    return [
        There(plan.of([assigned]), parts[place])
        for assigned, place, parts in zip(plan.assigned, at, read, strict=True)
    ]


def _together(plan: Plan, at: Sequence[int], *read: list[Part]) -> There:
    """As `_apart`, all in one."""
    return There(plan, *(parts[place] for place, parts in zip(at, read, strict=True)))


def _of_group(
    group: list[There],
    function: Callable[..., Any],
    at: Sequence[int],
    args: tuple[Any, ...],
    named: dict[str, Any],
) -> bytes:
    """What a function says of some ranks of a group."""
    return _answer(lambda: function([group[place].trace for place in at], *args, **named))


def _of_whole(
    there: There, function: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]
) -> bytes:
    return _answer(lambda: function(there.trace, *args, **named))


def _answer(ask: Callable[[], Any]) -> bytes:
    """An answer as it travels; an error of ours is one, and no failure of the worker."""
    try:
        return packed(ask())
    except (HtaWidgetsError, ValueError) as error:
        return packed(_Raised(error))


def _one_by_one(traces: Sequence[Trace], function: Callable[..., Any], *args: Any, **named: Any) -> list[Any]:
    return [function(trace, *args, **named) for trace in traces]


def _merged(traces: Sequence[Trace], function: Callable[..., Any], merge: Callable[..., Any]) -> Any:
    return merge([function(_only(trace)) for trace in traces])


def _each_with(
    traces: Sequence[Trace], function: Callable[..., Any], args_by_rank: Mapping[int, Any]
) -> list[Any]:
    return [function(_only(trace), args_by_rank[trace.ranks[0]]) for trace in traces]


def _of_rank(trace: Trace, function: Callable[..., Any], *args: Any) -> Any:
    return function(_only(trace), *args)


def _only(trace: Trace) -> RankTrace:
    return trace.rank(trace.ranks[0])


@dataclass(frozen=True)
class _Raised:
    error: Exception


def _known(rank: RankTrace) -> dict[str, Any]:
    """What is asked about every rank of a job, and small."""
    names = (
        "n", "iterations", "contradicted_iterations", "extent", "device_span", "device_name", "recording",
    )  # fmt: skip
    return {name: getattr(rank, name) for name in names}


def _findings(trace: Trace, size: int) -> list[Finding]:
    return trace.findings_about(trace.ranks[0], size)


# -- in the notebook ---------------------------------------------------------------------------------------


class FarTrace(Trace):
    """A job on a cluster, whose answers are those of `Trace`.

    `each` and its like, `ask_groups` and `ask_whole` compute where the ranks lie.

    Attributes:
        client: the ``dask.distributed.Client``.
    """

    def __init__(
        self,
        client: Any,
        read: Mapping[int, tuple[Any, int]],
        workers: Mapping[int, str],
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
        self.client, self._read, self._workers = client, read, workers
        self._plan = Plan(tuple(assigned), self.clock, iteration_clock, rules, found, failed, self.job_size)
        self._groups = self._grouped()
        every = self.each(_known)
        own = [known["iterations"] for known in every]
        if iteration_clock == "auto" and len({clock for frame in own for clock in frame["clock"]}) > 1:
            self._plan = replace(self._plan, iteration_clock=clock_of_job(own))
            self._groups = self._grouped()
            every = self.each(_known)
        for rank, known in zip(self.ranks, every, strict=True):
            vars(self.rank(rank)).update(known | {"own_iterations": known["iterations"]})

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
        repair: bool = True,
    ) -> FarTrace:
        """See `Trace.open`."""
        found = discover(path, recording)
        rules = find_class_rules(path, found.files, classes)
        files = [_sent(file) for file in found.files]
        reads = mapped(client, partial(_read, cache=cache, repair=repair), files)

        def report(done: int) -> None:
            if progress is not None:
                progress(done, len(files), f"workers read {done} of {counted(len(files), 'file')}")

        answers = results(client, mapped(client, _headers, reads), report)
        failed = found.failed | {
            label: answer
            for label, answer in zip(labels(found.files), answers, strict=True)
            if isinstance(answer, Exception)
        }
        if len(failed) >= len(answers) and (unseen := _unseen(failed)):
            raise ClusterError(unseen, "Keep them where every worker can read: a shared folder or a URL.")
        if all(isinstance(answer, Exception) for answer in answers):
            raise no_trace(path, failed, found.skipped)
        usable = [at for at, answer in enumerate(answers) if not isinstance(answer, Exception)]
        memory = Memory(default_limit())
        files = found.files
        failed, found = without_foreign(failed, found)
        sources, read = ranks_apart(
            [files[at] for at in usable],
            [_on_worker(client, reads[at], answers[at], memory) for at in usable],
        )
        settled = settle(sources, [events.header for *_, events in read], found, recording)
        read = [read[at] for at in settled.positions]
        assigned, found = settled.assigned, settled.found
        where = places(client, reads)
        found.files = []  # which need not travel
        ranks = [each.rank for each in assigned]
        futures = {rank: (future, at) for rank, (future, at, _) in zip(ranks, read, strict=True)}
        workers = {rank: where[future.key] for rank, (future, _) in futures.items()}
        events = [each for *_, each in read]
        return cls(client, futures, workers, events, assigned, found, failed, memory, None, clock, rules)

    def _grouped(self) -> list[tuple[list[int], Any]]:
        """The ranks of each group, ascending, and the future of its traces."""
        by_worker: dict[str, list[int]] = {}
        for rank in self.ranks:
            by_worker.setdefault(self._workers[rank], []).append(rank)
        threads = threads_of(self.client)
        groups = []
        for worker, ranks in by_worker.items():
            size = min(_GROUP, -(-len(ranks) // threads.get(worker, 1)))  # every thread has some of them
            groups += [ranks[first : first + size] for first in range(0, len(ranks), size)]
        plans = [self._plan.of([self._assigned[rank] for rank in ranks]) for ranks in groups]
        return [(ranks, self._placed(_apart, plan)) for ranks, plan in zip(groups, plans, strict=True)]

    def _placed(self, put: Callable[..., Any], plan: Plan) -> Any:
        """The future of the ranks of a plan as `put` makes them, where most of them lie."""
        read, at = zip(*(self._read[each.rank] for each in plan.assigned), strict=True)
        return submitted(self.client, put, plan, at, *read)

    @property
    def pulled(self) -> set[int]:
        """The ranks whose columns are here."""
        return {rank for rank, events in self._events.items() if events.here}

    # -- asking ------------------------------------------------------------------------------------

    def each(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        """See `Trace.each`; the function can be pickled, and only what it returns travels."""
        return list(self._by_rank(self.ranks, _of_rank, function, *args).values())

    def each_with(self, function: Callable[..., Any], args_by_rank: Mapping[int, Any]) -> dict[int, Any]:
        """See `Trace.each_with`."""
        futures = [
            (ranks, submitted(self.client, _of_group, group, _each_with, at, (function, own), {}))
            for ranks, at, group in self._chosen(args_by_rank)
            for own in [{rank: args_by_rank[rank] for rank in ranks}]
        ]
        return self._in_order(futures)

    def merged(self, function: Callable[..., Any], merge: Callable[[list[Any]], Any]) -> Any:
        """See `Trace.merged`: what a group says is put together on its worker."""
        return merge(self.ask_groups(_merged, self.ranks, function, merge))

    def ask_groups(
        self, function: Callable[..., Any], ranks: Iterable[int], *args: Any, **named: Any
    ) -> list[Any]:
        """`function([trace of a rank, ...], *args, **named)` for each group of these ranks on a worker."""
        futures = [
            submitted(self.client, _of_group, group, function, at, args, named)
            for _, at, group in self._chosen(ranks)
        ]
        return _returned(results(self.client, futures))

    def ask_rank(self, function: Callable[..., Any], rank: int, *args: Any, **named: Any) -> Any:
        """`function(trace of one rank, *args, **named)`."""
        return self._by_rank([rank], function, *args, **named)[rank]

    def _by_rank(
        self, ranks: Iterable[int], function: Callable[..., Any], *args: Any, **named: Any
    ) -> dict[int, Any]:
        """`function(trace of one rank, *args, **named)` for each of these, ascending."""
        return self._in_order(
            [
                (own, submitted(self.client, _of_group, group, _one_by_one, at, (function, *args), named))
                for own, at, group in self._chosen(ranks)
            ]
        )

    def _in_order(self, futures: Sequence[tuple[list[int], Any]]) -> dict[int, Any]:
        """What groups say of their ranks, one answer each, by rank."""
        answers_of_each = _returned(results(self.client, [future for _, future in futures]))
        found = {
            rank: answer
            for (ranks, _), answers in zip(futures, answers_of_each, strict=True)
            for rank, answer in zip(ranks, answers, strict=True)
        }
        return dict(sorted(found.items()))

    def _chosen(self, ranks: Iterable[int]) -> list[tuple[list[int], list[int], Any]]:
        """The groups that hold some of these ranks: which, their places in the group, and its future."""
        wanted = set(ranks)
        found = []
        for members, group in self._groups:
            at = [place for place, rank in enumerate(members) if rank in wanted]
            if at:
                found.append(([members[place] for place in at], at, group))
        return found

    def ask_whole(self, function: Callable[..., Any], *args: Any, **named: Any) -> Any:
        """`function(trace, *args, **named)` on the worker that has all ranks; only if `fits_a_worker`."""
        future = submitted(self.client, _of_whole, self._whole, function, args, named)
        return _returned(results(self.client, [future]))[0]

    @cached_property
    def fits_a_worker(self) -> bool:
        """Whether the largest worker has the memory for all ranks."""
        need = int(_HELD_PER_COLUMN_BYTE * sum(events.header.nbytes for events in self._events.values()))
        most = largest_worker(self.client)
        return not most or need <= _PART_OF_WORKER * most

    @cached_property
    def _whole(self) -> Any:
        """All ranks on one worker."""
        return self._placed(_together, self._plan)

    # -- what `Trace` takes from columns -----------------------------------------------------------

    def timed_by(self, clock: IterationClock) -> Trace:
        """See `Trace.timed_by`; the columns stay where they are."""
        return self if clock == self.iteration_clock else self._again(clock=clock)

    def _again(
        self,
        masks: dict[int, npt.NDArray[np.bool_]] | None = None,
        clock: IterationClock | None = None,
        rules: ClassRules | None = None,
    ) -> Trace:
        if masks is not None:  # by columns, which are here
            return super()._again(masks, clock, rules)
        assigned = list(self._plan.assigned)
        return FarTrace(
            self.client, self._read, self._workers, [self._events[each.rank] for each in assigned], assigned,
            self._found, self.failed, self.memory, self.clock, clock or self.iteration_clock,
            rules or self._rules,
        )  # fmt: skip

    def marks_lent_to(self, rank_trace: RankTrace) -> pd.DataFrame | None:
        """None: a rank on a worker has no other beside it."""
        return None

    @cached_property
    def health(self) -> pd.DataFrame:
        """See `Trace.health`."""
        size = 1 if self.several_jobs else self.job_size
        about = [
            found for of_rank in self._by_rank(self.ranks, _findings, size).values() for found in of_rank
        ]
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
) -> list[tuple[Any, int, RankEvents]]:
    """Of each rank of a file its place there, and its events, whose columns come when they are read."""
    return [
        (read, at, RankEvents(header, reload=partial(_pulled, client, read, at), memory=memory))
        for at, header in enumerate(headers)
    ]


def _pulled(client: Any, read: Any, at: int) -> EventTable:
    return results(client, [submitted(client, _columns, read, at)])[0]


def _returned(sent: list[bytes]) -> list[Any]:
    answers = [unpacked(each) for each in sent]
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
