"""Which time is judged: of steps those that are complete and steady, of ranks those that can be compared."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, Final, TypeVar, cast

import numpy as np
import pandas as pd

from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.device_time.step_times import step_times
from hta_widgets.analysis.findings.finding import NOTE_PCT, WARNING_PCT
from hta_widgets.analysis.findings.shared_time import SharedTime, late_entry, lengths_apart, shared_time
from hta_widgets.analysis.findings.withheld import WithheldError, withheld
from hta_widgets.analysis.idle.start_up import StartUp, job_start_up, start_up_of
from hta_widgets.errors import MissingDataError
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.model import Trace
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.records.vetoes import Claim as VetoedClaim
from hta_widgets.trace.scope import Scope

Answer = TypeVar("Answer")
Asked = tuple[Callable[..., Any], tuple[Any, ...]]

# Of so many selections the judged time is remembered: every part of an explorer asks for it.
_SCOPES = 8
# From this part of the ranks on that do not record when a step ended, it is left out.
_MOSTLY_OPEN = 0.5
MUCH_START_UP_PCT: Final = 33.0
"""A recording of which start-up takes less is judged as a whole, start-up apart."""
# What follows start-up is judged alone if it is this part of the time of each rank, with so much work.
_SETTLED, _SETTLED_WORK = 0.2, 20
# Calls that may wait, as the recording begins, for work that was launched before it.
_MAY_WAIT = re.compile("Synchronize|Memcpy|Memset")


def judged_scope(trace: Trace, scope: Scope | None = None) -> Scope:
    """What the findings about a scope are about: of marked steps those that are complete and steady."""
    return _judged(trace, scope or Scope())[0]


def left_out_steps(trace: Trace, scope: Scope, rank: int) -> list[int]:
    """The complete steps of a rank that findings about a scope leave out because they hold start-up."""
    return [step for each, step in _judged(trace, scope)[1] if each == rank]


@memoize_per_rank(last=_SCOPES)
def _judged(trace: Trace, scope: Scope) -> tuple[Scope, list[tuple[int, int]]]:
    judged = JudgedTime(trace, scope)
    return judged.scope, judged.left_out


class JudgedTime:
    """Which time of which ranks of a job is judged, in a scope.

    If the steps are marked (announced, or annotated regularly) and the scope names none, only complete steps
    count: what happens before and after them (starting the profiler, writing a checkpoint) would count as
    lost time. Of those, steps are left out if there are others: those whose end is not recorded, those in
    which the program still starts up, and those whose records are not whole on one of the ranks. Steps tile,
    so that the time between two belongs to the first. Guessed steps do not count: then all recorded device
    work does.

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
        # what one rank did not record of a step, the others' records of it do not tell
        doubted = {
            step.iteration
            for rank in trace.ranks_of(scope)
            for step in trace.rank(rank).doubtful_steps
            if step.doubt_ns
        }
        if not complete["iteration"].isin(doubted).all():
            complete = complete[~complete["iteration"].isin(doubted)]
        # their windows must not be judged in place of those that others' work contradicts
        if not self.steps.loc[~self.steps["partial"], "open"].all():
            complete = complete[~complete["open"]]
        self.contradicted = self.announced and not len(complete) and not self.steps["partial"].all()
        steps_of: dict[int, list[int]] = {}
        for rank, step in zip(complete["rank"].tolist(), complete["iteration"].tolist(), strict=True):
            steps_of.setdefault(rank, []).append(step)
        self.start_up: dict[int, StartUp] = {}
        for rank in trace.ranks_of(scope):
            steps = tuple(steps_of.get(rank, ()))
            whole, found = job_start_up(trace, rank)
            if (scope.streams, scope.names, steps) != (None, None, whole):
                found = start_up_of(trace, rank, scope, steps)
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
        begins = {}
        for rank in ranks:
            numbers, _, by_host = self.trace.rank(rank).iteration_windows  # quick, as there may be many ranks
            at = np.flatnonzero(numbers == step)
            if len(at):
                begins[rank] = int(by_host[at[0], 0])
        return begins

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
        return self.recorded(rank, _work_in, begin, end)

    def _exchange_at(self, rank: int, at: int) -> int:
        """When the communication ends that runs at a time; that time if none runs."""
        return self.recorded(rank, _exchange_at, at)

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
            recorded = {rank: self.recorded(rank, _calls) or span for rank, span in spans.items()}
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
            calls = [span for rank in ranks if (span := self.recorded(rank, _calls))]
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

    @cached_property
    def judged_rows(self) -> pd.DataFrame:
        """The rows of `steps` about ranks and iterations that are judged."""
        rows = self.steps if self.scope.iterations is None else self._chosen_steps(self.scope.iterations)
        return rows[rows["rank"].isin(self.trace.ranks_of(self.scope))]

    def _chosen_steps(self, iterations: tuple[int, ...]) -> pd.DataFrame:
        return self.steps[self.steps["iteration"].isin(iterations)]

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

    def recorded(self, rank: int, ask: Callable[..., Answer], *args: Any) -> Answer:
        """`of` what follows from the events of a rank, whatever is judged: `ask(its trace, *args)`."""
        return self.of(rank, _recorded, ask, *args)

    def anywhere(self, ask: Callable[..., bool], *args: Any) -> bool:
        """Whether that is so on any rank that is asked about."""
        return any(self.recorded(rank, ask, *args) for rank in self.trace.ranks_of(self.scope))

    @cached_property
    def judged_steps(self) -> dict[int, int]:
        """How many iterations are judged on each rank that has any; empty where none are marked."""
        if not self.announced or not self.scope.iterations:
            return {}
        chosen = self._chosen_steps(self.scope.iterations)
        ranks, counts = np.unique(chosen["rank"].to_numpy(np.int64), return_counts=True)
        return dict(zip(ranks.tolist(), counts.tolist(), strict=True))

    @property
    def judged(self) -> int:
        """How many iterations are judged on a rank (ranks may record others); 0 where none are marked."""
        counts = self.judged_steps.values()
        return round(sum(counts) / len(counts)) if counts else 0

    def judged_time(self, rank: int) -> Intervals:
        """When it is judged."""
        return self.of(rank, _judged_time)


def _judged_time(judged: JudgedTime, rank: int) -> Intervals:
    windows = judged.trace.rank(rank).windows(judged.scope)
    return Intervals.union(windows[:, 0], windows[:, 1])


def _recorded(judged: JudgedTime, rank: int, ask: Callable[..., Answer], *args: Any) -> Answer:
    return ask(judged.trace.rank(rank), *args)


def _calls(rank_trace: RankTrace) -> tuple[int, int] | None:
    """From the first to the last event that is not the profiler's own."""
    rows = rank_trace.event_class != EventClass.OTHER
    return (int(rank_trace.start[rows].min()), int(rank_trace.end[rows].max())) if rows.any() else None


def _work_in(rank_trace: RankTrace, begin: int, end: int) -> int:
    start = rank_trace.start[rank_trace.is_device]
    return int(np.count_nonzero((start >= begin) & (start < end)))


def _exchange_at(rank_trace: RankTrace, at: int) -> int:
    rows = rank_trace.is_device & (rank_trace.event_class == EventClass.COMMUNICATION)
    return int(rank_trace.end[rows & (rank_trace.start <= at)].max(initial=at))
