"""The operations of all ranks as one graph that can be replayed with other durations.

An operation starts when its predecessors have ended. Where ranks meet (a collective, a send and its receive),
all members start to transfer when the last one could start, and each then takes its own transfer. So a
meeting is a node of its own: it takes no time, follows the predecessors of all members, and precedes the
members.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hta_widgets.arrays import Int32, Int64
from hta_widgets.jit import kernel

_LANES = 8
"""Replays in one walk: they share the reading of the graph."""


@dataclass(frozen=True, eq=False)
class Network:
    """A graph of n operations and their meetings, in an order that no duration changes."""

    # int32, the operation of each place of the order, or -1 for a meeting. The steps follow one another, and
    # within each causes come first.
    operation: Int32
    # the predecessors of place p are the places source[first[p]:first[p + 1]]
    first: Int64
    source: Int32
    # int64[steps + 1], the places of step s are starts[s] to starts[s + 1] - 1. Each step is replayed alone,
    # from 0.
    starts: Int64
    # operations, and those of the same rank that wait for them: without meetings
    before: Int64
    after: Int64
    meeting: Int64  # int64[n], of each operation, or -1
    start: Int64  # int64[n] ns, when each was measured to begin
    step: Int32  # int32[n], step of each operation, from 0
    # meetings that could not be complete, since ranks disagree on the order. They begin without waiting for
    # the members that could not come.
    forced: int
    unreached: int  # operations that wait for themselves

    @property
    def steps(self) -> int:
        """Number of steps."""
        return len(self.starts) - 1

    def ends(self, time: Int64) -> Int64:
        """When each operation ends if it takes `time` (int64[n] ns), from the begin of its step."""
        return _ends(self.operation, self.first, self.source, time)

    def with_edges(self, before: Int64, after: Int64) -> Network:
        """The same with more of what waits for what."""
        if not len(before):
            return self
        sources, targets = np.append(self.before, before), np.append(self.after, after)
        return network(sources, targets, self.meeting, self.start, self.step.astype(np.int64))

    def ready(self, ends: Int64) -> Int64:
        """When each operation can begin on its own rank: when all that it follows there has ended."""
        ready = np.zeros(len(self.step), np.int64)
        np.maximum.at(ready, self.after, ends[self.before])
        return ready

    def step_times(self, time: Int64) -> Int64:
        """How long each step takes, int64[steps] ns."""
        nobody = np.zeros(len(time), np.int64)
        return self.with_other(time, time, nobody, nobody[:1])[0]

    def with_other(self, time: Int64, other: Int64, label: Int64, chosen: Int64) -> Int64:
        """Step times, int64[len(chosen), steps], if the operations of one label take `other` instead."""
        found = np.zeros((len(chosen), self.steps), np.int64)
        graph = (self.operation, self.first, self.source, self.starts)
        labels = label.astype(np.int32)
        longest = int(np.diff(self.starts).max(initial=0))
        for at in range(0, len(chosen), _LANES):
            _step_times(
                *graph, longest, time, other, labels, chosen[at : at + _LANES].astype(np.int32), found[at:]
            )
        return found


def network(before: Int64, after: Int64, meeting: Int64, start: Int64, step: Int64) -> Network:
    """Join operations at their meetings.

    Args:
        before, after: int64[edges], operation `after` starts when `before` has ended.
        meeting: int64[n], meeting of each operation, from 0, or -1.
        start: int64[n] ns, measured. Only decides which meeting begins first where ranks disagree on the
            order, so that none of them can.
        step: int64[n], from 0. What meets, or waits for each other, is of one step.
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
    of_step = np.zeros(n + meetings, np.int64)
    of_step[:n], of_step[n + meeting[member]] = step, step[member]
    order = order[np.argsort(of_step[order], kind="stable")]
    steps = int(step.max(initial=-1)) + 1
    placed, places = _placed(order, first, into)
    return Network(
        operation=np.where(order < n, order, -1).astype(np.int32),
        first=placed,
        source=places,
        starts=np.searchsorted(of_step[order], np.arange(steps + 1)),
        before=before,
        after=after,
        meeting=meeting,
        start=start,
        step=step.astype(np.int32),
        forced=int(forced),
        unreached=n + meetings - len(order),
    )


@kernel
def _grouped(key: Int64, size: int, value: Int64) -> tuple[Int64, Int32]:
    """Values by key, in their order: those of key k are out[first[k]:first[k + 1]]."""
    first = np.zeros(size + 1, np.int64)
    for k in key:
        first[k + 1] += 1
    for k in range(size):
        first[k + 1] += first[k]
    filled, out = first[:-1].copy(), np.empty(len(value), np.int32)
    for i in range(len(key)):
        out[filled[key[i]]] = value[i]
        filled[key[i]] += 1
    return first, out


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
def _placed(order: Int32, first: Int64, source: Int32) -> tuple[Int64, Int32]:
    """Predecessors by place in the order: what lies together is read together.

    Those that come later, since ranks disagree, or never are left out: nothing waits for them.
    """
    place = np.full(len(first) - 1, -1, np.int32)
    begin, into, count = np.zeros(len(order) + 1, np.int64), np.empty(len(source), np.int32), 0
    for at in range(len(order)):
        node = order[at]
        place[node] = at
        for e in range(first[node], first[node + 1]):
            if place[source[e]] >= 0:
                into[count] = place[source[e]]
                count += 1
        begin[at + 1] = count
    return begin, into[:count].copy()


@kernel
def _ends(operation: Int32, first: Int64, source: Int32, time: Int64) -> Int64:
    """When each operation ends."""
    end, out = np.zeros(len(operation), np.int64), np.zeros(len(time), np.int64)
    for at in range(len(operation)):
        latest = 0
        for e in range(first[at], first[at + 1]):
            latest = max(latest, end[source[e]])
        node = operation[at]
        if node >= 0:
            latest += time[node]
            out[node] = latest
        end[at] = latest
    return out


@kernel
def _step_times(
    operation: Int32,
    first: Int64,
    source: Int32,
    starts: Int64,
    longest: int,
    time: Int64,
    other: Int64,
    label: Int32,
    chosen: Int32,
    out: Int64,
) -> None:
    """How long each step takes in each of len(chosen) replays, into out[replay, step].

    In replay k, operations of label chosen[k] take `other`. A step at a time, so that its ends stay at hand;
    the longest step has `longest` places.
    """
    lanes, steps = len(chosen), len(starts) - 1
    end = np.zeros((longest, lanes), np.int64)
    latest = np.empty(lanes, np.int64)
    for s in range(steps):
        begin = starts[s]
        for at in range(begin, starts[s + 1]):
            for k in range(lanes):
                latest[k] = 0
            for e in range(first[at], first[at + 1]):
                before = source[e] - begin
                for k in range(lanes):
                    latest[k] = max(latest[k], end[before, k])
            node = operation[at]
            if node >= 0:
                for k in range(lanes):
                    latest[k] += other[node] if label[node] == chosen[k] else time[node]
                    out[k, s] = max(out[k, s], latest[k])
            for k in range(lanes):
                end[at - begin, k] = latest[k]
