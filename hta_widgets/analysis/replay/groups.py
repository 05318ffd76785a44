"""Groups of edges that an edit treats alike: a class of kernels, a kernel, a call, a thread.

There are 50 to 200 of them, so an edit by groups is a few small arrays, however large the graph is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pandas as pd

from hta_widgets.analysis.replay.edge_list import Edges, Nodes
from hta_widgets.analysis.replay.kinds import (
    CALL,
    COPY,
    DEVICE,
    HANDOFF,
    HOST,
    QUEUE,
    SYNC,
    WAITING_CALL,
)
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.ordering import among

if TYPE_CHECKING:
    from hta_widgets.trace.rank_trace import RankTrace

Int32 = npt.NDArray[np.int32]

__all__ = ["Group", "groups_of"]

_NAMED = (CALL, WAITING_CALL, SYNC, COPY, QUEUE, DEVICE)


@dataclass(frozen=True)
class Group:
    """Edges of one kind that belong together.

    Attributes:
        kind: index into `kinds.KINDS`.
        name: of the call (a call's time and waits) or of the device event; else empty.
        event_class: of the device event; None on the host and between events.
        thread: index into `Graph.threads` of host time, else -1.
        launches: it is the time of a call that launches device work.
    """

    kind: int
    name: str = ""
    event_class: EventClass | None = None
    thread: int = -1
    launches: bool = False


def groups_of(
    rank_trace: RankTrace, nodes: Nodes, first: Int32, edges: Edges, launches: npt.NDArray[np.int64]
) -> tuple[tuple[Group, ...], Int32]:
    """The groups of a graph, and the group of each edge.

    Args:
        launches: how much device work each row launched.
    """
    target = np.repeat(np.arange(len(nodes.time)), np.diff(first))
    row = nodes.row[target]
    on_device = edges.kind == DEVICE
    what = np.zeros(len(row), np.int64)
    by_name = among(edges.kind, _NAMED)
    what[by_name], names = pd.factorize(rank_trace.name[row[by_name]])
    by_thread = among(edges.kind, (HOST, HANDOFF))
    what[by_thread] = edges.thread[by_thread]
    detail = np.where(on_device, rank_trace.event_class[row], 0).astype(np.int64)
    of_call = edges.kind == CALL
    detail[of_call] = launches[row[of_call]] > 0
    width, classes = max(int(what.max(initial=0)) + 1, 1), len(EventClass)
    code = (edges.kind.astype(np.int64) * classes + detail) * width + what
    # Few of the codes are used: numbered by counting.
    distinct = np.flatnonzero(np.bincount(code))
    number = np.full(int(code.max(initial=-1)) + 1, -1, np.int32)
    number[distinct] = np.arange(len(distinct))
    groups = []
    for value in distinct.tolist():
        rest, at = divmod(value, width)
        kind, about = divmod(rest, classes)
        groups.append(
            Group(
                kind,
                rank_trace.names[names[at]] if kind in _NAMED else "",
                EventClass(about) if kind == DEVICE else None,
                at if kind in (HOST, HANDOFF) else -1,
                kind == CALL and about == 1,
            )
        )
    return tuple(groups), number[code]
