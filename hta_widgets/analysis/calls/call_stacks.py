"""The call trees of ranks, summed over equal paths: each call's cost with all it calls and launches."""

from __future__ import annotations

import numpy as np
import pandas as pd

from hta_widgets.analysis.calls.paths import CallPaths, add_to_callers, sums
from hta_widgets.analysis.calls.stacks import stacks
from hta_widgets.analysis.core.entry import Analysis
from hta_widgets.analysis.core.kept import kept
from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.serving.roles import replayed_roles
from hta_widgets.arrays import Bool, Int64
from hta_widgets.charts.spec import Flame
from hta_widgets.engine import checkpoint
from hta_widgets.errors import MissingDataError
from hta_widgets.formatting import brief, duration, none_of, percent
from hta_widgets.trace.model import Trace
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.scope import Scope

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
def _paths_of(rank_trace: RankTrace, merge_backward: bool) -> CallPaths:
    return CallPaths(rank_trace, stacks(rank_trace, merge_backward))


@memoize_per_rank(last=2)
def _roles_of(rank_trace: RankTrace, merge_backward: bool) -> tuple[Int64, Int64, Int64]:
    """The nodes of roles below the launches of graphs: of each kernel of the paths its node, -1 for none.

    And of each node its parent and its label.
    """
    paths = _paths_of(rank_trace, merge_backward)
    role, labels = replayed_roles(rank_trace)
    if not labels:
        return (np.empty(0, np.int64),) * 3
    node = np.full(len(paths.kernels), -1, np.int64)
    replayed = np.flatnonzero(role[paths.kernels] >= 0)
    key = paths.below[replayed].astype(np.int64) * len(labels) + role[paths.kernels[replayed]]
    found, node[replayed] = np.unique(key, return_inverse=True)
    return node, found // len(labels), found % len(labels)


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
        Below the launch of a server's graph, its kernels are divided by their part of the model, as "[graph]
        qkv" (`roles`), where that is known; these rows are no calls, and take no time of the host.

    Raises:
        MissingDataError: no selected rank has host events.
    """
    scope = scope or Scope()
    parts = []
    ranks = trace.ranks_of(scope)
    for rank in ranks:
        checkpoint()
        rank_trace = trace.rank(rank)
        if len(_paths_of(rank_trace, merge_backward).parent):
            parts.append(_summed(rank_trace, scope, merge_backward))
    if ranks and not parts:
        raise MissingDataError(
            "host events",
            "Record with torch.profiler.profile(activities=[ProfilerActivity.CPU, ...]).",
            none_of(ranks),
        )
    empty = pd.DataFrame({name: np.empty(0, kind) for name, kind in _COLUMNS.items()})
    return pd.concat(parts, ignore_index=True) if parts else empty


def sentence(frame: pd.DataFrame) -> str:
    """The answer of `call_stacks` in words."""
    if frame.empty or not frame["host_self_ns"].sum():
        return "No host call lies in the selection."
    by_name = frame.groupby("name", sort=True)["host_self_ns"].sum()
    name, own = by_name.idxmax(), int(by_name.max())
    share = 100.0 * own / int(frame["host_self_ns"].sum())
    name = name or "a call without a name"
    of_all = f"{percent(share)} of the time of all calls"
    text = f"The most host time goes to {name} itself: {duration(own)}, {of_all}."
    launching = frame[frame["device_ns"] > 0]
    if launching.empty:
        return f"{text} No call launches device work."
    callers = pd.MultiIndex.from_frame(launching[["rank", "parent_node"]])
    leaf = launching.loc[~launching.set_index(["rank", "node"]).index.isin(callers)]
    most = leaf.iloc[leaf["device_ns"].to_numpy().argmax()]
    launched = duration(most["device_ns"])
    last = brief(most["name"]) or "a call without a name"
    return f"{text} The path that launches most kernel time, {launched}, ends in {last}."


def _summed(rank_trace: RankTrace, scope: Scope, merge_backward: bool) -> pd.DataFrame:
    paths = _paths_of(rank_trace, merge_backward)
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
    frame = frame.assign(**{column: values[keep] for column, values in table.items()})
    if not replayed_roles(rank_trace)[1]:
        return frame
    roles = _of_roles(rank_trace, paths, launched, merge_backward)
    return pd.concat([frame, roles.astype(frame.dtypes.to_dict())], ignore_index=True)


def _of_roles(rank_trace: RankTrace, paths: CallPaths, launched: Bool, merge_backward: bool) -> pd.DataFrame:
    """Rows for the roles of replayed kernels, below the calls that launched their graphs."""
    node, parent, label = _roles_of(rank_trace, merge_backward)
    chosen = launched & (node >= 0)
    kernels = np.bincount(node[chosen], minlength=len(parent))
    time = sums(node[chosen].astype(np.int32), rank_trace.dur[paths.kernels[chosen]], len(parent))
    keep = np.flatnonzero(kernels)
    return pd.DataFrame(
        {
            "rank": rank_trace.rank,
            "node": len(paths.parent) + keep,
            "parent_node": parent[keep],
            "name": pd.array(replayed_roles(rank_trace)[1], dtype="str").take(label[keep]),
            "depth": paths.depth[parent[keep]] + 1,
            "count": 0,
            "host_ns": 0,
            "host_self_ns": 0,
            "kernels": kernels[keep],
            "device_ns": time[keep],
        }
    )


HOST_TIME = ("host_ns", "host_self_ns", "Host time", "host")
KERNEL_TIME = ("device_ns", "", "Kernel time", "compute")

ANALYSIS = Analysis(
    label="Call stacks",
    group="Host",
    title="Where in the program the time goes",
    function=call_stacks,
    sentence=sentence,
    chart=Flame("node", "parent_node", "name", (HOST_TIME, KERNEL_TIME)),
    requires=("host events",),
)
