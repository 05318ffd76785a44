"""Records that carry no time, and where their queue says that they ran.

An overflowing buffer leaves zeros, a clock that failed leaves a time ages away. A queue is first in, first
out: the record ran after its predecessor and before its successor, and like calls say for how long.
"""

from __future__ import annotations

import numpy as np

from hta_widgets.arrays import Bool, Int64
from hta_widgets.trace.reader.schema import NULL
from hta_widgets.trace.records.marks import Mark
from hta_widgets.trace.records.peers import ENOUGH, Peers
from hta_widgets.trace.records.work import Work, each_queue

# Silences that no recording holds: the longest of a real one is 1.65 s. Of the host an hour, for a program
# may rest while it is recorded.
_SILENCE_NS = 60 * 10**9
_HOST_SILENCE_NS = 3600 * 10**9
_BIN = 34  # 17 s: a silence leaves a whole bin empty
# Half the range of int64: no clock of one recording runs so long.
_ABSURD_NS = 1 << 62
# Records beyond a silence are no part of the recording if they are at most this share of it.
_FEW = 0.01
# A start of 0 is no time where all others lie so much later.
_ZERO_NS = 100_000_000
# A kernel of 0 in a file of whole microseconds takes less than one.
_MANY_NS = 5_000
# How long the work of a launch takes to begin on an idle device.
_LAUNCH_NS = 4_000


def far_away(start: Int64, is_device: Bool, is_anchor: Bool) -> Bool:
    """Which of the times of a recording are no part of it: 0 where all else is late, or ages from the rest.

    Args:
        start: ns.
        is_device: work of a device, which no silence of a minute parts from its recording.
        is_anchor: annotations, which are no mistake wherever they lie.
    """
    found = np.zeros(len(start), np.bool_)
    if not len(start):
        return found
    if (zero := start == 0).any():
        later = start[start > 0]
        found |= zero & bool(len(later) and int(later.min()) > _ZERO_NS)
    if not found.any() and not _may_be_silent(start):
        return found
    rows = np.flatnonzero(~found)
    rows = rows[np.argsort(start[rows], kind="stable")]
    times = start[rows].view(np.uint64)
    silence = times[1:] - times[:-1]  # modulo 2**64, hence right whatever the distance
    few = max(1, int(_FEW * len(rows)))
    for at in np.flatnonzero(silence > _SILENCE_NS).tolist():
        side = rows[: at + 1] if at + 1 <= len(rows) - at - 1 else rows[at + 1 :]
        if silence[at] > _ABSURD_NS:
            found[side] = True
        elif len(side) <= few and not is_anchor[side].any():
            found[side] |= is_device[side] | bool(silence[at] > _HOST_SILENCE_NS)
    return found


def _may_be_silent(start: Int64) -> bool:
    """Whether the times may leave a silence of `_SILENCE_NS`; without sorting them."""
    first, last = int(start.min()), int(start.max())
    bins = (last - first >> _BIN) + 1
    if last - first <= _SILENCE_NS:
        return False
    if bins > len(start):
        return True
    return not np.bincount((start - first) >> _BIN, minlength=bins).all()


def mark_untimed(work: Work) -> None:
    """Mark the records without a time: none at all, an absurd one, or a kernel that took none."""
    no_time = ~work.is_timed | _instant(work)
    work.mark[no_time] = Mark.NO_TIME


def _instant(work: Work) -> Bool:
    """Kernels that took no time at all.

    Files of whole microseconds hold kernels of 0, but not only such, nor any whose peers take many.
    """
    instant: Bool = (work.dur == 0) & work.is_kernel
    if not instant.any() or work.in_nanoseconds or instant.sum() == work.is_kernel.sum() > 1:
        return instant
    rows = np.flatnonzero(instant)
    instant[rows] = Peers(work, work.is_timed & ~instant).quantile(rows, 0.5) >= _MANY_NS
    return instant


def place_untimed(work: Work) -> None:
    """Estimate when records without a time ran, from their neighbours on the queue and their peers."""
    unknown = (work.mark == Mark.NO_TIME) | ((work.mark == Mark.EARLY_START) & (work.start < work.called))
    if not unknown.any():
        return
    work.excluded[unknown] = True
    rows = np.flatnonzero(unknown & (work.call >= 0))
    peers = Peers(work, work.is_sound)
    rows = rows[peers.count(rows) >= ENOUGH]
    work.error[rows] = peers.error(rows)
    took = dict(zip(rows.tolist(), peers.quantile(rows, 0.5).tolist(), strict=True))
    order = work.by_call
    queue = work.queue[order]
    is_known = work.is_sound[order]
    following = _next_known(is_known)
    free = _free_before(work)
    start, dur, called = work.start, work.dur, work.called
    for place in np.flatnonzero(~is_known).tolist():
        at, following_place = int(order[place]), int(following[place])
        if at not in took or following_place < 0 or queue[following_place] != queue[place]:
            continue
        begin = max(int(called[at]) + _LAUNCH_NS, int(free[order[following_place]]))
        if place and queue[place - 1] == queue[place]:
            before = int(order[place - 1])
            if work.excluded[before]:
                continue
            begin = max(begin, int(start[before] + dur[before]))
        room = int(start[order[following_place]]) - begin
        if room < 0:
            continue
        start[at], dur[at], work.excluded[at] = begin, min(took[at], room), False


def _free_before(work: Work) -> Int64:
    """When all sound work that its queue ran before each sound record had ended, also work without a call."""
    at = work.by_queue[work.is_sound[work.by_queue]]
    free = np.full(len(work.rows), NULL, np.int64)
    queue, end = work.queue[at], work.start[at] + work.dur[at]
    for own in each_queue(queue):
        free[at[own][1:]] = np.maximum.accumulate(end[own][:-1])
    return free


def _next_known(is_known: Bool) -> Int64:
    """The place of the next known one after each, -1 for none."""
    places = np.where(is_known, np.arange(len(is_known)), len(is_known))
    following = np.minimum.accumulate(places[::-1])[::-1]
    return np.where(following < len(is_known), following, -1)
