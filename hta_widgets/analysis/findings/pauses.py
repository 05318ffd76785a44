"""Which idle time of a rank is due to pauses of its host that come in most steps, or do not come again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.findings.finding import NOTE_PCT
from hta_widgets.analysis.idle.pauses import collecting, pauses_of
from hta_widgets.analysis.serving.bubbles import absent_between
from hta_widgets.analysis.serving.table import is_server

if TYPE_CHECKING:
    from hta_widgets.analysis.findings.inputs import Inputs

STALL_NS: Final = 10_000_000
"""A shorter pause that does not come again may be anything."""
TELLING_STEPS: Final = 3
"""In fewer it cannot be told what comes again."""
_NONE = Intervals.union([], [])


@dataclass(frozen=True)
class Paused:
    """Idle time due to pauses of the host; empty where it is too little to tell.

    Attributes:
        stalls: pauses of `STALL_NS` or more at a place where most steps have none, and garbage collection.
        collected: what of it is garbage collection.
        stall_ends: names of the calls that end these pauses.
        recurring: pauses before the same call in most steps: those of the call with most idle time.
        recurring_end: the name of that call. Of a server there is none: its steps have their own finding.
        absent: when a server has no requests.
    """

    stalls: Intervals
    collected: Intervals
    stall_ends: tuple[str, ...]
    recurring: Intervals
    recurring_end: str
    absent: Intervals

    @property
    def stopped(self) -> Intervals:
        """Pauses at a place where most steps have none, but for garbage collection."""
        return self.stalls - self.collected

    @property
    def rare(self) -> Intervals:
        """What most steps do not have."""
        return self.stalls | self.absent

    @property
    def both(self) -> Intervals:
        """All of it."""
        return self.rare | self.recurring


def paused(inputs: Inputs, rank: int) -> Paused:
    """The idle time of a rank, in the judged time, in which its host pauses and would be late anyway."""
    rank_trace = inputs.trace.rank(rank)
    windows = rank_trace.windows(inputs.scope)
    late = inputs.idle_causes(rank).causes["host_busy"] & inputs.judged_time(rank)
    if rank in inputs.start_up:
        late -= inputs.start_up[rank].idle
    serves = is_server(rank_trace)
    absent = absent_between(rank_trace) & late if serves else _NONE
    late -= absent
    least = NOTE_PCT / 100 * int((windows[:, 1] - windows[:, 0]).sum())
    if late.length < least:  # whatever it is due to
        return Paused(_NONE, _NONE, (), _NONE, "", absent)
    collected = late & collecting(rank_trace)
    stalls, stall_ends, recurring = [], [], {}
    pauses = pauses_of(rank_trace)
    ended_by = rank_trace.name[pauses.row]
    long = pauses.when.end - pauses.when.start >= STALL_NS
    for code in np.unique(ended_by).tolist() if inputs.judged >= TELLING_STEPS else []:
        when = pauses.choose(ended_by == code)
        idle = when & late
        # one pause may lie in two steps
        often = np.count_nonzero(late.within_each(np.stack([when.start, when.end], 1)))
        if 2 * min(often, np.count_nonzero(idle.within_each(windows))) > len(windows):
            recurring[rank_trace.names[code]] = idle - collected
        elif idle := pauses.choose((ended_by == code) & long) & late:
            stalls.append(idle)
            stall_ends.append(rank_trace.names[code])
    stalled = _union([collected, *stalls])
    if stalled.length < least:
        stalled, collected, stall_ends = _NONE, _NONE, []
    name = max(recurring, key=lambda name: (recurring[name].length, name), default="")
    if serves or not name or recurring[name].length < least:
        return Paused(stalled, collected, tuple(stall_ends), _NONE, "", absent)
    return Paused(stalled, collected, tuple(stall_ends), recurring[name] - stalled, name, absent)


def _union(parts: list[Intervals]) -> Intervals:
    return Intervals.union(
        np.concatenate([part.start for part in parts]), np.concatenate([part.end for part in parts])
    )
