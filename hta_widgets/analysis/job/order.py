"""What an operation had to wait for on its own rank, from what time never contradicts."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from hta_widgets.engine import checkpoint
from hta_widgets.jit import kernel

__all__ = ["dependencies"]

Int64 = npt.NDArray[np.int64]

# An operation that starts this many tolerances after another has ended may have waited for it.
_NEAR = 4
# A dependency explains the start of its operation in one of twenty occurrences at least.
_EXPLAINS = 0.05


def dependencies(ops: pd.DataFrame, stage: dict[int, int], tolerance: int) -> tuple[Int64, Int64]:
    """(before, after): rows of operations, where `after` waited for `before` to end on the same rank.

    Operations of a lane run in order. Between lanes: ranks of one stage with the same number of operations on
    each lane of a step do the same, so the n-th operation of a lane occurs in each of these steps and ranks.
    The last operation of another lane that has ended, up to the tolerance, whenever the n-th starts, is a
    candidate: time contradicts it nowhere. It is taken if it is the latest of all and just ended in one of
    twenty occurrences, or if nothing else explains the start.

    Args:
        tolerance: ns by which an end may lie behind the start that waited for it.
    """
    size = ops.groupby(["rank", "step", "lane"]).size().unstack(fill_value=0)  # noqa: PD010 - one value each
    stages = np.array([stage[rank] for rank in size.index.get_level_values("rank")])
    alike = pd.factorize(pd.Series(map(tuple, np.column_stack([stages, size.to_numpy()]).tolist())))[0]
    occurrence = pd.Series(alike, size.index)
    of_row = occurrence.loc[pd.MultiIndex.from_frame(ops[["rank", "step"]])].to_numpy()
    start, end = ops["start_ns"].to_numpy(np.int64), ops["end_ns"].to_numpy(np.int64)
    found = [_lanes_in_order(ops)]
    for number in range(alike.max(initial=-1) + 1):
        checkpoint()
        part = ops[of_row == number]
        lanes = {
            lane: rows.index.to_numpy(np.int64).reshape(int((alike == number).sum()), -1)
            for lane, rows in part.groupby("lane")
        }
        found += _between_lanes(lanes, start, end, tolerance)
    edges = np.concatenate(found, axis=1)
    return edges[0], edges[1]


def _lanes_in_order(ops: pd.DataFrame) -> Int64:
    after = np.flatnonzero(ops["nth"].to_numpy() > 0)
    return np.stack([after - 1, after])


def _between_lanes(lanes: dict[int, Int64], start: Int64, end: Int64, tolerance: int) -> list[Int64]:
    """Edges between the lanes of ranks and steps that do the same: lane -> rows by occurrence and place."""
    done = {lane: np.maximum.accumulate(end[rows], axis=1) for lane, rows in lanes.items()}
    found = []
    for lane, rows in lanes.items():
        begins = start[rows]
        ended = {other: _ended_everywhere(done[other], begins, tolerance) for other in lanes if other != lane}
        news = {
            other: count > np.maximum.accumulate(np.append(0, count[:-1])) for other, count in ended.items()
        }
        some = np.flatnonzero(np.logical_or.reduce([*news.values(), np.zeros(rows.shape[1], np.bool_)]))
        for place in some.tolist():
            others = [other for other, new in news.items() if new[place]]
            before = np.stack([lanes[other][:, ended[other][place] - 1] for other in others])
            own = end[rows[:, place - 1]] if place else np.full(len(rows), np.iinfo(np.int64).min // 2)
            for at in _taken(own, end[before], begins[:, place], tolerance):
                found.append(np.stack([before[at], rows[:, place]]))
    return found


def _taken(own: Int64, ends: Int64, begins: Int64, tolerance: int) -> list[int]:
    """Which candidates (rows of `ends`, by occurrence) are dependencies of an operation that begins then."""
    near = _NEAR * tolerance
    latest = np.maximum(own, ends.max(axis=0))
    explains = (ends >= latest - tolerance) & (begins - ends <= near)
    taken = np.flatnonzero(explains.mean(axis=1) >= _EXPLAINS).tolist()
    known = np.maximum(own, ends[taken].max(axis=0)) if taken else own
    unexplained = float(np.median(begins - known))
    if unexplained > near:
        gaps = np.median(begins - ends, axis=1)
        best = int(gaps.argmin())
        if best not in taken and gaps[best] < unexplained - near:
            taken.append(best)
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
