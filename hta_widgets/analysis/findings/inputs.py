"""The answers that the rules read, each computed once, on first use."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from hta_widgets.analysis.communication.collectives import collectives
from hta_widgets.analysis.communication.stragglers import stragglers
from hta_widgets.analysis.communication.waits import unclear, waits
from hta_widgets.analysis.device_time.step_times import step_times
from hta_widgets.analysis.device_time.temporal import temporal_breakdown
from hta_widgets.analysis.findings.workloads import Workloads
from hta_widgets.analysis.idle.breakdown import idle_breakdown
from hta_widgets.analysis.idle.gaps import longest_gap
from hta_widgets.analysis.kernels.breakdown import device_work
from hta_widgets.analysis.launches.queue import blocked_on_full_queue
from hta_widgets.formatting import duration, percent
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.scope import Scope

if TYPE_CHECKING:
    from hta_widgets.trace.model import Trace

__all__ = ["Inputs"]

# Sources that mark the steps of a job. Others guess them, so that time between guessed steps counts, too.
_ANNOUNCED = ("ProfilerStep", "serving step")
# In fewer steps one of the ranks is often the slowest in most of them by chance.
_TELLING_STEPS = 3


class Inputs:
    """The answers about a job in a scope; frames are those of the analyses of the same names.

    If the steps are marked and the scope names none, only complete steps count: what happens before and after
    them (starting the profiler, writing a checkpoint) would count as lost time.
    """

    def __init__(self, trace: Trace, scope: Scope) -> None:
        self.trace = trace
        steps = step_times(trace, scope)
        self.announced = bool(len(steps)) and bool(steps["source"].isin(_ANNOUNCED).all())
        complete = steps[~steps["partial"]] if self.announced else steps.iloc[:0]
        if scope.iterations is None and len(complete):
            scope = replace(scope, iterations=tuple(complete["iteration"].unique().tolist()))
        self.scope = scope
        self.steps = steps

    @cached_property
    def temporal(self) -> pd.DataFrame:
        return _with_time(temporal_breakdown(self.trace, self.scope))

    @cached_property
    def idle(self) -> pd.DataFrame:
        return _with_time(idle_breakdown(self.trace, self.scope))

    @cached_property
    def compute_kernels(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Count and mean_ns of `kernel_durations`, of compute kernels: a row per name, a column per rank."""
        counts, means = {}, {}
        for rank, rank_trace, work in device_work(self.trace, self.scope):
            rows = work.rows[rank_trace.belong(work.rows, self.scope)]
            count, total = np.zeros((2, work.size), np.int64)
            np.add.at(count, work.group[rows], 1)
            np.add.at(total, work.group[rows], rank_trace.dur[rows])
            found = np.flatnonzero((work.event_class == EventClass.COMPUTE) & (count > 0))
            if len(found):
                names = [rank_trace.names[code] for code in work.name[found].tolist()]
                counts[rank] = pd.Series(count[found], names)
                means[rank] = pd.Series(total[found] / count[found], names)
        return pd.DataFrame(counts).sort_index(), pd.DataFrame(means).sort_index()

    @cached_property
    def collectives(self) -> pd.DataFrame:
        return collectives(self.trace, self.scope)

    @cached_property
    def late(self) -> pd.DataFrame:
        """`stragglers`; without rows where ranks do not communicate, or are alone by design."""
        if self.collectives.empty or (len(self.trace.ranks) == 1 and not self._has_peers()):
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
        return Workloads(self.trace, self.scope)

    @cached_property
    def queues(self) -> pd.DataFrame:
        return _with_time(blocked_on_full_queue(self.trace, self.scope))

    def is_it_always(self) -> str:
        """The advice to begin with where too few steps are marked to tell a rank that is slow from chance."""
        if self._complete_steps >= _TELLING_STEPS:
            return ""
        return "Record and mark more steps first, to see whether it is the same rank in all of them. "

    @property
    def _complete_steps(self) -> int:
        """How many steps are announced and complete."""
        return int(self.steps.loc[~self.steps["partial"], "iteration"].nunique()) if self.announced else 0

    def longest_gap(self, rank: int, causes: tuple[str, ...]) -> tuple[int | None, int] | None:
        """Of the gap of a rank with most time of these causes: the event that ends it, and that time."""
        return longest_gap(self.trace.rank(rank), self.scope, causes)

    def per_step(self, cost_ns: float) -> str:
        """` (1.2 ms per step)`, from the time lost on one rank; empty where no steps are announced."""
        steps = self._complete_steps
        return f" ({duration(cost_ns / steps)} per step)" if steps else f" ({duration(cost_ns)})"

    def share(self, value: float) -> str:
        """`4.7 % of step time`; without marked steps, of the time."""
        return f"{percent(value)} of {'step' if self.announced else 'the'} time"

    def _has_peers(self) -> bool:
        """Whether the job has further ranks, recorded or not."""
        sizes = self.collectives["group_size"].dropna()
        size = self.trace.summary["world_size"]
        return bool((sizes > 1).any()) or (isinstance(size, int) and size > 1)


def _with_time(frame: pd.DataFrame) -> pd.DataFrame:
    return frame[frame["window_ns"] > 0].reset_index(drop=True)
