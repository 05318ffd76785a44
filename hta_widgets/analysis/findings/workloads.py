"""The compute work of the ranks: which of it is equal, who is slower at it, and who has more."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from hta_widgets.analysis.kernels.breakdown import device_work
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.scope import Scope

if TYPE_CHECKING:
    from hta_widgets.trace.model import Trace

__all__ = ["Comparison", "Workloads"]

# Ranks of equal devices run the same kernel within a few per cent of each other.
SLOWER = 1.05
# Kernels that take longer by no more than this part, all together, run as fast as on other ranks.
ALIKE = 0.02
# A slow device slows kernels with more than this part of the time.
MOST_TIME = 0.5
# A rank is slow if it is so in this part of the steps.
MOST_STEPS = 0.75

_LAUNCH = ["name", "grid", "block"]


@dataclass(frozen=True)
class Comparison:
    """The work of one rank beside that of the others.

    Work is equal if a kernel of the same name and launch configuration runs equally often in each step; such
    kernels are compared with the median of the ranks on which that is so.

    Attributes:
        rank: which.
        slower_ns: time beyond the others' in equal work, of the kernels that take over 5 % longer.
        name: of these, the kernel that loses most time; "" if there is none.
        ratio: how many times as long that takes.
        few: kernels with less than half of the time of equal work are slower, and all others together take
            at most 2 % longer.
        changes: in many steps it is not among the slowest at that work.
        more_ns: compute time beyond the median of the others, in work that is not equal.
        more_launches: compute kernels of a step beyond the median of the others.
        larger: that work has more thread blocks than the others'.
        more_pct: all compute time beyond the median of the others, in % of that.
    """

    rank: int
    slower_ns: int
    name: str
    ratio: float
    few: bool
    changes: bool
    more_ns: int
    more_launches: int
    larger: bool
    more_pct: float


class Workloads:
    """The compute kernels of the ranks in a scope, by launch configuration.

    Attributes:
        ranks: those with compute kernels, ascending.
    """

    def __init__(self, trace: Trace, scope: Scope) -> None:
        frames = []
        for rank, rank_trace, work in device_work(trace, scope):
            rows = work.rows[rank_trace.belong(work.rows, scope)]
            rows = rows[work.event_class[work.group[rows]] == EventClass.COMPUTE]
            if not len(rows):
                continue
            frame = pd.DataFrame(
                {
                    "name": rank_trace.name[rows],
                    "grid": rank_trace.argument_codes("grid")[rows],
                    "block": rank_trace.argument_codes("block")[rows],
                    "iteration": rank_trace.iteration[rows].astype(np.int64),
                    "time_ns": rank_trace.dur[rows],
                    "count": np.int64(1),
                }
            )
            frame = frame.groupby([*_LAUNCH, "iteration"], sort=False, as_index=False).sum()
            texts = {
                "name": rank_trace.names,
                "grid": rank_trace.table.dictionary("grid"),
                "block": rank_trace.table.dictionary("block"),
            }
            for column, values in texts.items():
                # the code of an absent one is -1
                frame[column] = np.array([*values, ""], object)[frame[column].to_numpy()]
            frames.append(frame.assign(rank=np.int64(rank)))
        self._by_step = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()
        self.ranks: list[int] = sorted(self._by_step["rank"].unique().tolist()) if frames else []

    @cached_property
    def _steps(self) -> pd.Series:
        return self._by_step.groupby("rank")["iteration"].nunique()

    @cached_property
    def _tables(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Launches in a step, and mean time: a row per launch configuration, a column per rank."""
        sums = self._by_step.groupby(["rank", *_LAUNCH])[["count", "time_ns"]].sum()
        count = sums["count"].unstack("rank").sort_index()  # noqa: PD010 - one value each
        time = sums["time_ns"].unstack("rank").sort_index()  # noqa: PD010
        return count / self._steps, time / count

    def _others(self, rank: int) -> list[int]:
        return [other for other in self.ranks if other != rank]

    def usual(self, rank: int) -> pd.Series[float]:
        """Mean time of each launch configuration on the ranks where it is equal work; NaN where on none."""
        count, mean = self._tables
        others = self._others(rank)
        equal = count[others].eq(count[rank], axis=0)
        return mean[others].where(equal).median(axis=1)

    def excess(self, rank: int) -> pd.Series[float]:
        """Time that equal work takes beyond the others', by launch configuration, where that is over 5 %."""
        count, mean = self._tables
        usual = self.usual(rank)
        slower = mean[rank] > SLOWER * usual
        return ((mean[rank] - usual) * count[rank] * int(self._steps[rank]))[slower]

    def compared(self, rank: int) -> Comparison:
        """One of the ranks with the others; there must be another."""
        count, mean = self._tables
        usual, steps, excess = self.usual(rank), int(self._steps[rank]), self.excess(rank)
        launches = count[rank] * steps
        name, ratio, few = "", 1.0, False
        if len(excess):
            worst = excess.index[int(np.argmax(excess.to_numpy()))]
            name, ratio = str(worst[0]), float(mean[rank][worst] / usual[worst])
            few = self._few(excess.index, mean[rank], usual, launches)
        others = self._others(rank)
        per_step = (mean * count).sum() * steps
        typical = float(per_step[others].median())
        unequal = usual.isna()
        own = float((mean[rank] * launches)[unequal].sum())
        theirs = (mean[others] * count[others])[unequal].sum() * steps
        size = np.array([_blocks(grid) for grid in unequal.index.get_level_values("grid")])
        blocks = count[unequal].mul(size[unequal.to_numpy()], axis=0).sum()
        return Comparison(
            rank,
            round(float(excess.sum())),
            name,
            ratio,
            few,
            self._changes(rank, excess.index),
            max(0, round(min(own - float(theirs.median()), float(per_step[rank]) - typical))),
            round(float(count[rank].sum() - count[others].sum().median())),
            bool(blocks[rank] > blocks[others].median()),
            100.0 * (float(per_step[rank]) / typical - 1.0) if typical else 0.0,
        )

    def _few(
        self,
        slower: pd.Index[str],
        mean: pd.Series[float],
        usual: pd.Series[float],
        launches: pd.Series[float],
    ) -> bool:
        times = (usual * launches).dropna()
        rest = times.index.difference(slower)
        longer = float(((mean[rest] - usual[rest]) * launches[rest]).sum())
        few = bool(times[slower].sum() < MOST_TIME * times.sum())
        return few and longer <= ALIKE * float(times[rest].sum())

    def _changes(self, rank: int, slower: pd.Index[str]) -> bool:
        """Whether the rank is among the slowest at the work that takes it longer in too few of the steps."""
        key = pd.MultiIndex.from_frame(self._by_step[_LAUNCH])
        rows = self._by_step[key.isin(slower)]
        times = rows.pivot_table("time_ns", "iteration", "rank", "sum").dropna()
        if times.empty or rank not in times:
            return False
        others = times.drop(columns=rank)
        slow = times[rank] > SLOWER * others.median(axis=1)
        among_slowest = SLOWER * times[rank] > others.max(axis=1)
        return bool((slow & among_slowest).mean() < MOST_STEPS)


def _blocks(grid: str) -> int:
    """How many thread blocks a grid like `[128, 4, 1]` has; 0 if it is not recorded."""
    sizes = [int(size) for size in re.findall(r"\d{1,10}", grid)]
    return math.prod(sizes) if sizes else 0
