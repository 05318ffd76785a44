"""The iterations of a rank as a replay moves them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd

from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.replay.graph import Graph
from hta_widgets.analysis.replay.kinds import EVENT_STARTS
from hta_widgets.analysis.replay.marks import marks_of
from hta_widgets.arrays import Bool, Int64
from hta_widgets.trace.iteration_clock import Clock, device_windows, host_windows, placed, tiled, timed
from hta_widgets.trace.rank_trace import RankTrace


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
    begin, end = _ends(rank_trace, graph)
    edges = {
        name: np.where(at >= 0, graph.origin_ns + time[at], frame[f"host_{name}"])
        for name, at in (("start_ns", begin), ("end_ns", end))
    }
    until = edges["end_ns"] - (frame["host_end_ns"] - frame["recorded_until_ns"])
    windows = frame[["iteration", "label", "source", "partial", "run"]].assign(
        **edges, recorded_until_ns=until
    )
    starts, iteration, lane, dur = _work(rank_trace, graph)
    if moved is not None:
        lane = np.where(moved[starts], -1 - lane, lane)
    windows = timed(
        windows, iteration, lane, graph.origin_ns + time[starts], graph.origin_ns + time[starts + 1], clock,
        rank_trace.drained, dur,
    )  # fmt: skip
    shown = (_tile_ends(frame, begin, end) >= 0).all(axis=1)
    hidden = ~shown & (windows["clock"] == "host").to_numpy(np.bool_)
    return windows.assign(**{name: np.where(hidden, -1, windows[name]) for name in edges})


def replayed_windows(
    rank_trace: RankTrace, graph: Graph, time: Int64, clock: Clock, moved: Bool | None = None
) -> Int64:
    """start_ns and end_ns of `replayed_iterations`, int64[n, 2]: of a few iterations, frames take longest."""
    host = _host(rank_trace, graph)
    if clock == "device":
        windows = np.where(host.at >= 0, graph.origin_ns + time[host.at], host.recorded)
        windows[:, 1] -= host.cut
        starts, place, lane, dur = _placed_work(rank_trace, graph)
        if moved is not None:
            lane = np.where(moved[starts], -1 - lane, lane)
        start, end = graph.origin_ns + time[starts], graph.origin_ns + time[starts + 1]
        return device_windows(windows, host.run, place, lane, start, end, dur)
    windows = graph.origin_ns + time[host.tile_ends]
    windows[:, 1] -= host.cut
    return np.where((host.tile_ends >= 0).all(axis=1, keepdims=True), windows, -1)


class _Host(NamedTuple):
    """Attributes:
    at, tile_ends: int64[n, 2], the nodes at which the host begins and ends each iteration, and those at which
        its windows do, which tile; -1 where no point of it does.
    recorded: int64[n, 2] ns, when it did.
    cut: int64 ns, by how much less of each is recorded. run: int64, of each iteration.
    """

    at: Int64
    tile_ends: Int64
    recorded: Int64
    cut: Int64
    run: Int64


@memoize_per_rank()
def _host(rank_trace: RankTrace, graph: Graph) -> _Host:
    frame, at = rank_trace.iterations, _ends(rank_trace, graph)
    recorded = np.stack([frame[name].to_numpy(np.int64) for name in ("host_start_ns", "host_end_ns")], axis=1)
    cut = recorded[:, 1] - frame["recorded_until_ns"].to_numpy(np.int64)
    run = frame["run"].to_numpy(np.int64)
    return _Host(np.column_stack(at), _tile_ends(frame, *at), recorded, cut, run)


def _tile_ends(frame: pd.DataFrame, begin: Int64, end: Int64) -> Int64:
    """The nodes at which the host's windows begin and end: each where the next of its run begins."""
    return np.column_stack([begin, tiled(begin, end, frame["run"].to_numpy(np.int64))])


def _ends(rank_trace: RankTrace, graph: Graph) -> tuple[Int64, Int64]:
    """The nodes at which the host begins and ends each iteration, -1 where no point of it does."""
    marks = marks_of(rank_trace)
    node = np.append(graph.mark, -1)
    return node[marks.begin], node[marks.end]


@memoize_per_rank()
def _work(rank_trace: RankTrace, graph: Graph) -> tuple[Int64, Int64, Int64, Int64]:
    """Of the device work of iterations: the node that it starts at, its iteration, queue and duration."""
    starts = np.flatnonzero(graph.node_kind == EVENT_STARTS)
    starts = starts[rank_trace.iteration[graph.row[starts]] >= 0]
    rows = graph.row[starts]
    return starts, rank_trace.iteration[rows].astype(np.int64), rank_trace.queues(rows), rank_trace.dur[rows]


@memoize_per_rank()
def _placed_work(rank_trace: RankTrace, graph: Graph) -> tuple[Int64, ...]:
    """`_work` of the iterations that `RankTrace.iterations` has, with their places there."""
    starts, iteration, *others = _work(rank_trace, graph)
    place, starts, *others = placed(rank_trace.iterations, iteration, starts, *others)
    return starts, place, *others


@memoize_per_rank()
def _launched(rank_trace: RankTrace, graph: Graph) -> tuple[Int64, Int64]:
    """Of all device work the node that it ends at, and when its host launched it."""
    starts = np.flatnonzero(graph.node_kind == EVENT_STARTS)
    rows = graph.row[starts]
    launch = rank_trace.launch[rows]
    return starts + 1, np.where(launch >= 0, rank_trace.start[launch], rank_trace.start[rows])


def falls_behind_ns(rank_trace: RankTrace, graph: Graph, time: Int64) -> int:
    """How much further behind the host the device is at the end of the host's windows than at their begin.

    By so much the host's windows of the complete iterations miss what the device takes for them. At a
    boundary the device is behind by how long it still works on what was launched before it.

    Args:
        time: when each node of the graph happens, ns from its origin.
    """
    recorded = rank_trace.iterations
    windows = replayed_windows(rank_trace, graph, time, "host")
    whole = np.flatnonzero(~recorded["partial"] & (windows[:, 1] >= 0))
    if not len(whole):
        return 0
    boundaries = host_windows(recorded)
    node, launched = _launched(rank_trace, graph)
    ends = graph.origin_ns + time[node]
    behind = []
    for column, at in enumerate((whole[0], whole[-1])):
        before = launched < boundaries[at, column]
        boundary = int(windows[at, column])
        behind.append(max(0, int(ends[before].max(initial=boundary)) - boundary))
    return behind[1] - behind[0]
