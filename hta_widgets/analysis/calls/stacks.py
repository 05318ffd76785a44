"""Call trees of ranks, and their sum over equal paths: each call's cost with all it calls and launches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pandas as pd

from hta_widgets.analysis.calls.nesting import nest
from hta_widgets.analysis.calls.paths import CallPaths, add_to_callers, sums
from hta_widgets.analysis.calls.tree import CallTree, adopt_backward
from hta_widgets.analysis.core.entry import Analysis
from hta_widgets.analysis.core.kept import kept
from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.charts.spec import Flame
from hta_widgets.engine import checkpoint
from hta_widgets.errors import MissingDataError
from hta_widgets.formatting import brief, duration, percent
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.reader.schema import NULL
from hta_widgets.trace.scope import Scope

if TYPE_CHECKING:
    from hta_widgets.trace.model import Trace
    from hta_widgets.trace.rank_trace import RankTrace

__all__ = ["ANALYSIS", "HOST_TIME", "KERNEL_TIME", "call_stacks", "sentence", "stacks"]

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Bool = npt.NDArray[np.bool_]

# The classes of the call stack, outermost first: of calls with equal times, the first is the caller.
_CALLER_FIRST = (
    EventClass.PYTHON,
    EventClass.ANNOTATION,
    EventClass.HOST_OP,
    EventClass.RUNTIME,
    EventClass.OVERHEAD,
)
_COLUMNS = {
    "rank": np.int64,
    "node": np.int64,
    "parent_node": np.int64,
    "name": object,
    "depth": np.int64,
    "count": np.int64,
    "host_ns": np.int64,
    "host_self_ns": np.int64,
    "kernels": np.int64,
    "device_ns": np.int64,
}


@memoize_per_rank(last=2)
def stacks(rank_trace: RankTrace, merge_backward: bool = True) -> CallTree:
    """The call tree of one rank: callers, and kernels launched below them; one entry per row of the rank.

    Unlike `RankTrace.parent`, annotations and calls nest together, kernels are children of their launch, and
    what was queued for another thread is a child of the call that queued it.
    Computed once per rank.

    Args:
        rank_trace: the rank.
        merge_backward: attach backward threads below the step that they belong to (see `adopt_backward`).
    """
    checkpoint()
    ties = np.full(len(EventClass), -1, np.int8)
    ties[list(_CALLER_FIRST)] = np.arange(len(_CALLER_FIRST))
    tie = ties[rank_trace.event_class]
    # Device-side rows have a stream or, without one, a category of the device.
    host = (tie >= 0) & ~rank_trace.is_device & (rank_trace.stream == NULL)
    lane = np.where(host, rank_trace.thread, -1)
    parent = nest(rank_trace.start, rank_trace.end, lane, tie, rank_trace.by_start)
    if merge_backward:
        parent = adopt_backward(
            parent, rank_trace.start, rank_trace.end, lane, rank_trace.name, rank_trace.names
        )
    is_kernel = rank_trace.is_device & (rank_trace.event_class != EventClass.SYNC)
    launch = rank_trace.launch
    linked = np.flatnonzero(is_kernel & (launch >= 0))
    linked = linked[host[launch[linked]]]
    parent[linked] = launch[linked]
    if rank_trace.table.has("queued_by"):
        tasks = np.flatnonzero(rank_trace.queued_by >= 0)
        parent[tasks] = rank_trace.queued_by[tasks]
    return CallTree(rank_trace.start, rank_trace.end, lane, parent, is_kernel, rank_trace.by_start)


@memoize_per_rank(last=2)
def _paths_of(rank_trace: RankTrace, merge_backward: bool) -> CallPaths:
    return CallPaths(rank_trace, stacks(rank_trace, merge_backward))


@kept(by_rank=True)
def call_stacks(trace: Trace, scope: Scope | None = None, merge_backward: bool = True) -> pd.DataFrame:
    """Sum the call trees of each rank over equal paths: what a flame graph shows.

    Two calls are the same node if they and all their callers have the same names, on whatever thread. Host
    times are clipped to the windows of the scope, so neighbouring scopes add up. A call is counted, and a
    kernel added with its whole duration, if it is a member of the scope (see `RankTrace.members`): kernels
    belong to the iteration of their launch.

    Args:
        trace: the job.
        scope: ranks, iterations, time window to look at; streams and names choose among the kernels only.
        merge_backward: show backward threads below the step that they belong to, not beside it.

    Returns:
        One row per rank and path with anything in the scope, callers before what they call. Columns (int64
        unless said): rank, node (number of the path on its rank), parent_node (-1 at the top), name (str),
        depth, count, host_ns and host_self_ns (ns with and without the calls made on the same thread),
        kernels, device_ns (number and summed duration of the kernels launched by the path and all below it).
        On one thread, a node's host_ns is its host_self_ns and its children's host_ns. Calls of
        backward threads run beside the step that they are shown under and take nothing of its time.

    Raises:
        MissingDataError: no selected rank has host events.
    """
    scope = scope or Scope()
    parts = []
    ranks = trace.ranks_of(scope)
    for rank in ranks:
        checkpoint()
        rank_trace = trace.rank(rank)
        paths = _paths_of(rank_trace, merge_backward)
        if len(paths.parent):
            parts.append(_summed(rank_trace, paths, scope))
    if ranks and not parts:
        raise MissingDataError(
            "host events",
            "Record with torch.profiler.profile(activities=[ProfilerActivity.CPU, ...]).",
            f"none of the ranks {', '.join(map(str, ranks))} has any",
        )
    empty = pd.DataFrame({name: np.empty(0, kind) for name, kind in _COLUMNS.items()})
    return pd.concat(parts, ignore_index=True) if parts else empty


def sentence(frame: pd.DataFrame) -> str:
    """The answer of `call_stacks` in one sentence."""
    if frame.empty or not frame["host_self_ns"].sum():
        return "No host call lies in the selection."
    by_name = frame.groupby("name", sort=True)["host_self_ns"].sum()
    name, own = by_name.idxmax(), int(by_name.max())
    share = 100.0 * own / int(frame["host_self_ns"].sum())
    name = name or "a call without a name"
    text = f"Most host time goes to {name} itself: {duration(own)}, {percent(share)} of all calls"
    launching = frame[frame["device_ns"] > 0]
    if launching.empty:
        return text + "; no call launches device work."
    leaf = launching.loc[~launching.set_index(["rank", "node"]).index.isin(_callers(launching))]
    most = leaf.iloc[leaf["device_ns"].to_numpy().argmax()]
    launched = duration(most["device_ns"])
    last = brief(most["name"]) or "a call without a name"
    return f"{text}; the path that launches most ends in {last}, {launched} of kernels."


def _callers(frame: pd.DataFrame) -> pd.MultiIndex:
    return pd.MultiIndex.from_frame(frame[["rank", "parent_node"]])


def _summed(rank_trace: RankTrace, paths: CallPaths, scope: Scope) -> pd.DataFrame:
    size = len(paths.parent)
    if scope.iterations is None and scope.window_ns is None:
        windows = np.array([[rank_trace.extent[0], rank_trace.extent[1] + 1]], np.int64)
    else:
        windows = rank_trace.windows(scope, "host")
    count, host, own = paths.within(windows)
    launched = rank_trace.belong(paths.kernels, scope)
    below = paths.below[launched]
    table = {
        "count": count,
        "host_ns": host,
        "host_self_ns": own,
        "kernels": np.bincount(below, minlength=size),
        "device_ns": sums(below, rank_trace.dur[paths.kernels[launched]], size),
    }
    shown = table["count"] + table["host_ns"] + table["kernels"]
    for column in ("kernels", "device_ns"):
        add_to_callers(paths, table[column])
    add_to_callers(paths, shown)
    keep = np.flatnonzero(shown > 0)
    frame = pd.DataFrame(
        {
            "rank": np.full(len(keep), rank_trace.rank, np.int64),
            "node": keep,
            "parent_node": paths.parent[keep],
            "name": pd.Series(pd.array(rank_trace.names, dtype="str").take(paths.name[keep])),
            "depth": paths.depth[keep],
        }
    )
    return frame.assign(**{column: values[keep] for column, values in table.items()})


HOST_TIME = ("host_ns", "host_self_ns", "Host time", "host")
KERNEL_TIME = ("device_ns", "", "Kernel time", "compute")

ANALYSIS = Analysis(
    kind="call_stacks",
    label="Call stacks",
    group="Host",
    title="Where in the program the time goes",
    function=call_stacks,
    sentence=sentence,
    chart=Flame("node", "parent_node", "name", (HOST_TIME, KERNEL_TIME)),
    requires=("host events",),
)
