"""Where the time of each rank's iterations goes: work, waiting for other ranks, transfer, copies, idling."""

from __future__ import annotations

import numpy as np
import pandas as pd

from hta_widgets.analysis.communication.stragglers import require_exchanges
from hta_widgets.analysis.communication.waits import arrived
from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.device_time.busy import busy_ranks
from hta_widgets.arrays import Int64
from hta_widgets.trace.model import Trace
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.scope import Scope

_NOTHING = np.empty(0, np.int64)
_NEVER = Intervals.union(_NOTHING, _NOTHING)

PARTS = ("compute_ns", "waiting_ns", "transferring_ns", "copying_ns", "idle_ns")


def job_iterations(trace: Trace, scope: Scope | None = None) -> pd.DataFrame:
    """How much of each iteration does each rank compute, wait for other ranks, transfer, copy, idle?

    As in `temporal_breakdown`, a moment counts as the first that applies: computing, communicating, moving
    memory, idle; communication is split further. A communication kernel waits until the last rank has
    arrived, as `stragglers` defines, and transfers from then on. So waiting that computation hides is not
    counted, unlike in `rank_waits`. Where it is not known who takes part in an exchange, or ranks that were
    not recorded do, its time counts as transferring, though it may hold waiting.

    Source: the precedence of HTA's temporal breakdown, and the reasoning of `stragglers`.

    Args:
        trace: the job.
        scope: ranks and iterations to look at, within its window; default everything. The waiting is that of
            these ranks for each other. Streams and names change nothing.

    Returns:
        One row per rank and iteration that lies in the scope, ascending; ranks without device events are left
        out. Columns: rank, iteration (int64), window_ns, and its parts, which add up to it: compute_ns,
        waiting_ns, transferring_ns, copying_ns, idle_ns (int64 ns).

    Raises:
        MissingDataError: fewer than two ranks, no communication, or none of it is matched across ranks.
    """
    scope = scope or Scope()
    ranks = Scope(ranks=scope.ranks)
    require_exchanges(trace, ranks)
    waits = _waits(arrived(trace, ranks))
    found: list[list[Int64]] = []
    for rank, rank_trace, work in busy_ranks(trace, ranks):
        number, windows = _windows(rank_trace, scope)
        waiting = waits.get(rank, _NEVER) & work.exposed_communication
        length, waited = windows[:, 1] - windows[:, 0], waiting.within_each(windows)
        found.append(
            [
                np.full(len(length), rank),
                number,
                length,
                work.compute.within_each(windows),
                waited,
                work.exposed_communication.within_each(windows) - waited,
                work.exposed_memory.within_each(windows),
                length - work.any.within_each(windows),
            ]
        )
    columns = ("rank", "iteration", "window_ns", *PARTS)
    stacked = [np.concatenate(of) for of in zip(*found, strict=True)] or [_NOTHING] * len(columns)
    frame = pd.DataFrame(dict(zip(columns, stacked, strict=True)))
    # an iteration in two windows is one row
    return frame.groupby(["rank", "iteration"], as_index=False).sum()


def _waits(each: pd.DataFrame) -> dict[int, Intervals]:
    """When each rank waits at exchanges: from the start of its kernel until the last rank has arrived."""
    each = each[each["waited_ns"] > 0].sort_values("rank", kind="stable")
    ranks, begins = np.unique(each["rank"].to_numpy(np.int64), return_index=True)
    start = each["start_ns"].to_numpy(np.int64)
    end = start + each["waited_ns"].to_numpy(np.int64)
    parts = zip(ranks.tolist(), np.split(start, begins[1:]), np.split(end, begins[1:]), strict=False)
    return {rank: Intervals.union(begun, until) for rank, begun, until in parts}


def _windows(rank_trace: RankTrace, scope: Scope) -> tuple[Int64, Int64]:
    """The iterations of a scope on a rank, and their times, int64[k, 2]."""
    frame = rank_trace.iterations
    number = frame["iteration"].to_numpy(np.int64)
    windows = np.column_stack([frame["start_ns"].to_numpy(np.int64), frame["end_ns"].to_numpy(np.int64)])
    if scope.window_ns is not None:
        windows = np.clip(windows, *scope.window_ns)
    inside = windows[:, 0] < windows[:, 1]
    if scope.iterations is not None:
        inside &= np.isin(number, scope.iterations)
    return number[inside], windows[inside]
