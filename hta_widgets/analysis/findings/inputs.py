"""The answers that the rules read, each computed once, on first use, of the steps that can be judged."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, Final, TypeVar, cast

import numpy as np
import pandas as pd

from hta_widgets.analysis.communication.collectives import shared_collectives
from hta_widgets.analysis.communication.stragglers import stragglers
from hta_widgets.analysis.communication.waits import unclear, waits
from hta_widgets.analysis.core.claim import Claim, Text, say
from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.device_time.busy import device_ranks
from hta_widgets.analysis.device_time.step_times import step_times
from hta_widgets.analysis.device_time.temporal import temporal_breakdown
from hta_widgets.analysis.findings.configurations import Launched, launched
from hta_widgets.analysis.findings.finding import NOTE_PCT, WARNING_PCT
from hta_widgets.analysis.findings.pauses import Paused, paused
from hta_widgets.analysis.findings.shared_time import SharedTime, late_entry, lengths_apart, shared_time
from hta_widgets.analysis.findings.withheld import WithheldError, withheld
from hta_widgets.analysis.findings.workloads import Workloads
from hta_widgets.analysis.idle.breakdown import CONSECUTIVE_KERNEL_DELAY_NS, idle_breakdown
from hta_widgets.analysis.idle.causes import CAUSES, IdleCauses, idle_causes
from hta_widgets.analysis.idle.hidden import hidden_by_host
from hta_widgets.analysis.idle.start_up import StartUp, job_start_up, start_up_of
from hta_widgets.analysis.kernels.breakdown import device_work_of
from hta_widgets.analysis.launches.queue import blocked_on_full_queue
from hta_widgets.analysis.strategy.fsdp_passes import RANGES
from hta_widgets.arrays import Float64, Int64
from hta_widgets.engine import checkpoint
from hta_widgets.errors import MissingDataError
from hta_widgets.trace.accelerator import Accelerator
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.model import Trace
from hta_widgets.trace.ordering import unique
from hta_widgets.trace.records.vetoes import Claim as VetoedClaim
from hta_widgets.trace.scope import Scope

Answer = TypeVar("Answer")
Asked = tuple[Callable[..., Any], tuple[Any, ...]]

_DDP = re.compile(r"^DistributedDataParallel\.|^torch\.distributed\.ddp\.reducer")
_FSDP = re.compile(f"^(?:{'|'.join(map(re.escape, RANGES))})")
_LOADS_ITSELF = re.compile("_SingleProcessDataLoaderIter")
_RUNTIME = re.compile(r"^(?:cuda|hip|cu)[A-Z]")
_GRAPH_LAUNCH = re.compile(r"^(?:cuda|hip|cu)GraphLaunch")
# From this part of the ranks on that do not record when a step ended, it is left out.
_MOSTLY_OPEN = 0.5
MUCH_START_UP_PCT: Final = 33.0
"""A recording of which start-up takes less is judged as a whole, start-up apart."""
# What follows start-up is judged alone if it is this part of the time of each rank, with so much work.
_SETTLED, _SETTLED_WORK = 0.2, 20
# Calls that may wait, as the recording begins, for work that was launched before it.
_MAY_WAIT = re.compile("Synchronize|Memcpy|Memset")
# In fewer steps one of the ranks is often the slowest in most of them by chance.
_TELLING_STEPS = 3


def judged_scope(trace: Trace, scope: Scope | None = None) -> Scope:
    """What the findings about a scope are about: of marked steps those that are complete and steady."""
    return Inputs(trace, scope or Scope()).scope


class Inputs:
    """The answers about a job in a scope; frames are those of the analyses of the same names.

    If the steps are marked (announced, or annotated regularly) and the scope names none, only complete steps
    count: what happens before and after them (starting the profiler, writing a checkpoint) would count as
    lost time. Of those, steps are left out if there are others: those whose end is not recorded, and those in
    which the program still starts up. Steps tile, so that the time between two belongs to the first. Guessed
    steps do not count: then all recorded device work does.

    Attributes:
        scope: what is judged. asked: what was asked for.
        steps: `step_times` of the scope as it was asked for.
        announced: the steps are marked by the program; no guess.
        open_ended: when the judged steps ended is not recorded: shares are of their recorded work.
        start_up: rank -> what it does to start up; ranks that do nothing of the kind are left out.
        settled_ns: when start-up is over, where what follows is judged alone, as no steps are marked.
        worked: rank -> from its start-up or first device work to its last, where start-up takes much of that.
        contradicted: no complete step's time holds most of its own device work.
        left_out: (rank, iteration) of complete steps that are not judged because they hold start-up.
        shared: what is judged where the recordings of ranks differ; None where they do not.
    """

    def __init__(self, trace: Trace, scope: Scope) -> None:
        self.trace, self.asked = trace, scope
        self._of_ranks: dict[Asked, dict[int, Any]] = {}
        self._withheld: dict[VetoedClaim, WithheldError | None] = {}
        self.shared: SharedTime | None = None
        self.steps = step_times(trace, scope)
        self.announced = bool(len(self.steps)) and not self.steps["known"].eq("guessed").any()
        complete = self.steps[~self.steps["partial"]] if self.announced else self.steps.iloc[:0]
        for rank in trace.ranks_of(scope):
            if contradicted := trace.rank(rank).contradicted_iterations:
                complete = complete[(complete["rank"] != rank) | ~complete["iteration"].isin(contradicted)]
        # their windows must not be judged in place of those that others' work contradicts
        if not self.steps.loc[~self.steps["partial"], "open"].all():
            complete = complete[~complete["open"]]
        self.contradicted = self.announced and not len(complete) and not self.steps["partial"].all()
        steps_of = {rank: of_rank["iteration"].tolist() for rank, of_rank in complete.groupby("rank")}
        self.start_up: dict[int, StartUp] = {}
        for rank in trace.ranks_of(scope):
            steps = tuple(steps_of.get(rank, ()))
            whole, found = job_start_up(trace, rank)
            if (scope.streams, scope.names, steps) != (None, None, whole):
                found = start_up_of(trace.rank(rank), scope.streams, scope.names, steps)
            if found is not None:
                self.start_up[rank] = found
        spans = zip(complete["rank"], complete["start_ns"], complete["end_ns"], strict=True)
        starts = [rank in self.start_up and self.start_up[rank].takes(*span) for rank, *span in spans]
        starting = complete[np.array(starts, np.bool_)]
        self.left_out: list[tuple[int, int]] = []
        if scope.iterations is None and len(complete):
            # of several ranks, where one stopped recording early the others still tell of the step
            unended = self.steps.groupby("iteration")["open"].mean()
            unended_steps = set(unended.index[unended >= _MOSTLY_OPEN])
            starting_up = set(starting["iteration"])
            steady = sorted(set(complete["iteration"]) - starting_up - unended_steps)
            steady = steady or sorted(set(complete["iteration"]) - starting_up)
            if steady:
                self.left_out = list(
                    zip(starting["rank"].tolist(), starting["iteration"].tolist(), strict=True)
                )
            scope = self._alike(scope, complete, steady or sorted(set(complete["iteration"])))
        self.settled_ns: int | None = None
        self.worked: dict[int, tuple[int, int]] = {}
        if scope == Scope(ranks=scope.ranks):
            scope = self._without_edges(scope)
        self.scope = scope
        chosen = self.steps if scope.iterations is None else self._chosen_steps(scope.iterations)
        self.open_ended = self.announced and bool(len(chosen)) and bool(chosen["open"].all())

    def withheld(self, claim: VetoedClaim) -> WithheldError | None:
        """Why the records do not support claims of this class; None if they do."""
        if claim not in self._withheld:
            self._withheld[claim] = withheld(self.trace, self.scope, claim)
        return self._withheld[claim]

    def _alike(self, scope: Scope, complete: pd.DataFrame, steps: list[int]) -> Scope:
        """These steps, without the first, or its begin, if ranks enter it apart, of ranks with like steps."""
        ranks = sorted(set(complete["rank"].tolist()))
        if len(ranks) > 1 and self.trace.clock.method != "start":
            first = self._begins(ranks, steps[0])
            if len(steps) > 1:
                later = complete[complete["iteration"].isin(steps[1:])]
                second = self._begins(ranks, steps[1])
                self.shared = late_entry(steps[0], first, second, float(later["dur_ns"].median()))
                steps = steps[1:] if self.shared else steps
            else:
                # ranks that enter the next one as far apart, of which less may be recorded, are always so
                second, usual = self._begins(ranks, steps[0] + 1), float(complete["dur_ns"].median())
                if len(second) < 2 or late_entry(steps[0], first, second, usual):
                    self.shared = self._of_only_step(steps[0], first)
                if self.shared and self.shared.window_ns:
                    return replace(scope, window_ns=self.shared.window_ns)
        chosen = complete[complete["iteration"].isin(steps) & ~complete["open"]]
        lengths = {
            int(str(rank)): round(ns) for rank, ns in chosen.groupby("rank")["dur_ns"].median().items()
        }
        if not (self.shared and self.shared.apart) and (apart := lengths_apart(lengths)):
            self.shared = SharedTime(apart=apart, lengths=lengths)
        return replace(scope, ranks=self._without_apart(scope), iterations=tuple(steps))

    def _begins(self, ranks: list[int], step: int) -> dict[int, int]:
        """When the host of each rank begins a step."""
        frames = {rank: self.trace.rank(rank).iterations for rank in ranks}
        found = {
            rank: frame.loc[frame["iteration"] == step, "host_start_ns"] for rank, frame in frames.items()
        }
        return {rank: int(begin.iloc[0]) for rank, begin in found.items() if len(begin)}

    def _of_only_step(self, step: int, begins: Mapping[int, int]) -> SharedTime | None:
        """The part of it that is judged if ranks enter it apart."""
        windows = {rank: self.trace.rank(rank).windows(Scope(iterations=(step,))) for rank in begins}
        works = {rank: (begins[rank], int(own[-1, 1])) for rank, own in windows.items() if len(own)}
        if len(works) < 2:
            return None
        shared = shared_time(works, works, self._work_in, self._exchange_at, WARNING_PCT)
        return replace(shared, step=step) if shared and shared.late else None

    def _work_in(self, rank: int, begin: int, end: int) -> int:
        """How much device work starts between two times."""
        return self.of(rank, _work_in, begin, end)

    def _exchange_at(self, rank: int, at: int) -> int:
        """When the communication ends that runs at a time; that time if none runs."""
        return self.of(rank, _exchange_at, at)

    def _without_apart(self, scope: Scope) -> tuple[int, ...] | None:
        if not (self.shared and self.shared.apart):
            return scope.ranks
        return tuple(rank for rank in self.trace.ranks_of(scope) if rank not in self.shared.apart)

    def _compared(self, scope: Scope, spans: Mapping[int, tuple[int, int]]) -> Scope:
        """Of ranks without marked steps, the time that they share if their recordings differ."""
        lengths = {rank: end - begin for rank, (begin, end) in spans.items()}
        begins = [begin for begin, _ in spans.values()]
        apart = lengths_apart(lengths)
        if not apart and 100.0 * (max(begins) - min(begins)) < NOTE_PCT * max(lengths.values()):
            return scope
        if self.trace.clock.method == "start":
            self.shared = SharedTime(apart=apart, lengths=lengths) if apart else None
        else:
            recorded = {rank: self.of(rank, _calls) or span for rank, span in spans.items()}
            self.shared = shared_time(spans, recorded, self._work_in, self._exchange_at)
        if self.shared is None:
            return scope
        return replace(scope, ranks=self._without_apart(scope), window_ns=self.shared.window_ns)

    def _without_edges(self, scope: Scope) -> Scope:
        """Where no steps are marked: what follows start-up, if that is much; of hosts alone, all their calls.

        Before the first call and after the last one, the profiler starts and ends.
        """
        ranks = self.trace.ranks_of(scope)
        spans = {rank: span for rank in ranks if (span := self.trace.rank(rank).device_span)}
        if not spans:
            calls = [span for rank in ranks if (span := self.of(rank, _calls))]
            if not calls:
                return scope
            window = min(begin for begin, _ in calls), max(end for _, end in calls)
            return replace(scope, window_ns=window) if window[0] < window[1] else scope
        if not self.start_up or set(spans) != set(ranks):
            return self._compared(scope, spans)
        worked = {rank: (self._begun(rank, begin), end) for rank, (begin, end) in spans.items()}
        started = {
            rank: self.start_up[rank].idle.clip(*span)
            for rank, span in worked.items()
            if rank in self.start_up
        }
        whole = sum(end - begin for begin, end in worked.values())
        ended = [int(idle.end.max()) for idle in started.values() if len(idle)]
        if not ended or 100.0 * sum(idle.length for idle in started.values()) < MUCH_START_UP_PCT * whole:
            return self._compared(scope, spans)
        settled, last = max(ended), max(end for _, end in spans.values())
        self.worked = worked
        for rank, (begin, end) in spans.items():
            enough = self._work_in(rank, settled, last) >= _SETTLED_WORK
            if end - settled < _SETTLED * (end - begin) or not enough:
                lengths = {rank: end - begin for rank, (begin, end) in worked.items()}
                if worked == spans and not lengths_apart(lengths):
                    return scope
                return replace(scope, window_ns=(min(begin for begin, _ in worked.values()), last))
        self.settled_ns = settled
        return replace(scope, window_ns=(settled, last))

    def cold_calls(self, rank: int) -> set[str]:
        """Calls of the driver by which a rank starts up, and which do not wait for earlier work."""
        calls = self.start_up[rank].calls if rank in self.start_up else []
        return {call.about for call in calls if call.kind == "driver" and not _MAY_WAIT.search(call.about)}

    def _begun(self, rank: int, first: int) -> int:
        """When start-up begins that goes on until the first device work, mostly in its calls; else then."""
        rank_trace, cold = self.trace.rank(rank), self.cold_calls(rank)
        rows = [
            call.row
            for call in (self.start_up[rank].calls if rank in self.start_up else [])
            if rank_trace.start[call.row] < first and (call.kind != "driver" or call.about in cold)
        ]
        begin = min((int(rank_trace.start[row]) for row in rows), default=first)
        inside = Intervals.union(rank_trace.start[rows], rank_trace.end[rows]).clip(begin, first)
        return begin if 2 * inside.length >= first - begin else first

    def _chosen_steps(self, iterations: tuple[int, ...]) -> pd.DataFrame:
        return self.steps[self.steps["iteration"].isin(iterations)]

    @cached_property
    def temporal(self) -> pd.DataFrame:
        return _with_time(temporal_breakdown(self.trace, self.scope))

    @cached_property
    def judged_ns(self) -> dict[int, int]:
        """How long the judged time is on each rank that has any."""
        return dict(zip(self.temporal["rank"].tolist(), self.temporal["window_ns"].tolist(), strict=True))

    @cached_property
    def idle(self) -> pd.DataFrame:
        """`idle_breakdown`, and what is told apart (int64, ns): start_up_ns, paused_ns.

        Raises:
            WithheldError: the records do not support causes of idle time.
        """
        if (why := self.withheld("idle_causes")) is not None:
            raise why
        frame = self.idle_at_all
        apart = [self.paused(rank).both.length for rank in frame["rank"].tolist()]
        return frame.assign(paused_ns=np.array(apart, np.int64), host_busy_ns=frame["host_busy_ns"] - apart)

    @cached_property
    def idle_at_all(self) -> pd.DataFrame:
        """`idle_breakdown`, and start_up_ns (int64, ns), which is told apart, whatever the clocks say."""
        frame = _with_time(idle_breakdown(self.trace, self.scope))
        if not self.start_up:
            return frame.assign(start_up_ns=np.int64(0))
        starting = {cause: np.zeros(len(frame), np.int64) for cause in CAUSES}
        for at, rank in enumerate(frame["rank"].tolist()):
            if rank not in self.start_up:
                continue
            windows = self.trace.rank(rank).windows(self.scope)
            for cause, part in self.idle_causes(rank).causes.items():
                starting[cause][at] = (part & self.start_up[rank].idle).within(windows)
        for cause, lost in starting.items():
            frame[f"{cause}_ns"] -= lost
        return frame.assign(start_up_ns=np.sum(list(starting.values()), axis=0))

    def idle_causes(self, rank: int) -> IdleCauses:
        """The intervals behind `idle`, start-up included."""
        return idle_causes(self.trace.rank(rank), self.scope, CONSECUTIVE_KERNEL_DELAY_NS)

    def paused(self, rank: int) -> Paused:
        """The idle time of a rank due to pauses of its host, which has findings of its own."""
        return self.of(rank, paused)

    def of(self, rank: int, ask: Callable[..., Answer], *args: Any) -> Answer:
        """What a rule asks of one rank, without a look at others: `ask(self, rank, *args)`, computed once.

        Answers must be small: they stay while ranks are dropped. Raises what `ask` raises.
        """
        answers = self._of_ranks.setdefault((ask, args), {})
        if rank not in answers:
            try:
                answers[rank] = ask(self, rank, *args)
            except MissingDataError as missing:
                answers[rank] = missing
        answer = answers[rank]
        if isinstance(answer, MissingDataError):
            raise answer
        return cast(Answer, answer)

    def ask_ahead(self, rules: Iterable[Callable[[Inputs], object]]) -> None:
        """Ask each rank all that rules ask of one, while it is in memory; so none is read for each of them.

        What they ask is learned from the rules themselves, as they judge one of the ranks; what they ask only
        to compare several is known.
        """
        ranks = [rank for rank in self.trace.ranks_of(self.scope) if self.trace.rank(rank).device_span]
        if not ranks:
            return
        one = Inputs(self.trace, replace(self.asked, ranks=(ranks[0],)))
        for rule in rules:
            with contextlib.suppress(MissingDataError):
                rule(one)
        ahead = [*one._of_ranks, *([(_launched, ())] if len(ranks) > 1 else [])]
        for rank in ranks:
            checkpoint()
            alone = replace(self.scope, ranks=(rank,))
            for analysis in (temporal_breakdown, idle_breakdown, blocked_on_full_queue):
                with contextlib.suppress(MissingDataError):
                    analysis(self.trace, alone)
            for ask, args in ahead:
                with contextlib.suppress(MissingDataError):
                    self.of(rank, ask, *args)

    def hidden(self, rank: int) -> Intervals:
        """The busy time of a rank that does not lie on the critical path (`hidden_by_host`)."""
        return hidden_by_host(self.trace.rank(rank), self.idle_causes(rank))

    @cached_property
    def compute_kernels(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Count and mean_ns of `kernel_durations`, of compute kernels: a row per name, a column per rank."""
        counts, means = {}, {}
        indices: dict[tuple[str, ...], pd.Index[str]] = {}  # many ranks share one, which is quick to align
        for rank, _ in device_ranks(self.trace, self.scope):
            names, count, mean = self.of(rank, _compute_kernels)
            if names:
                key = tuple(names)
                if (index := indices.get(key)) is None:
                    index = indices[key] = pd.Index(names)
                counts[rank], means[rank] = pd.Series(count, index), pd.Series(mean, index)
        return pd.DataFrame(counts).sort_index(), pd.DataFrame(means).sort_index()

    @cached_property
    def collectives(self) -> pd.DataFrame:
        return shared_collectives(self.trace, self.scope)

    @cached_property
    def late(self) -> pd.DataFrame:
        """`stragglers`; without rows where ranks do not communicate, or are alone by design."""
        if self.collectives.empty or (len(self.trace.ranks) == 1 and not self._has_peers):
            columns = ("iteration", "rank", "waited_ns", "blamed_ns", "unfollowed_ns")
            return pd.DataFrame({column: [] for column in columns}, dtype="int64")
        return stragglers(self.trace, self.scope)

    @cached_property
    def waits(self) -> pd.DataFrame:
        """`waits`, whose sums are those of `late`."""
        return waits(self.trace, self.scope)

    @cached_property
    def unclear(self) -> pd.Series[int]:
        """`unclear`: communication that may be waiting, by rank."""
        return unclear(self.trace, self.scope)

    @cached_property
    def workloads(self) -> Workloads:
        """The compute kernels of each rank, to be compared between ranks."""
        ranks = [rank for rank, _ in device_ranks(self.trace, Scope(ranks=self.scope.ranks))]
        return Workloads({rank: self.of(rank, _launched) for rank in ranks})

    @cached_property
    def has_ddp(self) -> bool:
        """Whether DDP recorded ranges of its own."""
        return self.any_name(_DDP)

    @cached_property
    def has_fsdp(self) -> bool:
        """Whether FSDP recorded ranges of its own."""
        return self.any_name(_FSDP)

    @cached_property
    def loads_in_the_loop(self) -> bool:
        """Whether the DataLoader has no workers."""
        return self.any_name(_LOADS_ITSELF)

    @cached_property
    def replays_graphs(self) -> bool:
        """Whether captured graphs are launched already."""
        return self.any_name(_GRAPH_LAUNCH)

    @cached_property
    def has_graphs(self) -> bool:
        """Whether the runtime is one that has graphs of kernels: CUDA's or HIP's."""
        return self.any_name(_RUNTIME)

    @cached_property
    def accelerator(self) -> Accelerator:
        """The kind of device, and the calls that advice names of it."""
        return self.trace.rank(self.trace.ranks_of(self.scope)[0]).accelerator

    @cached_property
    def has_operators(self) -> bool:
        """Whether operators are recorded."""
        return any(self.of(rank, _holds, EventClass.HOST_OP) for rank in self.trace.ranks_of(self.scope))

    @cached_property
    def has_stacks(self) -> bool:
        """Whether Python functions are recorded."""
        return any(self.of(rank, _holds, EventClass.PYTHON) for rank in self.trace.ranks_of(self.scope))

    @cached_property
    def has_streams(self) -> bool:
        """Whether a device is recorded to work on more than one stream, or to wait for an event."""
        return any(self.of(rank, _has_streams) for rank in self.trace.ranks_of(self.scope))

    @cached_property
    def judged_steps(self) -> dict[int, int]:
        """How many iterations are judged on each rank that has any; empty where none are marked."""
        if not self.announced or not self.scope.iterations:
            return {}
        chosen = self._chosen_steps(self.scope.iterations)
        return {int(str(rank)): len(of_rank) for rank, of_rank in chosen.groupby("rank")}

    @property
    def judged(self) -> int:
        """How many iterations are judged on a rank (ranks may record others); 0 where none are marked."""
        counts = self.judged_steps.values()
        return round(sum(counts) / len(counts)) if counts else 0

    @property
    def takes(self) -> str:
        """The subject of a sentence about what the judged time becomes."""
        return "the steps take" if self.judged > 1 else "the step takes" if self.judged else "all takes"

    def of_time(self, measure: str, pct: float, ranks: Iterable[int] = (), **about: Any) -> Claim:
        """A share of the judged time; of these ranks, default all."""
        return Claim(measure, pct, "%", self.whole, tuple(ranks), about)

    def share_of_time(self, measure: str, pct: float, ranks: Iterable[int] = (), **about: Any) -> Text:
        """`4.7 % of step time`; without marked steps, of the time."""
        return say(f"{{share}} of {self.whole}", share=self.of_time(measure, pct, ranks, **about))

    def time_per_step(self, measure: str, cost_ns: float, ranks: Iterable[int] = (), **about: Any) -> Text:
        """` (1.2 ms per step)`, of the time on one rank, or on each of these on average; default all.

        Only the time, ` (1.2 ms)`, where no steps are announced, or the end of the only one is not recorded.
        """
        ranks, counts = tuple(ranks), self.judged_steps
        if not counts or self.open_ended:
            return say(" ({time})", time=Claim(measure, cost_ns, "ns", "", ranks, about))
        steps = [counts[rank] for rank in ranks or counts if rank in counts] or list(counts.values())
        time = Claim(measure, cost_ns * len(steps) / sum(steps), "ns/step", "", ranks, about)
        return say(" ({time} per step)", time=time)

    def time_lost(
        self, measure: str, pct: float, cost_ns: float, ranks: Iterable[int] = (), **about: Any
    ) -> Text:
        """`4.7 % of step time (1.2 ms per step)`."""
        share = self.share_of_time(measure, pct, ranks, **about)
        return share + self.time_per_step(measure, cost_ns, ranks, **about)

    def when(self, ranks: Iterable[int], ask: Callable[[int], Intervals]) -> dict[int, Intervals]:
        """For `Finding.lost`: the answer for each rank; for none where not all of them fit in memory."""
        return {} if self.trace.exceeds_memory else {rank: ask(rank) for rank in ranks}

    def judged_time(self, rank: int) -> Intervals:
        """When it is judged."""
        windows = self.trace.rank(rank).windows(self.scope)
        return Intervals.union(windows[:, 0], windows[:, 1])

    @property
    def whole(self) -> str:
        """What shares are of: step time; of steps without a recorded end their work; else all of the time."""
        if self.settled_ns is not None:
            return "the time after start-up"
        if self.open_ended:
            return "the recorded work"
        return "step time" if self.announced and not (self.shared and self.shared.window_ns) else "the time"

    def is_it_always(self) -> str:
        """The advice to begin with where too few steps are marked to tell a rank that is slow from chance."""
        if self.judged >= _TELLING_STEPS:
            return ""
        return "Record and mark more steps first, to see whether it is the same rank in all of them. "

    def any_name(self, pattern: re.Pattern[str]) -> bool:
        """Whether anything is recorded whose name holds this."""
        return any(self.of(rank, _has_name, pattern) for rank in self.trace.ranks_of(self.scope))

    @cached_property
    def _has_peers(self) -> bool:
        """Whether the job has further ranks, recorded or not."""
        sizes = self.collectives["group_size"].dropna()
        size = self.trace.summary["world_size"]
        return bool((sizes > 1).any()) or (isinstance(size, int) and size > 1)


def _compute_kernels(inputs: Inputs, rank: int) -> tuple[list[str], Int64, Float64]:
    """Name, count and mean time of the compute kernels of a rank, as in `kernel_durations`."""
    rank_trace = inputs.trace.rank(rank)
    work = device_work_of(rank_trace)
    rows = work.rows[rank_trace.belong(work.rows, inputs.scope)]
    count, total = np.zeros((2, work.size), np.int64)
    np.add.at(count, work.group[rows], 1)
    np.add.at(total, work.group[rows], rank_trace.dur[rows])
    found = np.flatnonzero((work.event_class == EventClass.COMPUTE) & (count > 0))
    names = [rank_trace.names[code] for code in work.name[found].tolist()]
    return names, count[found], total[found] / count[found]


def _launched(inputs: Inputs, rank: int) -> Launched:
    return launched(inputs.trace.rank(rank), inputs.scope)


def _calls(inputs: Inputs, rank: int) -> tuple[int, int] | None:
    """From the first to the last event that is not the profiler's own."""
    rank_trace = inputs.trace.rank(rank)
    rows = rank_trace.event_class != EventClass.OTHER
    return (int(rank_trace.start[rows].min()), int(rank_trace.end[rows].max())) if rows.any() else None


def _work_in(inputs: Inputs, rank: int, begin: int, end: int) -> int:
    rank_trace = inputs.trace.rank(rank)
    start = rank_trace.start[rank_trace.is_device]
    return int(np.count_nonzero((start >= begin) & (start < end)))


def _exchange_at(inputs: Inputs, rank: int, at: int) -> int:
    rank_trace = inputs.trace.rank(rank)
    rows = rank_trace.is_device & (rank_trace.event_class == EventClass.COMMUNICATION)
    return int(rank_trace.end[rows & (rank_trace.start <= at)].max(initial=at))


def _holds(inputs: Inputs, rank: int, event_class: EventClass) -> bool:
    return bool((inputs.trace.rank(rank).event_class == event_class).any())


def _has_name(inputs: Inputs, rank: int, pattern: re.Pattern[str]) -> bool:
    return any(pattern.search(name) for name in inputs.trace.rank(rank).names)


def _has_streams(inputs: Inputs, rank: int) -> bool:
    rank_trace = inputs.trace.rank(rank)
    streams = unique(rank_trace.stream[rank_trace.is_device])
    return len(streams) > 1 or bool((rank_trace.event_class == EventClass.SYNC).any())


def _with_time(frame: pd.DataFrame) -> pd.DataFrame:
    return frame[frame["window_ns"] > 0].reset_index(drop=True)
