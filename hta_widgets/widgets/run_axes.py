"""Corresponding instants of several runs, so that their timelines can move as one.

Steps are paired by their order among those that count. In between, time is interpolated linearly, or between
pairs of corresponding device work.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from hta_widgets.analysis.compare.anchors import anchors, counterpart
from hta_widgets.analysis.compare.sampling import sample
from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.arrays import Float64, Int64
from hta_widgets.engine import checkpoint
from hta_widgets.trace.model import Trace
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.scope import Scope
from hta_widgets.widgets.runs import Runs

Event = tuple[int, int]

FAR = 1e18  # ns, beyond any trace
_MOST_STEPS = 16  # of which the work is paired at once
_MOST_TIMES = 100_000  # in one answer: 800 kB
_STEPS_REMEMBERED = 64


@dataclass(frozen=True)
class Anchors:
    """Corresponding instants."""

    times: Float64  # float64[runs, n] ns; every row rises strictly, and the instants of a column correspond
    # ns of the requested run, between which the anchors are as dense as possible
    first: float
    last: float


@dataclass(frozen=True)
class _Paired:
    """A rank of each run, and int64[runs, steps, 2] start and end of its steps."""

    ranks: list[RankTrace]
    windows: Int64


class RunAxes:
    """Answers about the axes of some runs. Only reads, so that any thread may ask."""

    def __init__(self, runs: Runs) -> None:
        self._runs = dict(runs)

    def anchors(
        self, scopes: Mapping[str, Scope], run: int, view: tuple[float, float], *, by_work: bool
    ) -> Anchors:
        """The anchors around a view (start, end in ns) of the run of that number.

        `by_work`: also those of corresponding device work, in the steps near the view; else only the starts
        and ends of steps. The rank is the first selected one that all runs have, else each run's first.
        """
        key = tuple(scopes[name] for name in self._runs)
        paired = self._pairs(key)
        steps = paired.windows.shape[1]
        if not steps:
            starts = [[float(trace.extent_ns[0])] for trace in self._runs.values()]
            return Anchors(np.array(starts), -FAR, FAR)
        near = _near(paired.windows[run], *view) if by_work else range(0)
        times = np.empty((len(self._runs), 0), np.int64)
        for step in range(steps):
            own = self._step(key, step) if step in near else paired.windows[:, step]
            # If a run has no pause between two steps, only the start of the second is used.
            times = np.hstack([times[:, (times < own[:, :1]).all(axis=0)], own])
        first = float(paired.windows[run, near[0], 0]) if near and near[0] > 0 else -FAR
        last = float(paired.windows[run, near[-1], 1]) if near and near[-1] < steps - 1 else FAR
        return Anchors(_thinned(times).astype(np.float64), first, last)

    def counterparts(
        self, scopes: Mapping[str, Scope], run: int, rank: int, event_id: int
    ) -> list[Event | None]:
        """The event of each run that does what an event of one of them does, as (rank, event_id), or None.

        It is looked for in the step that corresponds, on the same rank where all runs have it.
        """
        names = list(self._runs)
        shared = all(rank in trace.ranks for trace in self._traces)
        own = {name: replace(scopes[name], ranks=(rank,)) if shared else scopes[name] for name in names}
        paired = self._pairs(tuple(own[name] for name in names))
        base, windows = paired.ranks[run], paired.windows[run]
        found: list[Event | None] = [None] * len(names)
        found[run] = rank, event_id
        rows = np.flatnonzero(base.event_id == event_id)
        if base.rank != rank or not len(rows):
            return found
        row, start = int(rows[0]), int(base.start[rows[0]])
        for step in np.flatnonzero((windows[:, 0] <= start) & (start < windows[:, 1])).tolist()[:1]:
            for at, other in enumerate(paired.ranks):
                if at != run:
                    checkpoint()
                    pair = tuple(windows[step].tolist()), tuple(paired.windows[at, step].tolist())
                    match = counterpart(base, row, pair[0], other, pair[1])
                    found[at] = (other.rank, int(other.event_id[match])) if match >= 0 else None
        return found

    @memoize_per_rank()
    def _pairs(self, key: tuple[Scope, ...]) -> _Paired:
        samples = list(sample(self._runs, dict(zip(self._runs, key, strict=True))).values())
        common = [rank for rank in samples[0].ranks if all(rank in steps.ranks for steps in samples)]
        numbers = [
            (common or steps.ranks or trace.ranks)[0]
            for steps, trace in zip(samples, self._traces, strict=True)
        ]
        count = min(len(steps) for steps in samples)
        windows = [
            steps.windows[:count, steps.ranks.index(rank)] if count else np.empty((0, 2), np.int64)
            for steps, rank in zip(samples, numbers, strict=True)
        ]
        ranks = [trace.rank(number) for trace, number in zip(self._traces, numbers, strict=True)]
        return _Paired(ranks, np.stack(windows))

    @property
    def _traces(self) -> list[Trace]:
        return list(self._runs.values())

    @memoize_per_rank(last=_STEPS_REMEMBERED)
    def _step(self, key: tuple[Scope, ...], step: int) -> Int64:
        """int64[runs, n] corresponding instants of a step, its begin and end included."""
        checkpoint()
        paired = self._pairs(key)
        base, windows = paired.ranks[0], paired.windows[:, step].tolist()
        pairs = [
            anchors(base, tuple(windows[0]), other, tuple(window))
            for other, window in zip(paired.ranks[1:], windows[1:], strict=True)
        ]
        instants = np.unique(np.concatenate([pair[:, 0] for pair in pairs]))
        rows = [instants, *(np.rint(np.interp(instants, pair[:, 0], pair[:, 1])) for pair in pairs)]
        return _rising(np.stack(rows).astype(np.int64))


def _near(windows: Int64, start: float, end: float) -> range:
    """The steps in a view and one on either side; those nearest to its middle, where they are too many."""
    middle = (start + end) / 2
    apart = np.maximum(np.maximum(windows[:, 0] - middle, middle - windows[:, 1]), 0)
    nearest = int(apart.argmin())
    within = np.flatnonzero((windows[:, 0] < end) & (windows[:, 1] > start)).tolist() or [nearest]
    half = _MOST_STEPS // 2
    first = max(within[0] - 1, nearest - half, 0)
    return range(first, min(within[-1] + 2, nearest + half, len(windows)))


def _rising(times: Int64) -> Int64:
    """The columns that rise in every row; the first and the last are always included."""
    inside = times[:, 1:-1]
    kept = [0]
    for at in np.flatnonzero((inside < times[:, -1:]).all(axis=0)).tolist():
        if (inside[:, at] > times[:, kept[-1]]).all():
            kept.append(at + 1)
    return times[:, [*kept, times.shape[1] - 1]]


def _thinned(times: Int64) -> Int64:
    most = _MOST_TIMES // len(times)
    if times.shape[1] <= most:
        return times
    return times[:, np.linspace(0, times.shape[1] - 1, most).astype(np.int64)]
