"""A dependency graph as bytes for the browser, which replays it while a slider moves (``js/src/replay/``).

Times are not sent: the replay without an edit gives them. An edge is known by how far back its source is, and
residuals and long weights are lists, since few edges have one: 15 to 20 bytes a node, a fifth of that
compressed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

import numpy as np

from hta_widgets.analysis.replay.graph import Graph
from hta_widgets.analysis.replay.kinds import EVENT_STARTS
from hta_widgets.arrays import Int64
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.rank_trace import RankTrace

_PARTS = {EventClass.COMMUNICATION: 1, EventClass.MEMORY_COPY: 2, EventClass.MEMORY_SET: 2}
"""Which part of the device's time an event belongs to; the others are compute, 0."""
_MOST_NARROW = 1 << 31


def pack(graph: Graph, rank_trace: RankTrace, cuts: Mapping[str, tuple[Int64, Int64]]) -> bytes:
    """The graph as the length of a JSON header, the header, and little-endian arrays.

    Args:
        rank_trace: tells the class of each device event.
        cuts: the edges that an edit shortens, and their weights under it, by its name.

    Returns:
        Bytes whose header says of each array [name, type, offset, length], and how many groups there are.
    """
    degree = np.diff(graph.first)
    long = np.flatnonzero(np.abs(graph.weight) >= _MOST_NARROW)
    narrow = graph.weight.copy()
    narrow[long] = 0
    rest = np.flatnonzero(graph.residual)
    starts = np.flatnonzero(graph.node_kind == EVENT_STARTS)
    event_class = rank_trace.event_class[graph.row[starts]]
    arrays = {
        "degree": degree.astype("<u1" if degree.max(initial=0) < 1 << 8 else "<u2"),
        "back": (graph.target - graph.source).astype("<i4"),
        "weight": narrow.astype("<i4"),
        "long_edge": long.astype("<i4"),
        "long_weight": graph.weight[long].astype("<f8"),
        "rest_edge": rest.astype("<i4"),
        "rest": graph.residual[rest].astype("<f8"),
        "group": graph.group.astype("<u2" if len(graph.groups) < 1 << 16 else "<u4"),
        "pair_edge": graph.pair_edge.astype("<i4"),
        "pair_device": graph.pair_device.astype("<i4"),
        "pair_share": graph.pair_share.astype("<f8"),
        "event": starts.astype("<i4"),
        "event_part": np.array([_PARTS.get(EventClass(value), 0) for value in event_class.tolist()], "<u1"),
    }
    for name, (edge, weight) in cuts.items():
        arrays |= {f"cut_edge:{name}": edge.astype("<i4"), f"cut_weight:{name}": weight.astype("<f8")}
    entries, offset = [], 0
    for name, values in arrays.items():
        entries.append([name, values.dtype.str[1:], offset, len(values)])
        offset += values.nbytes
    header = json.dumps({"arrays": entries, "groups": len(graph.groups)}).encode()
    body = b"".join(values.tobytes() for values in arrays.values())
    return len(header).to_bytes(4, "little") + header + body
