"""The iterations of a rank as a replay moves them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pandas as pd

from hta_widgets.analysis.replay.graph import Graph
from hta_widgets.analysis.replay.kinds import EVENT_STARTS
from hta_widgets.analysis.replay.marks import marks_of
from hta_widgets.trace.iteration_clock import Clock, timed

if TYPE_CHECKING:
    from hta_widgets.trace.rank_trace import RankTrace

Int64 = npt.NDArray[np.int64]
Bool = npt.NDArray[np.bool_]

__all__ = ["falls_behind_ns", "replayed_iterations"]


def replayed_iterations(
    rank_trace: RankTrace, graph: Graph, time: Int64, clock: Clock, moved: Bool | None = None
) -> pd.DataFrame:
    """The iterations at replayed times.

    Args:
        time: when each node of the graph happens, ns from its origin.
        clock: what times them.
        moved: for each node whether it is the start of an event that left its stream; None: none is.

    Returns:
        `RankTrace.iterations` with the host's windows moved where a point of the host begins or ends them,
        the device's as its work moves, and start_ns, end_ns by the clock: -1 for a host's window one of whose
        ends no host point shows.
    """
    # A queue that an edit empties stays the one that iterations begin in: they are the same iterations.
    frame = rank_trace.iterations
    marks = marks_of(rank_trace)
    node = np.append(graph.mark, -1)
    begin, end = node[marks.begin], node[marks.end]
    shown = (begin >= 0) & (end >= 0)
    windows = frame[["iteration", "label", "source", "partial"]].copy()
    for name, at in (("start_ns", begin), ("end_ns", end)):
        windows[name] = np.where(at >= 0, graph.origin_ns + time[at], frame[f"host_{name}"])
    starts = np.flatnonzero(graph.node_kind == EVENT_STARTS)
    rows = graph.row[starts]
    iteration = rank_trace.iteration[rows].astype(np.int64)
    within = iteration >= 0
    rows, starts, iteration = rows[within], starts[within], iteration[within]
    lane = (
        rank_trace.stream[rows] * (int(rank_trace.device[rows].max(initial=0)) + 1) + rank_trace.device[rows]
    )
    if moved is not None:
        lane = np.where(moved[starts], -1 - lane, lane)
    windows = timed(
        windows, iteration, lane, graph.origin_ns + time[starts], graph.origin_ns + time[starts + 1], clock,
        rank_trace.drained, rank_trace.dur[rows],
    )  # fmt: skip
    hidden = ~shown & (windows["clock"] == "host").to_numpy(np.bool_)
    windows.loc[hidden, ["start_ns", "end_ns"]] = -1
    return windows


def falls_behind_ns(rank_trace: RankTrace, graph: Graph, time: Int64) -> int:
    """How much further behind the host the device is at the end of the host's windows than at their begin.

    By so much the host's windows of the complete iterations miss what the device takes for them. At a
    boundary the device is behind by how long it still works on what was launched before it.

    Args:
        time: when each node of the graph happens, ns from its origin.
    """
    recorded = rank_trace.iterations
    windows = replayed_iterations(rank_trace, graph, time, "host")
    whole = np.flatnonzero(~windows["partial"] & (windows["end_ns"] >= 0))
    if not len(whole):
        return 0
    starts = np.flatnonzero(graph.node_kind == EVENT_STARTS)
    rows = graph.row[starts]
    launch = rank_trace.launch[rows]
    launched = np.where(launch >= 0, rank_trace.start[launch], rank_trace.start[rows])
    ends = graph.origin_ns + time[starts + 1]
    behind = []
    for name, at in (("start_ns", whole[0]), ("end_ns", whole[-1])):
        before = launched < recorded[f"host_{name}"].iloc[at]
        boundary = int(windows[name].iloc[at])
        behind.append(max(0, int(ends[before].max(initial=boundary)) - boundary))
    return behind[1] - behind[0]
