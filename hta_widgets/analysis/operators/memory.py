"""What the calls of a rank allocate and free, on its host and on its devices."""

from __future__ import annotations

import numpy as np

from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.memory.events import changes_of, innermost
from hta_widgets.analysis.operators.calls import module_calls, operator_calls
from hta_widgets.arrays import Int64
from hta_widgets.jit import kernel
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.links import windows_of
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.scope import Scope

COLUMNS = ("host_memory_self", "host_memory_total", "device_memory_self", "device_memory_total")
"""The columns of `memory_of`, without their unit."""


class _Owned:
    """The memory events of a rank: their time, bytes (negative when freed), place and operator (-1: none)."""

    def __init__(self, rank_trace: RankTrace, offset_ns: int) -> None:
        changes = changes_of(rank_trace, offset_ns)
        self.time, self.change = changes.time, changes.change
        on_host = np.array([place == "cpu" for place in changes.places] or [True], np.bool_)
        self.on_device = ~on_host[changes.place]
        row = innermost(rank_trace, EventClass.HOST_OP, changes, np.arange(len(changes.time)))
        around = operator_calls(rank_trace).around
        self.operator: Int64 = np.where(row >= 0, np.append(around, -1)[row], -1)


_owned = memoize_per_rank()(_Owned)


def memory_of(
    rank_trace: RankTrace,
    offset_ns: int,
    parent: Int64,
    group: Int64,
    groups: int,
    scope: Scope,
    by_module: bool,
) -> Int64 | None:
    """int64[groups + 1, len(COLUMNS)] bytes allocated less bytes freed; the last group is outside all calls.

    Args:
        rank_trace, offset_ns: the rank, and how far before the axis' zero its file counts from.
        parent, group, groups: the calls' callers and groups, as for `Totals`.
        scope: events in its time on the host.
        by_module: the calls are those of modules.

    Returns:
        None without memory events.
    """
    owned = _owned(rank_trace, offset_ns)
    if not len(owned.time):
        return None
    owner = owned.operator
    if by_module:
        owner = np.where(owner >= 0, np.append(module_calls(rank_trace)[1], -1)[owner], -1)
    inside = np.ones(len(owner), np.bool_)
    if scope.iterations is not None or scope.window_ns is not None:
        windows = rank_trace.windows(scope, "host")
        inside = windows_of(owned.time, windows[:, 0], windows[:, 1]) >= 0
    table = np.zeros((groups + 1, len(COLUMNS)), np.int64)
    _sum_changes(
        parent,
        group,
        owner[inside],
        owned.change[inside],
        2 * owned.on_device[inside].astype(np.int64),
        table,
    )
    return table


@kernel
def _sum_changes(
    parent: Int64, group: Int64, owner: Int64, change: Int64, first: Int64, table: Int64
) -> None:
    seen = np.full(len(table), -1, np.int64)
    for i in range(len(owner)):
        call = owner[i]
        own = group[call] if call >= 0 else len(table) - 1
        table[own, first[i]] += change[i]
        if call < 0:
            table[own, first[i] + 1] += change[i]
        while call >= 0:
            of = group[call]
            if seen[of] != i:
                seen[of] = i
                table[of, first[i] + 1] += change[i]
            call = parent[call]
