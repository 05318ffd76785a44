"""The nodes of the graph: the start and the end of every call and every device event."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hta_widgets.arrays import Int64
from hta_widgets.hta.analyzers.critical_path.clip import Clip
from hta_widgets.hta.analyzers.critical_path.model import Nodes
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.reader.schema import NULL

# Calls whose own time is waiting for the device. HTA's list, and the same calls of HIP.
_BLOCKING = {
    "DeviceSynchronize",
    "StreamSynchronize",
    "EventQuery",
    "EventSynchronize",
    "Memcpy",
    "MemcpyAsync",
}
BLOCKING = frozenset(f"{vendor}{call}" for vendor in ("cuda", "hip") for call in _BLOCKING)


@dataclass(frozen=True)
class Numbered:
    """The nodes, and which belong to which row of the rank (-1: none)."""

    nodes: Nodes
    start_of: Int64
    end_of: Int64


def number_nodes(clip: Clip, data_load_events: Sequence[str]) -> Numbered:
    """Give every operator, runtime call, data loading event and device event its two nodes."""
    rank_trace = clip.rank_trace
    names = np.array(rank_trace.names, object)
    loads = np.array([any(text in name for text in data_load_events) for name in names], np.bool_)
    host = np.isin(rank_trace.event_class[clip.host], (EventClass.HOST_OP, EventClass.RUNTIME))
    host |= loads[rank_trace.name[clip.host]]
    # Waits have no edges of their own; they are numbered because HTA numbers them.
    on_stream = rank_trace.argument("stream")[clip.sync]
    sync = (on_stream != NULL) & (on_stream != -1) & (rank_trace.correlation[clip.sync] != NULL)
    rows = np.concatenate([clip.host[host], clip.device, clip.sync[sync]])
    blocks = np.array([name in BLOCKING for name in names], np.bool_)[rank_trace.name[rows]]

    event = np.tile(rank_trace.event_id[rows].astype(np.int64), 2)
    time = np.concatenate([rank_trace.start[rows], rank_trace.end[rows]])
    is_start = np.repeat([True, False], len(rows))
    order = np.lexsort((~is_start, event, time))
    number = np.empty(len(order), np.int64)
    number[order] = np.arange(len(order))
    start_of, end_of = np.full(rank_trace.n, -1, np.int64), np.full(rank_trace.n, -1, np.int64)
    start_of[rows], end_of[rows] = number[: len(rows)], number[len(rows) :]
    nodes = Nodes(event[order], time[order], is_start[order], np.tile(blocks, 2)[order])
    return Numbered(nodes, start_of, end_of)
