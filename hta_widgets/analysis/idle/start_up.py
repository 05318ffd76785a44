"""Start-up: idle time around calls that take long once, as when a process begins or code first runs.

It ends by itself and tells nothing about the steady state, so it is told apart from all other idle time.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.idle.breakdown import CONSECUTIVE_KERNEL_DELAY_NS
from hta_widgets.analysis.idle.causes import idle_causes
from hta_widgets.analysis.idle.cold_calls import COMPILES, ColdCall, cold_calls
from hta_widgets.analysis.serving.table import is_server
from hta_widgets.trace.far import FarTrace
from hta_widgets.trace.model import Trace
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.scope import Scope

# A step of which start-up takes this share (%) says nothing about the others: steady ones differ by less.
_STEP_PCT = 3.0
# A call that comes again in this many steps, and in half of them, belongs to the loop.
_RECURS = 3
# So do calls for memory that come regularly, as in checkpoints: every so many steps, twice or more.
_OF_MEMORY = re.compile(r"^(?:cuda|hip|cu|musa|cnrt)\w*(?:[Aa]lloc|Free|Mem)")
_APART = 3
# And what is compiled in so many steps after others which compile nothing; a server that compiles for
# requests of a new kind is done with it.
_AGAIN = 2
# A job of more is asked again.
_RANKS = 1 << 16


@dataclass(frozen=True)
class StartUp:
    """What a rank does to start up."""

    # the idle time around its calls, whole gaps without what is in them before the recording or after its
    # last work; what the data loader takes beside the calls is the loader's
    idle: Intervals
    calls: list[ColdCall]  # the calls, longest first

    def takes(self, begin: int, end: int) -> bool:
        """Whether it takes so much of a step (ns) that the step is not a steady one."""
        return 100.0 * self.idle.clip(begin, end).length >= _STEP_PCT * (end - begin)


class _Candidate(NamedTuple):
    """A call that takes long, once or in some of the steps."""

    call: ColdCall
    name: str
    start: int
    end: int
    iteration: int


@dataclass(frozen=True)
class _Candidates:
    """What start-up is chosen from: few numbers, which stay when the columns of a rank are dropped."""

    calls: list[_Candidate]
    gaps: Intervals  # the idle stretches around any of them
    edge: Intervals  # what of these lies before the recording, or after its last work
    data_stall: Intervals
    may_recompile: bool  # what compiles is no server, which does so for requests of a new kind

    def start_up(self, steps: tuple[int, ...]) -> StartUp | None:
        """What is start-up beside these steps, None if nothing is."""
        again = self._recurring(steps)
        found = [each for each in self.calls if each.name not in again]
        if not found:
            return None
        calls = self.gaps & Intervals.union([each.start for each in found], [each.end for each in found])
        calls -= self.edge
        around = np.unique(np.searchsorted(self.gaps.end, calls.start, side="right"))
        gaps = Intervals(self.gaps.start[around], self.gaps.end[around]) - self.edge
        longest_first = sorted(found, key=lambda each: each.start - each.end)
        return StartUp(calls | (gaps - self.data_stall), [each.call for each in longest_first])

    def _recurring(self, steps: tuple[int, ...]) -> set[str]:
        """The names of calls that are called in most steps, or regularly in some."""
        places = {step: at for at, step in enumerate(steps)}
        where: dict[str, set[int]] = defaultdict(set)
        for each in self.calls:
            if each.iteration in places:
                where[each.name].add(places[each.iteration])
        return {
            name
            for name, found in where.items()
            if (len(found) >= _RECURS and 2 * len(found) >= len(steps))
            or (self.may_recompile and COMPILES.search(name) and _again_later(sorted(found)))
            or (_OF_MEMORY.match(name) and _is_regular(sorted(found), len(steps)))
        }


@memoize_per_rank(last=8)
def _candidates(
    rank_trace: RankTrace, streams: tuple[int, ...] | None, names: tuple[str, ...] | None
) -> _Candidates:
    """What may be start-up while device work of these streams and names, or any (None), is waited for."""
    idle = idle_causes(rank_trace, Scope(streams=streams, names=names), CONSECUTIVE_KERNEL_DELAY_NS)
    # where work is missing, what waits for it only seems to wait for nothing
    doubtful = {step.iteration for step in rank_trace.doubtful_steps}
    columns = rank_trace.name, rank_trace.start, rank_trace.end, rank_trace.iteration
    calls = [
        _Candidate(call, rank_trace.names[code], start, end, iteration)
        for call in cold_calls(rank_trace, idle)
        for code, start, end, iteration in [[int(column[call.row]) for column in columns]]
        if iteration not in doubtful
    ]
    inside = idle.gaps & Intervals.union([each.start for each in calls], [each.end for each in calls])
    around = np.unique(np.searchsorted(idle.gaps.end, inside.start, side="right"))
    gaps = Intervals(idle.gaps.start[around], idle.gaps.end[around])
    edge, data_stall = (gaps & idle.causes[cause] for cause in ("edge", "data_stall"))
    return _Candidates(calls, gaps, edge, data_stall, not is_server(rank_trace))


def start_up_of(trace: Trace, rank: int, scope: Scope, steps: tuple[int, ...]) -> StartUp | None:
    """The start-up of a rank in the device work of a scope beside other complete steps, None if it shows
    none.
    """
    if scope.streams is None and scope.names is None:
        return _of_job(trace, rank)[1].start_up(steps)
    return _candidates(trace.rank(rank), scope.streams, scope.names).start_up(steps)


@memoize_per_rank(last=_RANKS)
def job_start_up(trace: Trace, rank: int) -> tuple[tuple[int, ...], StartUp | None]:
    """The complete steps of a rank that its own work does not contradict, and its start-up beside them."""
    steps, candidates = _of_job(trace, rank)
    return steps, candidates.start_up(steps)


@memoize_per_rank(last=_RANKS)
def _of_job(trace: Trace, rank: int) -> tuple[tuple[int, ...], _Candidates]:
    """What is remembered with the trace, since every selection asks it, also of ranks that were dropped."""
    return _of_far(trace)[rank] if isinstance(trace, FarTrace) else _judged(trace.rank(rank))


@memoize_per_rank()
def _of_far(trace: FarTrace) -> dict[int, tuple[tuple[int, ...], _Candidates]]:
    """That of all ranks, from where they lie: whoever asks of one asks of all, and one by one takes long."""
    return dict(zip(trace.ranks, trace.each(_judged), strict=True))


def _judged(rank_trace: RankTrace) -> tuple[tuple[int, ...], _Candidates]:
    frame = rank_trace.iterations
    complete = frame["iteration"].to_numpy(np.int64)[~frame["partial"].to_numpy(np.bool_)]
    steps = tuple(sorted(set(complete.tolist()).difference(rank_trace.contradicted_iterations)))
    return steps, _candidates(rank_trace, None, None)


def _again_later(found: list[int]) -> bool:
    """Whether two or more of these steps come after one that is not among them."""
    return sum(at < step for at, step in enumerate(found)) >= _AGAIN


def _is_regular(found: list[int], count: int) -> bool:
    """Whether these of so many steps are every n-th one, which the first is not."""
    apart = set(np.diff(found).tolist())
    every = apart.pop() if len(apart) == 1 else 0
    return every >= _APART and 0 < found[0] < every and found[-1] + every >= count
