"""Groups of edges that an edit treats alike: a class of kernels, a kernel, a call, a thread.

There are 50 to 200 of them, so an edit by groups is a few small arrays, however large the graph is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hta_widgets.analysis.replay.edge_list import Edges, Nodes
from hta_widgets.analysis.replay.kinds import CALL, COPY, DEVICE, HANDOFF, HOST, QUEUE, SYNC, WAITING_CALL
from hta_widgets.arrays import Bool, Int32, Int64, UInt8
from hta_widgets.jit import kernel
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.rank_trace import RankTrace

_NAMED = (CALL, WAITING_CALL, SYNC, COPY, QUEUE, DEVICE)


@dataclass(frozen=True)
class Group:
    """Edges of one kind that belong together."""

    kind: int  # index into `kinds.KINDS`
    name: str = ""  # of the call (a call's time and waits) or of the device event; else empty
    event_class: EventClass | None = None  # of the device event; None on the host and between events
    thread: int = -1  # index into `Graph.threads` of host time, else -1
    launches: bool = False  # it is the time of a call that launches device work


def groups_of(
    rank_trace: RankTrace, nodes: Nodes, first: Int32, edges: Edges, launches: Int32
) -> tuple[tuple[Group, ...], Int32]:
    """The groups of a graph, and the group of each edge.

    Args:
        launches: how much device work each row launched.
    """
    what, detail = np.zeros(len(edges.kind), np.int32), np.zeros(len(edges.kind), np.uint8)
    names = np.empty(len(rank_trace.names), np.int64)
    _describe(
        first, nodes.row, edges.kind, edges.thread, rank_trace.name, rank_trace.event_class, launches,
        np.full(len(names), -1, np.int32), names, what, detail,
    )  # fmt: skip
    width, classes = max(int(what.max(initial=0)) + 1, 1), len(EventClass)
    # Few of the codes are used: numbered by counting.
    used = np.zeros((int(edges.kind.max(initial=0)) + 1) * classes * width, np.bool_)
    code = what
    _encode(edges.kind, detail, classes, width, code, used)
    distinct = np.flatnonzero(used)
    number = np.full(len(used), -1, np.int32)
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


@kernel
def _describe(
    first: Int32, row: Int32, kind: UInt8, thread: Int32, name: Int32, event_class: UInt8, launches: Int32,
    number: Int32, names: Int64, what: Int32, detail: UInt8,
) -> None:  # fmt: skip
    """What tells the edges of a kind apart: a number of the name or the thread, and a detail.

    `number`: -1 for each name, to be numbered in the order of the edges; `names`: the name of each number.
    """
    known = np.int32(0)
    for node in range(len(first) - 1):
        of = row[node]
        for edge in range(first[node], first[node + 1]):
            each = kind[edge]
            if each in (HOST, HANDOFF):
                what[edge] = thread[edge]
            elif each in _NAMED:
                if number[name[of]] < 0:
                    number[name[of]] = known
                    names[known] = name[of]
                    known += 1
                what[edge] = number[name[of]]
            if each == DEVICE:
                detail[edge] = event_class[of]
            elif each == CALL and launches[of] > 0:
                detail[edge] = 1


@kernel
def _encode(
    kind: UInt8, detail: UInt8, classes: int | np.int64, width: int | np.int64, what: Int32, used: Bool
) -> None:
    """Make one code of what tells edges apart, in its place, and mark those that are used."""
    for edge in range(len(kind)):
        code = (np.int64(kind[edge]) * classes + detail[edge]) * width + what[edge]
        what[edge] = code
        used[code] = True
