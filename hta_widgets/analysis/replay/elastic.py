"""What ran on other streams while an event started later than its dependencies explain.

Such a delay comes from sharing the device, so under an edit it changes with the work that it ran beside.
"""

from __future__ import annotations

import numpy as np

from hta_widgets.analysis.replay.delays import Delays
from hta_widgets.analysis.replay.device_events import DeviceEvents
from hta_widgets.analysis.replay.edge_list import Edges, Nodes, targets
from hta_widgets.analysis.replay.kinds import EVENT_STARTS
from hta_widgets.arrays import Int32, Int64
from hta_widgets.jit import kernel, outline

ELASTIC_FROM = 50_000
"""A shorter residual is not worth explaining, ns."""


def shared_delays(
    nodes: Nodes, first: Int32, edges: Edges, device: DeviceEvents, delays: Delays
) -> tuple[Int32, Int32, Int64]:
    """Residuals of starts, and what ran in them on other streams of the device.

    Returns:
        Three arrays of one value per pair, by residual: its edge; the edge (of kind DEVICE) of an event that
        ran in it; how much of the residual is that event's, ns. In proportion if more than one ran at a time.
    """
    at = np.flatnonzero(edges.residual > max(ELASTIC_FROM, 3 * delays.latency))
    target = targets(first, at)
    starts = nodes.kind[target] == EVENT_STARTS
    at, target = at[starts], target[starts]
    by_stream = np.lexsort((device.start, device.stream))
    offsets = np.searchsorted(device.stream[by_stream], np.arange(device.streams + 1))
    found = _beside(
        at, np.searchsorted(nodes.event, target), edges.residual, device, by_stream, offsets.astype(np.int64)
    )  # fmt: skip
    edge, event, share = found.T
    return edge.astype(np.int32), first[nodes.event[event] + 1].astype(np.int32), share.copy()


@outline
def _doubled(rows: Int64) -> Int64:
    """The rows, and room for as many more; a slice as the target would take numba seconds to compile."""
    larger = np.empty((2 * len(rows), 3), np.int64)
    for i in range(len(rows)):
        for k in range(3):
            larger[i, k] = rows[i, k]
    return larger


@kernel
def _beside(
    edge: Int64, event: Int64, residual: Int64, device: DeviceEvents, by_stream: Int64, offsets: Int64
) -> Int64:
    """int64[k, 3]: edge, event beside it, its share in ns."""
    n, out = 0, np.empty((1024, 3), np.int64)
    for i in range(len(edge)):
        d, whole = event[i], residual[edge[i]]
        until = device.start[d]
        since = until - whole
        low, total = n, np.int64(0)
        for stream in range(device.streams):
            a, z = offsets[stream], offsets[stream + 1]
            if stream == device.stream[d] or a == z or device.gpu[by_stream[a]] != device.gpu[d]:
                continue
            begin = a
            while a < z:  # the first that starts at or after `until`
                middle = (a + z) // 2
                if device.start[by_stream[middle]] < until:
                    a = middle + 1
                else:
                    z = middle
            j = a - 1
            while j >= begin and device.end[by_stream[j]] > since:
                other = by_stream[j]
                if n == len(out):
                    out = _doubled(out)
                ran = min(device.end[other], until) - max(device.start[other], since)
                out[n, 0], out[n, 1], out[n, 2] = edge[i], other, ran
                total += ran
                n += 1
                j -= 1
        if total > whole:
            for k in range(low, n):
                out[k, 2] = np.int64(out[k, 2] * (whole / total))
    return out[:n]
