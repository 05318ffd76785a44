"""The answers that the rules read, each computed once, on first use, of the steps that can be judged."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from hta_widgets.analysis.communication.collectives import shared_collectives
from hta_widgets.analysis.communication.stragglers import stragglers
from hta_widgets.analysis.communication.waits import unclear, waits
from hta_widgets.analysis.core.claim import Claim, Text, say
from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.core.kept import stacked_ranks
from hta_widgets.analysis.core.sums import exact_sums
from hta_widgets.analysis.device_time.busy import device_ranks
from hta_widgets.analysis.device_time.temporal import temporal_breakdown
from hta_widgets.analysis.findings.configurations import Launched, launched
from hta_widgets.analysis.findings.judged_time import Asked, JudgedTime
from hta_widgets.analysis.findings.pauses import Paused, paused
from hta_widgets.analysis.findings.workloads import Workloads
from hta_widgets.analysis.idle.breakdown import CONSECUTIVE_KERNEL_DELAY_NS, idle_breakdown
from hta_widgets.analysis.idle.causes import CAUSES, IdleCauses, idle_causes
from hta_widgets.analysis.idle.hidden import hidden_by_host
from hta_widgets.analysis.kernels.breakdown import device_work_of
from hta_widgets.analysis.launches.queue import blocked_on_full_queue
from hta_widgets.analysis.strategy.fsdp_passes import RANGES
from hta_widgets.arrays import Float64
from hta_widgets.engine import checkpoint
from hta_widgets.errors import MissingDataError
from hta_widgets.trace.accelerator import Accelerator
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.graph_replays import GRAPH_LAUNCH
from hta_widgets.trace.model import Trace
from hta_widgets.trace.ordering import unique
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.scope import Scope

_DDP = re.compile(r"^DistributedDataParallel\.|^torch\.distributed\.ddp\.reducer")
_FSDP = re.compile(f"^(?:{'|'.join(map(re.escape, RANGES))})")
_LOADS_ITSELF = re.compile("_SingleProcessDataLoaderIter")
_RUNTIME = re.compile(r"^(?:cuda|hip|cu)[A-Z]")
# In fewer steps one of the ranks is often the slowest in most of them by chance.
_TELLING_STEPS = 3


SplitsByRank = Callable[[Trace, Scope], pd.DataFrame]


class Inputs(JudgedTime):
    """The answers about a job in the time that is judged; frames are those of the analyses of the same names.

    Each is computed once, on first use.
    """

    @cached_property
    def temporal(self) -> pd.DataFrame:
        return _with_time(self.by_rank(temporal_breakdown))

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
        frame = _with_time(self.by_rank(idle_breakdown))
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

    def by_rank(self, analysis: SplitsByRank) -> pd.DataFrame:
        """The answer of an analysis that splits by rank; of ranks that exceed memory it is asked ahead."""
        if not self.trace.exceeds_memory:
            return analysis(self.trace, self.scope)

        def of_one(part: Scope) -> pd.DataFrame:
            (rank,) = self.trace.ranks_of(part)
            return self.of(rank, _alone, analysis)

        return stacked_ranks(self.trace, self.scope, of_one, lambda part: analysis(self.trace, part))

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
        analyses = (temporal_breakdown, idle_breakdown, blocked_on_full_queue)
        ahead: list[Asked] = [*((_alone, (analysis,)) for analysis in analyses), *one._of_ranks]
        ahead += [(_launched, ())] if len(ranks) > 1 else []
        for rank in ranks:
            checkpoint()
            for ask, args in ahead:
                with contextlib.suppress(MissingDataError):
                    self.of(rank, ask, *args)

    def hidden(self, rank: int) -> Intervals:
        """The busy time of a rank that does not lie on the critical path (`hidden_by_host`)."""
        return hidden_by_host(self.trace.rank(rank), self.idle_causes(rank))

    @cached_property
    def kernel_times(self) -> pd.DataFrame:
        """How long compute kernels run, float64 ns: a row per name, a column per rank; 0 where none runs."""
        times = {}
        indices: dict[tuple[str, ...], pd.Index[str]] = {}  # many ranks share one, which is quick to align
        for rank, _ in device_ranks(self.trace, self.scope):
            names, time = self.of(rank, _kernel_times)
            if names:
                key = tuple(names)
                if (index := indices.get(key)) is None:
                    index = indices[key] = pd.Index(names)
                times[rank] = pd.Series(time, index)
        return pd.DataFrame(times).sort_index().fillna(0.0)

    @cached_property
    def collectives(self) -> pd.DataFrame:
        return shared_collectives(self.trace, self.scope)

    @cached_property
    def communicates(self) -> bool:
        """Whether any device communicates: in most recordings none does."""
        return self.anywhere(_communicates)

    @cached_property
    def late(self) -> pd.DataFrame:
        """`stragglers`; without rows where ranks do not communicate, or are alone by design."""
        alone = len(self.trace.ranks) == 1
        if not self.communicates or self.collectives.empty or (alone and not self._has_peers):
            columns = ("iteration", "rank", "waited_ns", "blamed_ns", "unfollowed_ns")
            return pd.DataFrame({column: [] for column in columns}, dtype="int64")
        return stragglers(self.trace, self.scope)

    @cached_property
    def late_by_rank(self) -> pd.DataFrame:
        """Sums of `late` over the iterations: waited_ns, blamed_ns, unfollowed_ns, by rank."""
        return self.late.groupby("rank")[["waited_ns", "blamed_ns", "unfollowed_ns"]].sum()

    @cached_property
    def waits(self) -> pd.DataFrame:
        """`waits`, whose sums are those of `late`."""
        return waits(self.trace, self.scope)

    @cached_property
    def unclear(self) -> pd.Series[int]:
        """`unclear`: communication that may be waiting, by rank."""
        if not self.communicates or self.exchanges_within:
            return pd.Series(0, pd.Index([], name="rank", dtype="int64"), dtype="int64")
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
        return self.any_name(GRAPH_LAUNCH)

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
        return self.anywhere(_holds, EventClass.HOST_OP)

    @cached_property
    def has_stacks(self) -> bool:
        """Whether Python functions are recorded."""
        return self.anywhere(_holds, EventClass.PYTHON)

    @cached_property
    def has_streams(self) -> bool:
        """Whether a device is recorded to work on more than one stream, or to wait for an event."""
        return self.anywhere(_has_streams)

    @property
    def takes(self) -> str:
        """The subject of a sentence about what the judged time becomes."""
        return "the steps take" if self.judged > 1 else "the step takes" if self.judged else "the run takes"

    def of_time(self, measure: str, pct: float, ranks: Iterable[int] = (), **about: Any) -> Claim:
        """A share of the judged time; of these ranks, default all."""
        return Claim(measure, pct, "%", self.whole, tuple(ranks), about)

    def share_of_time(self, measure: str, pct: float, ranks: Iterable[int] = (), **about: Any) -> Text:
        """`4.7 % of step time`; without marked steps, of the time."""
        return say(f"{{share}} of {self.whole}", share=self.of_time(measure, pct, ranks, **about))

    def time_per_step(self, measure: str, cost_ns: float, ranks: Iterable[int] = (), **about: Any) -> Text:
        """` (1.2 ms per step)`; only ` (1.2 ms)` where `per_step` is of the whole time."""
        time = self.per_step(measure, cost_ns, ranks, **about)
        return say(" ({time} per step)" if time.unit == "ns/step" else " ({time})", time=time)

    def per_step(self, measure: str, cost_ns: float, ranks: Iterable[int] = (), **about: Any) -> Claim:
        """The time per step on one rank, or on each of these on average; default all.

        All of it where no steps are announced, or the end of the only one is not recorded.
        """
        ranks, counts = tuple(ranks), self.judged_steps
        if not counts or self.open_ended:
            return Claim(measure, cost_ns, "ns", "", ranks, about)
        steps = [counts[rank] for rank in ranks or counts if rank in counts] or list(counts.values())
        return Claim(measure, cost_ns * len(steps) / sum(steps), "ns/step", "", ranks, about)

    def time_lost(
        self, measure: str, pct: float, cost_ns: float, ranks: Iterable[int] = (), **about: Any
    ) -> Text:
        """`4.7 % of step time (1.2 ms per step)`."""
        share = self.share_of_time(measure, pct, ranks, **about)
        return share + self.time_per_step(measure, cost_ns, ranks, **about)

    def when(self, ranks: Iterable[int], ask: Callable[[int], Intervals]) -> dict[int, Intervals]:
        """For `Finding.lost`: the answer for each rank; for none where not all of them fit in memory."""
        return {} if self.trace.exceeds_memory else {rank: ask(rank) for rank in ranks}

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
        return self.anywhere(_has_name, pattern)

    @cached_property
    def _has_peers(self) -> bool:
        """Whether the job has further ranks, recorded or not."""
        sizes = self.collectives["group_size"].dropna()
        size = self.trace.summary["world_size"]
        return bool((sizes > 1).any()) or (isinstance(size, int) and size > 1)

    @property
    def exchanges_within(self) -> bool:
        """Whether the devices of the only process exchange with each other, as DataParallel's do."""
        ranks = self.trace.ranks
        return len(ranks) == 1 and not self._has_peers and self.recorded(ranks[0], _communicating_devices) > 1


def _kernel_times(inputs: Inputs, rank: int) -> tuple[list[str], Float64]:
    """Name and time of the compute kernels of a rank, as in `kernel_durations`."""
    rank_trace = inputs.trace.rank(rank)
    work = device_work_of(rank_trace)
    rows = work.rows[rank_trace.belong(work.rows, inputs.scope)]
    count = np.bincount(work.group[rows], minlength=work.size)
    total = exact_sums(work.group[rows], rank_trace.dur[rows], work.size)
    found = np.flatnonzero((work.event_class == EventClass.COMPUTE) & (count > 0))
    names = [rank_trace.names[code] for code in work.name[found].tolist()]
    return names, total[found].astype(np.float64)


def _alone(inputs: Inputs, rank: int, analysis: SplitsByRank) -> pd.DataFrame:
    return analysis(inputs.trace, replace(inputs.scope, ranks=(rank,)))


def _launched(inputs: Inputs, rank: int) -> Launched:
    return launched(inputs.trace.rank(rank), inputs.scope)


def _communicates(rank_trace: RankTrace) -> bool:
    return bool((rank_trace.is_device & (rank_trace.event_class == EventClass.COMMUNICATION)).any())


def _communicating_devices(rank_trace: RankTrace) -> int:
    exchanges = rank_trace.is_device & (rank_trace.event_class == EventClass.COMMUNICATION)
    return len(unique(rank_trace.device[exchanges]))


def _holds(rank_trace: RankTrace, event_class: EventClass) -> bool:
    return bool((rank_trace.event_class == event_class).any())


def _has_name(rank_trace: RankTrace, pattern: re.Pattern[str]) -> bool:
    return any(pattern.search(name) for name in rank_trace.names)


def _has_streams(rank_trace: RankTrace) -> bool:
    streams = unique(rank_trace.stream[rank_trace.is_device])
    return len(streams) > 1 or bool((rank_trace.event_class == EventClass.SYNC).any())


def _with_time(frame: pd.DataFrame) -> pd.DataFrame:
    return frame[frame["window_ns"] > 0].reset_index(drop=True)
