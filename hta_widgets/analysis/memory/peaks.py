"""When a device's allocated memory was highest, and the blocks that were live then."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hta_widgets.analysis.memory.events import Changes, changes_of
from hta_widgets.arrays import Int64
from hta_widgets.engine import checkpoint
from hta_widgets.errors import MissingDataError
from hta_widgets.formatting import none_of
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.links import windows_of
from hta_widgets.trace.model import Trace
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.reader.schema import NULL
from hta_widgets.trace.scope import Scope


@dataclass(frozen=True, eq=False)
class Peak:
    """The first highest level of a device within a scope."""

    time_ns: int  # on the job's axis
    bytes: int  # allocated then
    reserved: int | None  # bytes that the allocator held then, None where not recorded
    live: Int64  # positions in the rank's `Changes` of the allocations that were not freed

    def unseen(self, changes: Changes) -> int:
        """The bytes whose allocation was not recorded."""
        return self.bytes - int(changes.change[self.live].sum())


def recorded(trace: Trace, scope: Scope) -> list[tuple[int, RankTrace, Changes]]:
    """The selected ranks with memory events.

    Raises:
        MissingDataError: none of them has any.
    """
    ranks = trace.ranks_of(scope)
    found = []
    for rank in ranks:
        checkpoint()
        rank_trace = trace.rank(rank)
        changes = changes_of(rank_trace, trace.clock.offset_ns.get(rank, 0))
        if len(changes.event_id):
            found.append((rank, rank_trace, changes))
    if ranks and not found:
        raise MissingDataError(
            "memory events",
            "Record with torch.profiler.profile(profile_memory=True).",
            none_of(ranks),
        )
    return found


def inside(rank_trace: RankTrace, time: Int64, scope: Scope) -> Int64:
    """Positions of the times within the iterations or window of a scope; all if it has neither."""
    if scope.iterations is None and scope.window_ns is None:
        return np.arange(len(time))
    windows = rank_trace.windows(scope, "host")
    return np.flatnonzero(windows_of(time, windows[:, 0], windows[:, 1]) >= 0)


def levels_of(changes: Changes, place: int, begins: Int64) -> Int64:
    """What was allocated on a device when each of these moments came."""
    here = np.flatnonzero(changes.place == place)
    before = np.searchsorted(changes.time[here], begins, side="left") - 1
    first = int(changes.allocated[here[0]] - changes.change[here[0]])
    return np.where(before >= 0, changes.allocated[here[np.maximum(before, 0)]], first)


def peak_of(rank_trace: RankTrace, changes: Changes, place: int, scope: Scope) -> Peak | None:
    """The peak of a device (code into ``changes.places``); None if the scope has no moment of it."""
    here = np.flatnonzero(changes.place == place)
    time, level = changes.time[here], changes.allocated[here]
    candidates = inside(rank_trace, time, scope)
    moments, levels = time[candidates], level[candidates]
    if scope.iterations is not None or scope.window_ns is not None:
        # What a window begins with: the level after the last change before it.
        begins = rank_trace.windows(scope, "host")[:, 0]
        before = np.searchsorted(time, begins, side="left") - 1
        candidates = np.concatenate([before, candidates])
        moments = np.concatenate([begins, moments])
        levels = np.concatenate([levels_of(changes, place, begins), levels])
    if not len(levels):
        return None
    highest = np.flatnonzero(levels == levels.max())
    best = highest[np.lexsort((candidates[highest], moments[highest]))[0]]
    last = int(candidates[best])
    reserved = int(changes.reserved[here[max(last, 0)]])
    live = here[_live(changes.address[here], changes.change[here], last)]
    return Peak(int(moments[best]), int(levels[best]), None if reserved == NULL else reserved, live)


def call_at(rank_trace: RankTrace, time_ns: int) -> int | None:
    """The event_id of the innermost operator that is open at a time, on whatever thread; None for none."""
    around = (rank_trace.start <= time_ns) & (rank_trace.end >= time_ns)
    rows = np.flatnonzero(around & (rank_trace.event_class == EventClass.HOST_OP))
    return int(rank_trace.event_id[rows[rank_trace.start[rows].argmax()]]) if len(rows) else None


def _live(address: Int64, change: Int64, last: int) -> Int64:
    """Positions of the allocations up to position `last` whose address has no later event up to it."""
    position = np.arange(last + 1)
    order = np.lexsort((position, address[: last + 1]))
    final = np.ones(len(order), np.bool_)
    final[:-1] = np.diff(address[order]) != 0
    newest = order[final]
    return np.sort(newest[change[newest] > 0])
