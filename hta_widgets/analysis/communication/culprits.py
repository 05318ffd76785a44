"""Whom a waiting rank really waits for: who arrives last may itself have been waiting for another."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
import pandas as pd

from hta_widgets.analysis.core.intervals import Intervals

NOBODY = -1
"""In place of a rank: the chain of waits could not be followed."""

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class _Kernel:
    """A communication kernel: it waits from its start for the arrival of `last`, then it transfers."""

    position: int
    rank: int
    start: int
    end: int
    waits_until: int
    last: int
    known: bool


class _Rank:
    """When a rank computes, and its communication kernels by start."""

    def __init__(self, computing: Intervals, kernels: list[_Kernel]) -> None:
        # not lists: there are up to a hundred thousand, of each of the ranks, which are held together
        self._begins, self._ends = computing.start.data, computing.end.data
        self._kernels = sorted(kernels, key=lambda kernel: kernel.start)
        self._starts = [kernel.start for kernel in self._kernels]
        self._reach = list(accumulate((kernel.end for kernel in self._kernels), max))

    def computing(self, span: Span) -> tuple[list[Span], list[Span]]:
        """The parts of a span in which the rank computes, and the others."""
        first, last = bisect_right(self._ends, span[0]), bisect_left(self._begins, span[1])
        edges = [span[0], span[1]]
        for begin, end in zip(self._begins[first:last], self._ends[first:last], strict=True):
            edges[-1:] = max(begin, span[0]), min(end, span[1]), span[1]
        computes = list(zip(edges[1:-1:2], edges[2:-1:2], strict=True))
        others = zip(edges[::2], edges[1::2], strict=True)
        return computes, [part for part in others if part[0] < part[1]]

    def before(self, arrival: int, span: Span) -> list[_Kernel]:
        """The communication kernels in a span that have ended by the arrival, the last to end first.

        One that runs on beyond an arrival did not delay it.
        """
        found = []
        at = bisect_left(self._starts, span[1]) - 1
        while at >= 0 and self._reach[at] > span[0]:
            kernel = self._kernels[at]
            if span[0] < kernel.end <= arrival:
                found.append(kernel)
            at -= 1
        return sorted(found, key=lambda kernel: (-kernel.end, kernel.start))


def follow(kernels: pd.DataFrame, computing: Mapping[int, Intervals]) -> pd.DataFrame:
    """Divide the time that each kernel waits among the ranks that cause it.

    Rank r arrives at an exchange and waits for L, the last to arrive there. At a moment of that time the
    cause is culprit(L), and

    - culprit(L) = L if a compute kernel of L runs, or L is in no communication kernel;
    - culprit(L) = culprit(M) if L waits in a communication kernel itself, where M arrives last;
    - culprit(L) = L if L transfers data in such a kernel, all of whose ranks have arrived;
    - nobody, if it is unknown what L's kernel waits for (`known`), or if the ranks wait in a circle.

    A kernel of L counts if it ended before L arrived, since what runs on did not delay L; of several, the
    last to end. All that is measured on one rank is taken from its own clock: since all ranks leave an
    exchange together, the moment of the last arrival is known on each of them.

    Args:
        kernels: communication kernels. Columns: rank, start_ns, end_ns, waited_ns (int64 ns that it waits at
            its beginning), last (int64, position of the last arriver's kernel in this frame; -1 if
            unknown), known (bool, its time after the wait is a transfer).
        computing: rank -> when it computes.

    Returns:
        One row per part of a wait, in the order of the kernels; parts of a kernel add up to its waited_ns.
        Columns: kernel (int64, position of the one that waits), culprit (int64, or -1 for nobody), start_ns,
        end_ns (int64 ns, the part on the culprit's clock; on the waiting rank's if nobody).
    """
    return Followed(kernels, computing).parts()


class Followed:
    """Kernels whose waits can be followed; arguments as `follow` has them."""

    def __init__(self, kernels: pd.DataFrame, computing: Mapping[int, Intervals]) -> None:
        columns = ("rank", "start_ns", "end_ns", "waited_ns", "last", "known")
        each = zip(*(kernels[name].tolist() for name in columns), strict=True)
        self._every = [
            _Kernel(position, rank, start, end, start + waited, last, known)
            for position, (rank, start, end, waited, last, known) in enumerate(each)
        ]
        of_rank: dict[int, list[_Kernel]] = {}
        for kernel in self._every:
            of_rank.setdefault(kernel.rank, []).append(kernel)
        self._ranks = {rank: _Rank(computing[rank], own) for rank, own in of_rank.items()}

    def parts(self) -> pd.DataFrame:
        """The answer of `follow`."""
        found = [
            (kernel.position, *part[:3])
            for kernel in self._every
            if kernel.waits_until > kernel.start
            for part in _causes(kernel, self._every, self._ranks)
        ]
        values = np.array(found, np.int64).reshape(-1, 4)
        return pd.DataFrame(values, columns=["kernel", "culprit", "start_ns", "end_ns"])

    def chain(self, position: int) -> list[tuple[int, int, int]]:
        """The ranks through which most of what a kernel waits is waited, to the one that causes it.

        Returns:
            For each hop the position of the kernel in which its rank waits longest, how much of the first
            kernel's wait passes through that rank in whatever kernels, and how much in this one, ns. None
            without a known culprit.
        """
        parts = [
            ((*(kernel.rank for kernel in chain), culprit), chain, end - start)
            for culprit, start, end, chain in _causes(self._every[position], self._every, self._ranks)
        ]
        of_path: dict[tuple[int, ...], int] = {}
        for ranks, _, ns in parts:
            if ranks[-1] != NOBODY:
                of_path[ranks] = of_path.get(ranks, 0) + ns
        if not of_path:
            return []
        path = max(of_path, key=lambda ranks: (of_path[ranks], ranks))
        hops = []
        for at in range(len(path) - 1):
            in_kernel: dict[int, int] = {}
            for _, chain, ns in (part for part in parts if part[0] == path):
                in_kernel[chain[at].position] = in_kernel.get(chain[at].position, 0) + ns
            longest = max(in_kernel, key=lambda kernel: (in_kernel[kernel], -kernel))
            through = [part for part in parts if part[0][: at + 1] == path[: at + 1] and len(part[1]) > at]
            inside = sum(ns for _, chain, ns in through if chain[at].position == longest)
            hops.append((longest, sum(ns for *_, ns in through), inside))
        return hops


_Part = tuple[int, int, int, tuple[_Kernel, ...]]


def _causes(waiting: _Kernel, every: list[_Kernel], ranks: Mapping[int, _Rank]) -> list[_Part]:
    """The parts of one wait: culprit, start and end on its clock, and the kernels through which it waits.

    By the time of the waiting rank.
    """
    found: list[tuple[int, _Part]] = []  # the start on the clock of the waiting rank, then the part
    # What is left to explain: the kernel of the last to arrive, a span on its rank's clock, how far that is
    # ahead of the waiting rank's, and the kernels that wait for each other up to there.
    left: list[tuple[_Kernel, Span, int, tuple[_Kernel, ...]]] = []

    def wait(kernel: _Kernel, spans: list[Span], ahead: int, chain: tuple[_Kernel, ...]) -> None:
        if kernel.last < 0:
            blame(NOBODY, spans, ahead, chain)
            return
        last = every[kernel.last]
        shift = last.start - kernel.waits_until
        left.extend((last, (low + shift, high + shift), ahead + shift, chain) for low, high in spans)

    def blame(culprit: int, spans: list[Span], ahead: int, chain: tuple[_Kernel, ...]) -> None:
        shift = ahead if culprit == NOBODY else 0
        found.extend((low - ahead, (culprit, low - shift, high - shift, chain)) for low, high in spans)

    wait(waiting, [(waiting.start, waiting.waits_until)], 0, (waiting,))
    while left:
        last, span, ahead, chain = left.pop()
        if any(kernel.rank == last.rank for kernel in chain):
            blame(NOBODY, [span], ahead, chain)
            continue
        rank, rest = ranks[last.rank], [span]
        earlier = rank.before(last.start, span)
        if earlier:
            computes, rest = rank.computing(span)
            blame(last.rank, computes, ahead, chain)
        for kernel in earlier:
            transfers, rest = _cut(rest, kernel.waits_until, kernel.end)
            blame(last.rank if kernel.known else NOBODY, transfers, ahead, chain)
            waits, rest = _cut(rest, kernel.start, kernel.waits_until)
            wait(kernel, waits, ahead, (*chain, kernel))
        blame(last.rank, rest, ahead, chain)
    return [part for _, part in sorted(found, key=lambda each: (each[0], each[1][:3]))]


def _cut(spans: list[Span], low: int, high: int) -> tuple[list[Span], list[Span]]:
    """The parts of disjoint spans inside and outside [low, high)."""
    inside = [(max(start, low), min(end, high)) for start, end in spans]
    outside = [part for start, end in spans for part in ((start, min(end, low)), (max(start, high), end))]
    return [part for part in inside if part[0] < part[1]], [part for part in outside if part[0] < part[1]]
