"""The steps of a critical path as segments: what each was spent on, and what to call it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.critical_path.chain import NO_THREAD, Steps, main_thread
from hta_widgets.analysis.critical_path.host_time import HostTime, handed_over, host_time, pieces_of
from hta_widgets.analysis.replay import kinds
from hta_widgets.analysis.replay.delays import BACK_TO_BACK
from hta_widgets.analysis.replay.device_events import device_rows
from hta_widgets.arrays import Bool, Int64
from hta_widgets.trace.ordering import among
from hta_widgets.trace.rank_trace import RankTrace

KINDS = ("operator", "host", "sync", "kernel", "launch_delay", "kernel_kernel", "dependency")
OPERATOR, HOST, SYNC, KERNEL, LAUNCH_DELAY, KERNEL_KERNEL, DEPENDENCY = range(len(KINDS))

_OF_THREAD = -1
_UNTIL_CUT = {kinds.LAUNCH: _OF_THREAD, kinds.LAUNCH_FIRST: _OF_THREAD, kinds.HANDOFF: _OF_THREAD}
_FROM_CUT = {
    kinds.ORIGIN: _OF_THREAD,
    kinds.HOST: _OF_THREAD,
    kinds.CALL: _OF_THREAD,
    kinds.WAITING_CALL: _OF_THREAD,
    kinds.HANDOFF: _OF_THREAD,
    kinds.LAUNCH: LAUNCH_DELAY,
    kinds.LAUNCH_FIRST: LAUNCH_DELAY,
    kinds.STREAM: KERNEL_KERNEL,
    kinds.ORPHAN: _OF_THREAD,
    kinds.WAIT: DEPENDENCY,
    kinds.COLLECTIVE: DEPENDENCY,
    kinds.LATE: DEPENDENCY,
    kinds.DEVICE: KERNEL,
    kinds.SYNC: SYNC,
    kinds.COPY: SYNC,
    kinds.QUEUE: SYNC,
}
"""What a step is after it is cut (see `_cuts`). Most are not, and are this from their start."""


class Segments(NamedTuple):
    """Segments by time. Attributes (of each):
    start, end: int64 ns, not empty. kind: int64 index into KINDS.
    row: int64 row of the event, -1 for none. thread: int64 thread number, NO_THREAD on the device.
    inferred: bool, no event records what was waited for.
    """

    start: Int64
    end: Int64
    kind: Int64
    row: Int64
    thread: Int64
    inferred: Bool


def segments_of(rank_trace: RankTrace, steps: Steps) -> Segments:
    """The segments of a rank's steps: device work, delays and waits as they are, host time by its calls."""
    host = host_time(rank_trace)
    parts, taken_over = _parts(rank_trace, host, steps)
    spans = np.flatnonzero(parts.kind == _OF_THREAD)
    span, start, row, works = pieces_of(host, parts.thread[spans], parts.start[spans], parts.end[spans])
    count = np.ones(len(parts.kind), np.int64)
    count[spans] = np.bincount(span, minlength=len(spans))
    # Parts are in the order of time, and so are the pieces of each.
    found = some_of(parts, np.repeat(np.arange(len(count)), count))
    on_host = np.flatnonzero(found.kind == _OF_THREAD)
    # That the thread went on is inferred, not what it did then.
    recorded = works | (start > found.start[on_host])
    found.inferred[on_host] &= ~(taken_over[spans][span] & recorded)
    found.kind[on_host], found.row[on_host] = np.where(works, OPERATOR, HOST), row
    found.start[on_host] = start
    later = on_host[1:][span[1:] == span[:-1]]
    found.end[later - 1] = found.start[later]
    return found


def _parts(rank_trace: RankTrace, host: HostTime, steps: Steps) -> tuple[Segments, Bool]:
    """What each step is until and from where it is cut, by time, and which of it a thread took over."""
    cut = _cuts(rank_trace, host, steps)
    until_cut, from_cut = np.full(len(kinds.KINDS), KERNEL_KERNEL), np.zeros(len(kinds.KINDS), np.int64)
    until_cut[list(_UNTIL_CUT)] = list(_UNTIL_CUT.values())
    from_cut[list(_FROM_CUT)] = list(_FROM_CUT.values())
    # Where nothing tells why work began, and nothing else ran, the host had not launched it yet.
    presumed = among(steps.kind, (kinds.ORIGIN, kinds.ORPHAN)) & (steps.thread == NO_THREAD)
    thread = np.where(presumed, main_thread(rank_trace), steps.thread)
    start, end = np.stack([steps.start, cut], axis=1).ravel(), np.stack([cut, steps.end], axis=1).ravel()
    solid = np.flatnonzero(start < end)
    step, from_there = solid // 2, solid % 2 == 1
    kind = steps.kind[step]
    parts = Segments(
        start=start[solid],
        end=end[solid],
        kind=np.where(from_there, from_cut[kind], until_cut[kind]),
        row=steps.row[step],
        thread=np.where(from_there, thread[step], steps.giver[step]),
        inferred=np.where(from_there, (steps.inferred | presumed)[step], kind == kinds.ORPHAN),
    )
    return parts, from_there & (kind == kinds.HANDOFF)


def some_of(of: Segments, at: Int64) -> Segments:
    """The segments at these places."""
    return Segments(of.start[at], of.end[at], of.kind[at], of.row[at], of.thread[at], of.inferred[at])


def _cuts(rank_trace: RankTrace, host: HostTime, steps: Steps) -> Int64:
    """Where a step has two parts: when a launch was handed over to the device, or a thread let another go on.

    A gap before work of which no launch is recorded has one, or the other if the device mostly idled.
    """
    cut = steps.start.copy()
    launches = np.flatnonzero(among(steps.kind, (kinds.LAUNCH, kinds.LAUNCH_FIRST)))
    cut[launches] = rank_trace.end[rank_trace.launch[steps.row[launches]]]
    turns = np.flatnonzero(steps.kind == kinds.HANDOFF)
    givers, takers = steps.giver[turns], steps.thread[turns]
    for giver, taker in sorted(set(zip(givers.tolist(), takers.tolist(), strict=True))):
        mine = turns[(givers == giver) & (takers == taker)]
        cut[mine] = handed_over(host, giver, taker, steps.start[mine], steps.end[mine])
    orphans = np.flatnonzero(steps.kind == kinds.ORPHAN)
    if len(orphans):
        work = device_rows(rank_trace)
        busy = Intervals.union(rank_trace.start[work], rank_trace.end[work])
        gaps = np.stack([steps.start[orphans], steps.end[orphans]], axis=1)
        length = gaps[:, 1] - gaps[:, 0]
        idle = length - busy.within_each(gaps)
        cut[orphans] = np.where((idle > BACK_TO_BACK) & (2 * idle > length), gaps[:, 0], gaps[:, 1])
    return np.clip(cut, steps.start, steps.end)
