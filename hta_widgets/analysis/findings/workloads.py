"""The compute work of the ranks: which of it is equal, who is slower at it, and who has more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hta_widgets.analysis.findings.configurations import Launched
from hta_widgets.analysis.kernels.residency import product_of
from hta_widgets.analysis.operators.inputs import elements
from hta_widgets.arrays import Bool, Float64
from hta_widgets.trace.ordering import distinct, unique

# Ranks of equal devices run the same kernel within a few per cent of each other.
SLOWER = 1.05
# Kernels that take longer by no more than this part, all together, run as fast as on other ranks.
ALIKE = 0.02
# A slow device slows kernels with more than this part of the time, ...
MOST_TIME = 0.5
# ... or by less than this if others, with this part of the time and more, run as fast as elsewhere.
FAR_SLOWER, SOME_TIME = 1.5, 0.05
# A rank is slow if it is so in this part of the steps.
MOST_STEPS = 0.75


@dataclass(frozen=True)
class Comparison:
    """The work of one rank beside that of the others.

    Work is equal if a kernel of the same name, launch configuration and inputs runs equally often in each
    step; such kernels are compared with the median of the ranks on which that is so.
    """

    rank: int  # which
    slower_ns: int  # time beyond the others' in equal work, of the kernels that take over 5 % longer
    name: str  # of these, the kernel that loses most time; "" if there is none
    ratio: float  # how many times as long that takes
    slower_pct: float  # the usual time of these, in % of that of all equal work
    # that is less than half, or these take 1.5 times as long, and all others together take at most 2 % longer
    few: bool
    changes: bool  # in many steps it is not among the slowest at that work
    more_ns: int  # compute time beyond the median of the others, in work that is not equal
    more_launches: int  # compute kernels of a step beyond the median of the others
    # what of that work is larger than the others': "grids", as it has more thread blocks, "inputs", or ""
    larger: str
    more_pct: float  # all compute time beyond the median of the others, in % of that


class Workloads:
    """The compute kernels of the ranks in a scope, by launch configuration.

    Arrays have a row per rank, in the order of `ranks`, and a column per configuration, in ascending order.

    Attributes:
        ranks: those with compute kernels, ascending.
    """

    def __init__(self, of_ranks: Mapping[int, Launched]) -> None:
        self._known = sorted({each for of_rank in of_ranks.values() for each in of_rank.known})
        place = {each: at for at, each in enumerate(self._known)}
        self._of = {rank: of_rank for rank, of_rank in of_ranks.items() if len(of_rank.number)}
        self._number = {
            rank: np.array([place[each] for each in of_rank.known], np.int64)[of_rank.number]
            for rank, of_rank in self._of.items()
        }
        self.ranks: list[int] = list(self._of)

    @cached_property
    def _steps(self) -> Float64:
        """In how many iterations each rank has compute kernels."""
        return np.array([len(unique(self._of[rank].iteration)) for rank in self.ranks], np.float64)

    @cached_property
    def _tables(self) -> tuple[Float64, Float64]:
        """Launches in a step, and mean time; NaN where a rank does not launch it."""
        size = len(self._known)
        count, time = np.zeros((2, len(self.ranks), size))
        for at, rank in enumerate(self.ranks):
            count[at] = np.bincount(self._number[rank], self._of[rank].count, size)
            time[at] = np.bincount(self._number[rank], self._of[rank].dur_ns, size)
        count[count == 0] = np.nan
        return count / self._steps[:, None], time / count

    def _others(self, rank: int) -> list[int]:
        """The rows of the other ranks."""
        return [at for at, other in enumerate(self.ranks) if other != rank]

    @cached_property
    def _usual(self) -> Float64:
        """For each rank the median of the others' mean times, where it is equal work; NaN where on none."""
        count, mean = self._tables
        usual = np.full_like(mean, np.nan)
        for column in range(mean.shape[1]):
            usual[:, column] = _median_of_others(count[:, column], mean[:, column])
        return usual

    def excess(self, rank: int) -> Float64:
        """Time that equal work takes beyond the others', where that is over 5 %; else 0."""
        (count, mean), at = self._tables, self.ranks.index(rank)
        usual = self._usual[at]
        slower = mean[at] > SLOWER * usual
        return np.where(slower, (mean[at] - usual) * count[at] * self._steps[at], 0.0)

    def compared(self, rank: int) -> Comparison:
        """One of the ranks with the others; there must be another."""
        (count, mean), at, others = self._tables, self.ranks.index(rank), self._others(rank)
        usual, steps, excess = self._usual[at], self._steps[at], self.excess(rank)
        launches = count[at] * steps
        name, ratio, slower_pct, few = "", 1.0, 0.0, False
        if excess.any():
            worst = int(np.argmax(excess))
            name, ratio = self._known[worst].name, float(mean[at][worst] / usual[worst])
            slower_pct, few = _few(excess > 0, mean[at], usual, launches)
        per_step = np.nansum(mean * count, axis=1) * steps
        typical = float(np.median(per_step[others]))
        unequal = np.isnan(usual)
        own = float(np.nansum((mean[at] * launches)[unequal]))
        theirs = np.nansum((mean[others] * count[others])[:, unequal], axis=1) * steps
        other = [self._known[each] for each in np.flatnonzero(unequal).tolist()]
        sizes = {
            "grids": [product_of(each.grid) for each in other],
            "inputs": [elements(each.inputs) for each in other],
        }
        sums = {name: np.nansum(count[:, unequal] * np.array(size), axis=1) for name, size in sizes.items()}
        launched = np.nansum(count, axis=1)
        return Comparison(
            rank,
            round(float(excess.sum())),
            name,
            ratio,
            slower_pct,
            few,
            self._changes(rank, excess > 0),
            max(0, round(min(own - float(np.median(theirs)), float(per_step[at]) - typical))),
            round(float(launched[at] - np.median(launched[others]))),
            next((name for name, of in sums.items() if of[at] > np.median(of[others])), ""),
            100.0 * (float(per_step[at]) / typical - 1.0) if typical else 0.0,
        )

    def _changes(self, rank: int, slower: Bool) -> bool:
        """Whether the rank is among the slowest at the work that takes it longer in too few of the steps."""
        times: dict[int, dict[int, int]] = {}
        for each in self.ranks:
            at = slower[self._number[each]]
            if not at.any():
                continue
            steps, of = distinct(self._of[each].iteration[at])
            sums = np.bincount(of, self._of[each].dur_ns[at])
            times[each] = dict(zip(steps.tolist(), sums.tolist(), strict=True))
        everywhere = set.intersection(*map(set, times.values())) if times else set()
        if not everywhere or rank not in times:
            return False
        table = np.array([[times[each][step] for step in sorted(everywhere)] for each in times])
        own, others = (table[[(each == rank) is mine for each in times]] for mine in (True, False))
        slow = own[0] > SLOWER * np.median(others, axis=0)
        among_slowest = SLOWER * own[0] > others.max(axis=0)
        return bool((slow & among_slowest).mean() < MOST_STEPS)


def _few(slower: Bool, mean: Float64, usual: Float64, launches: Float64) -> tuple[float, bool]:
    """How much (%) of the time of equal work is slower, and whether only that is."""
    times = usual * launches
    known = ~np.isnan(times)
    rest = known & ~slower
    longer = float(((mean - usual) * launches)[rest].sum())
    part = float(times[slower].sum() / times[known].sum())
    far = float((mean * launches)[slower].sum()) >= FAR_SLOWER * float(times[slower].sum())
    some = part < MOST_TIME or (far and part <= 1.0 - SOME_TIME)
    return 100.0 * part, some and longer <= ALIKE * float(times[rest].sum())


def _median_of_others(alike: Float64, values: Float64) -> Float64:
    """For each value the median of the others that are `alike` (by an equal number); NaN if there is none.

    All at once from one sort: a median for each of thousands of ranks would take time by their square.
    """
    order = np.lexsort((values, alike))
    order = order[~np.isnan(alike[order])]
    first = np.flatnonzero(np.diff(alike[order], prepend=np.nan) != 0)
    size = np.diff(first, append=len(order))
    begin, others = np.repeat(first, size), np.repeat(size, size) - 1
    own = np.arange(len(order)) - begin
    low, high = (others - 1) // 2, others // 2
    low, high = begin + low + (low >= own), begin + high + (high >= own)  # the own one is passed over
    found, some = np.full(len(values), np.nan), others > 0
    ascending = values[order]
    found[order[some]] = (ascending[low[some]] + ascending[high[some]]) / 2
    return found
