"""What an operation had to wait for on its own rank, from what time never contradicts."""

from __future__ import annotations

from typing import cast

import numpy as np
import numpy.typing as npt
import pandas as pd

from hta_widgets.analysis.core.medians import median
from hta_widgets.arrays import Int64
from hta_widgets.engine import checkpoint
from hta_widgets.jit import kernel

# An operation that starts this many tolerances after another has ended may have waited for it.
_NEAR = 4
# A dependency explains the start of its operation in one of twenty occurrences at least.
_EXPLAINS = 0.05


class Occurrences:
    """The operations of a job by where they occur again: what ranks of one stage do alike, step by step.

    Ranks of one stage with the same number of operations on each lane of a step do the same, so the n-th
    operation of a lane occurs in each of these steps and ranks.
    """

    def __init__(self, ops: pd.DataFrame, stage: dict[int, int]) -> None:
        self._start, self._end = ops["start_ns"].to_numpy(np.int64), ops["end_ns"].to_numpy(np.int64)
        after = np.flatnonzero(ops["nth"].to_numpy() > 0)
        self._in_lanes = np.stack([after - 1, after])
        # by lane: the rows of each rank and step, which follow one another
        rank, step, lane = (ops[name].to_numpy(np.int64) for name in ("rank", "step", "lane"))
        first = np.flatnonzero(ops["nth"].to_numpy() == 0)
        size = np.diff(np.append(first, len(ops)))
        at = pd.DataFrame({"rank": rank[first], "step": step[first], "lane": lane[first], "size": size})
        by_lane = at.set_index(["rank", "step", "lane"])["size"]
        sizes = by_lane.unstack(fill_value=0)  # noqa: PD010 - one value each
        stages = [stage[of] for of in sizes.index.get_level_values("rank")]
        alike = pd.factorize(pd.Series(map(tuple, np.column_stack([stages, sizes]).tolist())))[0]
        of_lane = alike[sizes.index.get_indexer(pd.MultiIndex.from_frame(at[["rank", "step"]]))]
        self._lanes: list[dict[int, Int64]] = [{} for _ in range(int(alike.max(initial=-1)) + 1)]
        alike_lanes = cast(dict[tuple[int, int], Int64], at.groupby([of_lane, "lane"]).indices)
        for (number, of), which in alike_lanes.items():
            begins = np.sort(first[which])
            self._lanes[number][of] = begins[:, None] + np.arange(size[which[0]])
        self._done = [
            {at: np.maximum.accumulate(self._end[rows], axis=1) for at, rows in lanes.items()}
            for lanes in self._lanes
        ]

    def dependencies(self, tolerance: int) -> tuple[Int64, Int64]:
        """(before, after): rows of operations, where `after` waited for `before` to end on the same rank.

        Operations of a lane run in order. Between lanes: the last operation of another lane that has ended,
        up to the tolerance, whenever the n-th starts, is a candidate: time contradicts it nowhere. It is
        taken if it is the latest of all and just ended in one of twenty occurrences, or if nothing else
        explains the start.

        Args:
            tolerance: ns by which an end may lie behind the start that waited for it.
        """
        found = [self._in_lanes]
        for lanes, done in zip(self._lanes, self._done, strict=True):
            checkpoint()
            found += _between_lanes(lanes, done, self._start, self._end, tolerance)
        edges = np.concatenate(found, axis=1)
        return edges[0], edges[1]


def _between_lanes(
    lanes: dict[int, Int64], done: dict[int, Int64], start: Int64, end: Int64, tolerance: int
) -> list[Int64]:
    """Edges between the lanes of ranks and steps that do the same: lane -> rows by occurrence and place."""
    found = []
    for lane, rows in lanes.items():
        begins = start[rows]
        others = [other for other in lanes if other != lane]
        if not others:
            continue
        ended = np.stack([_ended_everywhere(done[other], begins, tolerance) for other in others])
        earlier = np.maximum.accumulate(np.pad(ended[:, :-1], ((0, 0), (1, 0))), axis=1)
        news = ended > earlier
        for place in np.flatnonzero(news.any(axis=0)).tolist():
            new = np.flatnonzero(news[:, place]).tolist()
            before = np.stack([lanes[others[other]][:, ended[other, place] - 1] for other in new])
            own = end[rows[:, place - 1]] if place else np.full(len(rows), np.iinfo(np.int64).min // 2)
            taken = _taken(own, end[before], begins[:, place].copy(), tolerance)
            for at in np.flatnonzero(taken).tolist():
                found.append(np.stack([before[at], rows[:, place]]))
    return found


@kernel
def _taken(own: Int64, ends: Int64, begins: Int64, tolerance: int) -> npt.NDArray[np.bool_]:
    """Which candidates (rows of `ends`, by occurrence) are dependencies of an operation that begins then."""
    near = _NEAR * tolerance
    candidates, occurrences = ends.shape
    explains = np.zeros(candidates, np.int64)
    for k in range(occurrences):
        latest = own[k]
        for at in range(candidates):
            latest = max(latest, ends[at, k])
        for at in range(candidates):
            if ends[at, k] >= latest - tolerance and begins[k] - ends[at, k] <= near:
                explains[at] += 1
    taken: npt.NDArray[np.bool_] = explains / occurrences >= _EXPLAINS
    known = own.copy()
    for at in range(candidates):
        if taken[at]:
            known = np.maximum(known, ends[at])
    unexplained = median(begins - known)
    if unexplained > near:
        gaps = np.empty(candidates, np.float64)
        for at in range(candidates):
            gaps[at] = median(begins - ends[at])
        best = gaps.argmin()
        if not taken[best] and gaps[best] < unexplained - near:
            taken[best] = True
    return taken


@kernel
def _ended_everywhere(done: Int64, begins: Int64, tolerance: int) -> Int64:
    """How many operations of a lane have ended whenever each operation of another begins.

    Args:
        done: int64[occurrence, place] ns, when all up to this place have ended.
        begins: int64[occurrence, place] ns, of the other lane.
    """
    out = np.full(begins.shape[1], done.shape[1], np.int64)
    for k in range(begins.shape[0]):
        at = 0
        for place in range(begins.shape[1]):
            while at < done.shape[1] and done[k, at] <= begins[k, place] + tolerance:
                at += 1
            if at < out[place]:
                out[place] = at
    return out
