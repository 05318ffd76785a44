"""Start-up: idle time around calls that take long once, as when a process begins or code first runs.

It ends by itself and tells nothing about the steady state, so it is told apart from all other idle time.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

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


@memoize_per_rank(last=8)
def start_up_of(
    rank_trace: RankTrace,
    streams: tuple[int, ...] | None,
    names: tuple[str, ...] | None,
    steps: tuple[int, ...],
) -> StartUp | None:
    """The start-up of a rank, None if it shows none.

    Args:
        streams, names: what to look at of the device work; None is everything.
        steps: the complete iterations that the program marks.
    """
    idle = idle_causes(rank_trace, Scope(streams=streams, names=names), CONSECUTIVE_KERNEL_DELAY_NS)
    # where work is missing, what waits for it only seems to wait for nothing
    doubtful = {step.iteration for step in rank_trace.doubtful_steps}
    found = [
        call for call in _cold_calls(rank_trace, idle) if int(rank_trace.iteration[call.row]) not in doubtful
    ]
    rows = np.array([call.row for call in found], np.int64)
    again = _recurring(rank_trace, rows, steps)
    found = [call for call, recurs in zip(found, again.tolist(), strict=True) if not recurs]
    if not found:
        return None
    rows = rows[~again]
    calls = idle.gaps & Intervals.union(rank_trace.start[rows], rank_trace.end[rows])
    calls -= idle.causes["edge"]
    around = np.unique(np.searchsorted(idle.gaps.end, calls.start, side="right"))
    gaps = Intervals(idle.gaps.start[around], idle.gaps.end[around]) - idle.causes["edge"]
    around_calls = gaps - idle.causes["data_stall"]
    return StartUp(calls | around_calls, sorted(found, key=lambda call: -int(rank_trace.dur[call.row])))


@memoize_per_rank(last=_RANKS)
def job_start_up(trace: Trace, rank: int) -> tuple[tuple[int, ...], StartUp | None]:
    """The complete steps of a rank that its own work does not contradict, and its start-up beside them.

    It is remembered with the trace, since every selection asks it, also of ranks that were dropped.
    """
    return _of_far(trace)[rank] if isinstance(trace, FarTrace) else _judged(trace.rank(rank))


@memoize_per_rank()
def _of_far(trace: FarTrace) -> dict[int, tuple[tuple[int, ...], StartUp | None]]:
    """That of all ranks, from where they lie: whoever asks of one asks of all, and one by one takes long."""
    return dict(zip(trace.ranks, trace.each(_judged), strict=True))


def _judged(rank_trace: RankTrace) -> tuple[tuple[int, ...], StartUp | None]:
    frame = rank_trace.iterations
    complete = frame["iteration"].to_numpy(np.int64)[~frame["partial"].to_numpy(np.bool_)]
    steps = tuple(sorted(set(complete.tolist()).difference(rank_trace.contradicted_iterations)))
    return steps, start_up_of(rank_trace, None, None, steps)


# It takes a pass over all calls, and no steps.
_cold_calls = memoize_per_rank(last=8)(cold_calls)


def _recurring(
    rank_trace: RankTrace, rows: npt.NDArray[np.int64], steps: tuple[int, ...]
) -> npt.NDArray[np.bool_]:
    """Which of these calls have a name that is called in most steps, or regularly in some."""
    places = {step: at for at, step in enumerate(steps)}
    where: dict[int, set[int]] = defaultdict(set)
    for name, step in zip(rank_trace.name[rows].tolist(), rank_trace.iteration[rows].tolist(), strict=True):
        if step in places:
            where[name].add(places[step])
    may_recompile = not is_server(rank_trace)
    again = [
        name
        for name, found in where.items()
        if (len(found) >= _RECURS and 2 * len(found) >= len(steps))
        or (may_recompile and COMPILES.search(rank_trace.names[name]) and _again_later(sorted(found)))
        or (_OF_MEMORY.match(rank_trace.names[name]) and _is_regular(sorted(found), len(steps)))
    ]
    return np.isin(rank_trace.name[rows], again)


def _again_later(found: list[int]) -> bool:
    """Whether two or more of these steps come after one that is not among them."""
    return sum(at < step for at, step in enumerate(found)) >= _AGAIN


def _is_regular(found: list[int], count: int) -> bool:
    """Whether these of so many steps are every n-th one, which the first is not."""
    apart = set(np.diff(found).tolist())
    every = apart.pop() if len(apart) == 1 else 0
    return every >= _APART and 0 < found[0] < every and found[-1] + every >= count
