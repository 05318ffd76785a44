"""The steps of a critical path as segments: what each was spent on, and what to call it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.critical_path.chain import NO_THREAD, Steps, main_thread
from hta_widgets.analysis.critical_path.host_time import HostTime, handed_over, host_time, pieces_of
from hta_widgets.analysis.replay import kinds
from hta_widgets.analysis.replay.delays import BACK_TO_BACK
from hta_widgets.analysis.replay.device_events import device_rows

if TYPE_CHECKING:
    from hta_widgets.trace.rank_trace import RankTrace

Int64 = npt.NDArray[np.int64]
Bool = npt.NDArray[np.bool_]

__all__ = [
    "DEPENDENCY", "HOST", "KERNEL", "KERNEL_KERNEL", "KINDS", "LAUNCH_DELAY", "OPERATOR", "SYNC", "Segments",
    "segments_of", "some_of",
]  # fmt: skip

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
    host, main, n = host_time(rank_trace), main_thread(rank_trace), len(steps.kind)
    cut = _cuts(rank_trace, host, steps)
    until_cut, from_cut = np.full(len(kinds.KINDS), KERNEL_KERNEL), np.zeros(len(kinds.KINDS), np.int64)
    until_cut[list(_UNTIL_CUT)] = list(_UNTIL_CUT.values())
    from_cut[list(_FROM_CUT)] = list(_FROM_CUT.values())
    # Where nothing tells why work began, and nothing else ran, the host had not launched it yet.
    presumed = np.isin(steps.kind, (kinds.ORIGIN, kinds.ORPHAN)) & (steps.thread == NO_THREAD)
    parts = Segments(
        start=np.concatenate([steps.start, cut]),
        end=np.concatenate([cut, steps.end]),
        kind=np.concatenate([until_cut[steps.kind], from_cut[steps.kind]]),
        row=np.tile(steps.row, 2),
        thread=np.concatenate([steps.giver, np.where(presumed, main, steps.thread)]),
        inferred=np.concatenate([steps.kind == kinds.ORPHAN, steps.inferred | presumed]),
    )
    taken_over = np.concatenate([np.zeros(n, np.bool_), steps.kind == kinds.HANDOFF])
    found = [some_of(parts, np.flatnonzero(parts.kind != _OF_THREAD))]
    for thread in np.unique(parts.thread[parts.kind == _OF_THREAD]).tolist():
        spans = np.flatnonzero(
            (parts.kind == _OF_THREAD) & (parts.thread == thread) & (parts.start < parts.end)
        )
        span, start, end, row, works = pieces_of(host, thread, parts.start[spans], parts.end[spans])
        of = spans[span]
        # That the thread went on is inferred, not what it did then.
        inferred = parts.inferred[of] & (~taken_over[of] | ((start == parts.start[of]) & ~works))
        kind = np.where(works, OPERATOR, HOST)
        found.append(Segments(start, end, kind, row, np.full(len(row), thread), inferred))
    together = Segments(*(np.concatenate(column) for column in zip(*found, strict=True)))
    lasts = np.flatnonzero(together.start < together.end)
    return some_of(together, lasts[np.argsort(together.start[lasts], kind="stable")])


def some_of(of: Segments, at: Int64) -> Segments:
    """The segments at these places."""
    return Segments(of.start[at], of.end[at], of.kind[at], of.row[at], of.thread[at], of.inferred[at])


def _cuts(rank_trace: RankTrace, host: HostTime, steps: Steps) -> Int64:
    """Where a step has two parts: when a launch was handed over to the device, or a thread let another go on.

    A gap before work of which no launch is recorded has one, or the other if the device mostly idled.
    """
    cut = steps.start.copy()
    launches = np.flatnonzero(np.isin(steps.kind, (kinds.LAUNCH, kinds.LAUNCH_FIRST)))
    cut[launches] = rank_trace.end[rank_trace.launch[steps.row[launches]]]
    turns = np.flatnonzero(steps.kind == kinds.HANDOFF)
    pairs = np.stack([steps.giver[turns], steps.thread[turns]], axis=1)
    for giver, taker in np.unique(pairs, axis=0).tolist():
        mine = turns[(pairs[:, 0] == giver) & (pairs[:, 1] == taker)]
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
