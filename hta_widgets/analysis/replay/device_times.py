"""How long each piece of device work may take at most under an edit: by its bytes, or by what hides it."""

from __future__ import annotations

import numpy as np
import pandas as pd

from hta_widgets.analysis.communication.collectives import described
from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.device_time.busy import busy_of
from hta_widgets.analysis.replay.kinds import DEVICE
from hta_widgets.analysis.replay.plan import Plan
from hta_widgets.arrays import Bool, Int64
from hta_widgets.errors import MissingDataError
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.reader.schema import NULL

ENOUGH = 3
"""A kernel is compared overlapped and alone from so many of each on."""

_CARRIED = {
    "allreduce": (2, True),
    "allgather": (1, True),
    "reduce_scatter": (1, True),
    "all_to_all": (1, True),
    "broadcast": (1, False),
    "reduce": (1, False),
}
"""Collective -> how often a link carries each byte of the larger buffer; whether without one rank's share."""


def at_bandwidth(plan: Plan, edges: Bool, gbps: float) -> None:
    """Let copies take no longer than their bytes do at this bandwidth, in 1e9 bytes per s."""
    size = plan.rank_trace.argument("bytes")[rows_of_edges(plan)]
    if not (size[edges] != NULL).any() and edges.any():
        raise MissingDataError("bytes of copies", "Record on a device whose profiler writes them (CUDA).")
    known = edges & (size != NULL)
    plan.at_most(known, np.ceil(size[known] / gbps).astype(np.int64))


def at_bus_bandwidth(plan: Plan, edges: Bool, gbps: float) -> None:
    """Let collectives take no longer than at this bus bandwidth, as nccl-tests define it."""
    frame = described(plan.rank_trace)
    moved = pd.Series(pd.NA, frame.index, "Float64")
    peers = frame["group_size"].astype("Float64")
    for collective, (times, but_one) in _CARRIED.items():
        of_it = frame["collective"] == collective
        share = (peers - 1) / peers if but_one else peers / peers
        moved[of_it] = (frame["bytes"].astype("Float64") * times * share)[of_it]
    if moved.isna().all() and edges.any():
        raise MissingDataError(
            "sizes of collectives",
            "Record with PyTorch 2.2 or later and NCCL, which write them with each collective.",
        )
    ns = np.full(plan.rank_trace.n, -1, np.int64)
    rows = np.searchsorted(plan.rank_trace.event_id, frame["event_id"].to_numpy(np.int64))
    ns[rows] = np.ceil(moved.fillna(-1.0).to_numpy(np.float64) / gbps).astype(np.int64)
    of_edge = ns[rows_of_edges(plan)]
    known = edges & (of_edge >= 0)
    plan.at_most(known, of_edge[known])


def each_at_most(plan: Plan, rows: Int64, ns: Int64) -> None:
    """Let the device work of these rows take no longer than this."""
    longest = np.full(plan.rank_trace.n, -1, np.int64)
    longest[rows] = ns
    of_edge = longest[rows_of_edges(plan)]
    known = (plan.graph.kind == DEVICE) & (of_edge >= 0)
    plan.at_most(known, of_edge[known])


def hidden_by_compute(plan: Plan, edges: Bool) -> None:
    """Let compute hide what it does not hide of this communication, and slow down as it does elsewhere."""
    rank_trace, rows = plan.rank_trace, rows_of_edges(plan)
    device = np.flatnonzero(rank_trace.is_device & (rank_trace.event_class != EventClass.SYNC))
    start, end = rank_trace.start, rank_trace.end
    exposed = busy_of(rank_trace.event_class[device], start[device], end[device]).exposed_communication
    of_edge = rows[edges]
    alone = exposed.within_each(np.stack([start[of_edge], end[of_edge]], axis=1))
    saved = np.floor(alone * max(2.0 - slowing(rank_trace), 0.0)).astype(np.int64)
    plan.at_most(edges, plan.weight[edges] - saved)


def slowing(rank_trace: RankTrace) -> float:
    """How many times as long compute kernels take beside communication as alone; 1 where that is not seen.

    By the medians of kernels of the same name and grid of which three or more run alone and three or more
    beside communication, weighted by their time.
    """
    kind = rank_trace.event_class
    rows = np.flatnonzero((kind == EventClass.COMPUTE) & rank_trace.is_device & (rank_trace.dur > 0))
    communication = np.flatnonzero((kind == EventClass.COMMUNICATION) & rank_trace.is_device)
    beside = Intervals.union(rank_trace.start[communication], rank_trace.end[communication])
    shared = beside.within_each(np.stack([rank_trace.start[rows], rank_trace.end[rows]], axis=1))
    frame = pd.DataFrame(
        {
            "name": rank_trace.name[rows],
            "grid": rank_trace.argument_codes("grid")[rows],
            "ns": rank_trace.dur[rows],
            "beside": np.where(shared == 0, "alone", np.where(shared == rank_trace.dur[rows], "beside", "")),
        }
    )
    by = frame[frame["beside"] != ""].groupby(["name", "grid", "beside"])["ns"]
    median, count = by.median().unstack(), by.count().unstack()  # noqa: PD010
    if not {"alone", "beside"} <= set(median.columns):
        return 1.0
    enough = (count[["alone", "beside"]] >= ENOUGH).all(axis=1)
    if not enough.any():
        return 1.0
    time = (median["alone"] * count["beside"])[enough]
    ratio = (median["beside"] / median["alone"])[enough]
    return max(1.0, float((ratio * time).sum() / time.sum()))


def rows_of_edges(plan: Plan) -> Int64:
    """The row of the device event of each DEVICE edge, elsewhere any row."""
    row = plan.graph.row[plan.graph.target].astype(np.int64)
    return np.where(plan.graph.kind == DEVICE, row, 0)
