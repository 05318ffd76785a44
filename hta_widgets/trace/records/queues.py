"""Ends that an in-order queue cannot have: after later work ended, or far into the next work.

Of 216,925 neighbours in real recordings 117 overlap: dependent launches (at most 3.7 us; 8.1 us before one of
cuDNN's on an H100), steps of the device's clock, and the lanes of one graph replay. None ends after its
successor ends. An impossible end is not cut at the successor's start, which is where a *waiting* successor
began: that makes the sum 5 times too long on real data. Like calls say how long it took.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hta_widgets.arrays import Bool, Int64
from hta_widgets.trace.records.marks import Mark
from hta_widgets.trace.records.peers import ENOUGH, Peers
from hta_widgets.trace.records.work import Work, each_queue

# Two roundings to whole microseconds; the ends of real queues never go back.
_TICK_NS = 2_000
# Overlaps that rounding, or two clocks of one device, make.
_FAINT_NS = 1_500
# Overlaps that dependent launches reach: 3.7 us on a B200.
_SHORT_NS = 5_000
# A successor that was launched so long before it began waited for this one.
_WAITED_NS = 50_000
# Dependent launches begin with Hopper.
_DEPENDENT_MAJOR = 9
# A record without peers is taken to fill half of its room, if that is less than this share of the recording.
_NEGLIGIBLE = 0.001


@dataclass(frozen=True)
class _Queued:
    """Timed records in order of their queues, and what follows each. Arrays are aligned."""

    at: Int64  # position in the work; start, end: ns
    start: Int64
    end: Int64
    # place of the first record of the next run; a run is one record, or those of one graph replay
    follow: Int64
    has: Bool  # there is a next run on the queue
    over: Int64  # ns that it reaches into the next run, -1 without one
    queue: Int64  # the number of the queue


def mark_impossible_ends(work: Work) -> None:
    """Mark records that end when their queue shows that they had not, and estimate how long they took."""
    queued = _queued(work)
    if queued is None or not (queued.over > _FAINT_NS).any():
        return
    late = queued.has & (queued.end > _least_later_end(queued) + _TICK_NS)
    ring = work.is_ring[queued.at]
    doubtful = np.flatnonzero(queued.has & ~late & (queued.over > _FAINT_NS) & ~ring)
    clean = np.zeros(len(work.rows), np.bool_)
    clean[queued.at[~late & (queued.over <= _FAINT_NS)]] = True
    peers = Peers(work, clean)
    overlaps = np.zeros(len(queued.at), np.bool_)
    if len(doubtful):
        wrong, next_is_wrong = _judged(work, queued, doubtful, peers)
        _start_again(work, queued, queued.follow[doubtful[next_is_wrong]], doubtful[next_is_wrong], peers)
        overlaps[doubtful[wrong]] = True
        late[queued.follow[doubtful[next_is_wrong]]] = False
    work.mark[queued.at[late]] = Mark.LATE_END
    work.mark[queued.at[overlaps & ~late]] = Mark.OVERLAP
    wrong_rows = np.flatnonzero((late | overlaps) & (work.mark[queued.at] != Mark.EARLY_START))
    _shorten(work, queued, wrong_rows, peers)


def _queued(work: Work) -> _Queued | None:
    at = work.by_queue[work.is_sound[work.by_queue]]
    if not len(at):
        return None
    queue, start, correlation = work.queue[at], work.start[at], work.correlation[at]
    same = queue[1:] == queue[:-1]
    joined = same & (correlation[1:] == correlation[:-1]) & (correlation[1:] > 0)
    head = np.flatnonzero(np.append(True, ~joined))
    run = np.cumsum(np.append(True, ~joined)) - 1
    follow = np.append(head[1:], 0)[run]
    has = np.append(queue[head[1:]] == queue[head[:-1]], False)[run]
    end = start + work.dur[at]
    over = np.where(has, end - start[follow], -1)
    return _Queued(at, start, end, follow, has, over, queue)


def _least_later_end(queued: _Queued) -> Int64:
    """The earliest end of all later runs of each one's queue."""
    least = np.empty(len(queued.end), np.int64)
    for own in each_queue(queued.queue):
        least[own] = np.minimum.accumulate(queued.end[own][::-1])[::-1]
    return least[queued.follow]


def _judged(work: Work, queued: _Queued, doubtful: Int64, peers: Peers) -> tuple[Bool, Bool]:
    """Of records that reach into the next one: which are too long, and of which the next starts too early."""
    own, following = queued.at[doubtful], queued.at[queued.follow[doubtful]]
    over = queued.over[doubtful]
    length = queued.end[doubtful] - queued.start[doubtful]
    known = peers.count(own) >= ENOUGH
    longest = peers.quantile(own, 1.0)
    dependent = _is_dependent(work, following)
    plain = (over > _SHORT_NS) & ~dependent
    next_length = work.dur[following]
    next_longer = (peers.count(following) >= ENOUGH) & (next_length > 1.2 * peers.quantile(following, 1.0))
    as_peers = known & (length <= np.maximum(1.5 * longest, longest + 5_000))
    next_is_wrong = plain & as_peers & next_longer
    # of a dependent launch, a kernel that only is of another shape is not longer by what it reaches over
    far_longer = known & (length > 2 * np.maximum(longest, 1_000))
    wrong = (plain & ~next_is_wrong) | (far_longer & (~dependent | (2 * over >= length - longest)))
    return wrong, next_is_wrong & ~wrong


def _is_dependent(work: Work, positions: Int64) -> Bool:
    """Work that a dependent launch may begin before its predecessor ends."""
    properties = work.table.metadata.get("deviceProperties")
    devices = [each for each in properties if isinstance(each, dict)] if isinstance(properties, list) else []
    majors = [each.get("computeMajor") for each in devices]
    if majors and not any(isinstance(major, int) and major >= _DEPENDENT_MAJOR for major in majors):
        return np.zeros(len(positions), np.bool_)
    return np.array(["LaunchKernelEx" in name for name in work.call_names(positions)], np.bool_)


def _start_again(work: Work, queued: _Queued, places: Int64, before: Int64, peers: Peers) -> None:
    """Give records that began too early a start after the end of the one before."""
    at = queued.at[places]
    room = np.maximum(0, queued.end[places] - queued.end[before])
    work.mark[at] = Mark.EARLY_START
    work.dur[at] = np.minimum(peers.quantile(at, 0.5), room)
    work.start[at] = queued.end[places] - work.dur[at]
    work.error[at] = peers.error(at)


def _shorten(work: Work, queued: _Queued, places: Int64, peers: Peers) -> None:
    """How long records with impossible ends took: as their peers did, at most the room before the next.

    The slower ones of the peers where the next waited for it.
    """
    if not len(places):
        return
    at, following = queued.at[places], queued.follow[places]
    room = queued.start[following] - queued.start[places]
    called = work.called[queued.at[following]]
    waited = (work.call[queued.at[following]] >= 0) & (queued.start[following] - called > _WAITED_NS)
    estimate = np.minimum(room, np.where(waited, peers.quantile(at, 0.9), peers.quantile(at, 0.5)))
    known = peers.count(at) >= ENOUGH
    whole = int(queued.start.max() - queued.start.min())
    small = room < _NEGLIGIBLE * whole
    work.dur[at] = np.where(known, estimate, room // 2)
    work.error[at] = np.where(known, peers.error(at), room // 2)
    work.excluded[at] = ~known & ~small
