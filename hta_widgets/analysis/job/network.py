"""The operations of all ranks as one graph that can be replayed with other durations.

An operation starts when its predecessors have ended. Where ranks meet (a collective, a send and its receive),
all members start to transfer when the last one could start, and each then takes its own transfer. So a
meeting is a node of its own: it takes no time, follows the predecessors of all members, and precedes the
members.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hta_widgets.jit import kernel

Int64 = npt.NDArray[np.int64]
Int32 = npt.NDArray[np.int32]

__all__ = ["Network", "network"]

_LANES = 8
"""Replays in one walk: they share the reading of the graph."""


@dataclass(frozen=True, eq=False)
class Network:
    """A graph of n operations and their meetings, in an order that no duration changes.

    Attributes:
        order: int32, nodes with causes first; operations are 0 to n - 1, meetings follow.
        first, source: the predecessors of node v are source[first[v]:first[v + 1]].
        before, after: operations, and those of the same rank that wait for them: without meetings.
        step: int32[n], step of each operation, from 0.
        steps: number of steps. Each is replayed alone, from 0.
        forced: meetings that could not be complete, since ranks disagree on the order. They begin without
            waiting for the members that could not come.
        unreached: operations that wait for themselves.
    """

    order: Int32
    first: Int64
    source: Int32
    before: Int64
    after: Int64
    step: Int32
    steps: int
    forced: int
    unreached: int

    def ends(self, time: Int64) -> Int64:
        """When each operation ends if it takes `time` (int64[n] ns), from the begin of its step."""
        nobody = np.zeros(len(self.step), np.int64)
        return self._walk(time, time, nobody, np.array([-1]))[: len(self.step), 0]

    def ready(self, ends: Int64) -> Int64:
        """When each operation can begin on its own rank: when all that it follows there has ended."""
        ready = np.zeros(len(self.step), np.int64)
        np.maximum.at(ready, self.after, ends[self.before])
        return ready

    def step_times(self, time: Int64) -> Int64:
        """How long each step takes, int64[steps] ns."""
        return self._step_times(self.ends(time)[:, None])[:, 0]

    def with_other(self, time: Int64, other: Int64, label: Int64, chosen: Int64) -> Int64:
        """Step times, int64[len(chosen), steps], if the operations of one label take `other` instead."""
        found = []
        for at in range(0, len(chosen), _LANES):
            ends = self._walk(time, other, label, chosen[at : at + _LANES])
            found.append(self._step_times(ends[: len(self.step)]).T)
        return np.concatenate(found) if found else np.empty((0, self.steps), np.int64)

    def _walk(self, time: Int64, other: Int64, label: Int64, chosen: Int64) -> Int64:
        return _walk(self.order, self.first, self.source, time, other, label, chosen)

    def _step_times(self, ends: Int64) -> Int64:
        return _latest(ends, self.step, self.steps)


def network(before: Int64, after: Int64, meeting: Int64, start: Int64, step: Int64) -> Network:
    """Join operations at their meetings.

    Args:
        before, after: int64[edges], operation `after` starts when `before` has ended.
        meeting: int64[n], meeting of each operation, from 0, or -1.
        start: int64[n] ns, measured. Only decides which meeting begins first where ranks disagree on the
            order, so that none of them can.
        step: int64[n], from 0.
    """
    n, meetings = len(meeting), int(meeting.max(initial=-1)) + 1
    member = np.flatnonzero(meeting >= 0)
    node = np.where(meeting >= 0, n + meeting, np.arange(n))
    source = np.concatenate([before, n + meeting[member]])
    target = np.concatenate([node[after], member])
    first, into = _grouped(target, n + meetings, source)
    leaves, follower = _grouped(source, n + meetings, target)
    earliest = np.full(meetings, np.iinfo(np.int64).max)
    np.minimum.at(earliest, meeting[member], start[member])
    by_start = (n + np.argsort(earliest, kind="stable")).astype(np.int32)
    order, forced = _causes_first(leaves, follower, np.diff(first), by_start)
    return Network(
        order=order,
        first=first,
        source=into,
        before=before,
        after=after,
        step=step.astype(np.int32),
        steps=int(step.max(initial=-1)) + 1,
        forced=int(forced),
        unreached=n + meetings - len(order),
    )


def _grouped(key: Int64, size: int, value: Int64) -> tuple[Int64, Int32]:
    """Values by key: those of key k are out[first[k]:first[k + 1]]."""
    first = np.zeros(size + 1, np.int64)
    np.cumsum(np.bincount(key, minlength=size), out=first[1:])
    return first, value[np.argsort(key, kind="stable")].astype(np.int32)


@kernel
def _causes_first(leaves: Int64, follower: Int32, waits_for: Int64, meetings: Int32) -> tuple[Int32, int]:
    """Nodes with causes first. Where nothing is ready, the first of `meetings` that is left begins anyway."""
    left, n = waits_for.copy(), len(waits_for)
    order, done = np.empty(n, np.int32), np.zeros(n, np.bool_)
    ready, top, count, forced, at = np.empty(n, np.int32), 0, 0, 0, 0
    for node in range(n - 1, -1, -1):
        if left[node] == 0:
            ready[top] = node
            top += 1
    while True:
        while top:
            top -= 1
            node = ready[top]
            order[count], done[node] = node, True
            count += 1
            for e in range(leaves[node], leaves[node + 1]):
                after = follower[e]
                left[after] -= 1
                if left[after] == 0 and not done[after]:
                    ready[top] = after
                    top += 1
        while at < len(meetings) and done[meetings[at]]:
            at += 1
        if at == len(meetings):
            return order[:count].copy(), forced
        forced += 1
        ready[0], top = meetings[at], 1


@kernel
def _walk(
    order: Int32, first: Int64, source: Int32, time: Int64, other: Int64, label: Int64, chosen: Int64
) -> Int64:
    """When each node ends in each of len(chosen) replays; in replay k, label chosen[k] takes `other`."""
    lanes, n = len(chosen), len(time)
    end = np.zeros((len(first) - 1, lanes), np.int64)
    latest = np.empty(lanes, np.int64)
    for node in order:
        latest[:] = 0
        for e in range(first[node], first[node + 1]):
            before = source[e]
            for k in range(lanes):
                if end[before, k] > latest[k]:
                    latest[k] = end[before, k]
        for k in range(lanes):
            if node < n:
                latest[k] += other[node] if label[node] == chosen[k] else time[node]
            end[node, k] = latest[k]
    return end


@kernel
def _latest(ends: Int64, step: Int32, steps: int) -> Int64:
    """The last end of each step in each replay."""
    out = np.zeros((steps, ends.shape[1]), np.int64)
    for i in range(len(step)):
        for k in range(ends.shape[1]):
            if ends[i, k] > out[step[i], k]:
                out[step[i], k] = ends[i, k]
    return out
