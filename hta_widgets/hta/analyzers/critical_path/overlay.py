"""A copy of a rank's trace file in which the critical path can be seen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from hta_widgets.hta.analyzers.critical_path.graph import CPGraph
from hta_widgets.hta.analyzers.critical_path.model import CPEdge, CPEdgeType
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.reader.raw import RawTrace

# Edges that are drawn unless all are asked for: the rest follow the events themselves.
DEFAULT_EDGE_TYPES_IN_VIZ = frozenset(
    {CPEdgeType.DEPENDENCY, CPEdgeType.KERNEL_LAUNCH_DELAY, CPEdgeType.SYNC_DEPENDENCY}
)


def write_overlay(graph: CPGraph, target: Path, edges: Iterable[CPEdge], only_critical_events: bool) -> None:
    """Mark the events of the path (``args.critical`` = 1) and draw `edges` as flows.

    Args:
        only_critical_events: leave out the events that last and are not on the path; annotations and Python
            frames stay.
    """
    rank_trace = graph.rank_trace
    raw = RawTrace.read(rank_trace.path)
    edits: dict[int, dict[str, Any]] = {}
    for event in sorted(graph.critical_path_events_set):
        edits[event] = raw.event(event)
        arguments = edits[event].get("args")
        edits[event]["args"] = {**(arguments if isinstance(arguments, dict) else {}), "critical": 1}
    keep = None
    if only_critical_events:
        table = rank_trace.table
        keep = table.codes("phase") != _code(table.dictionary("phase"), "X")
        for category in ("user_annotation", "python_function"):
            keep |= table.codes("category") == _code(table.dictionary("category"), category)
        keep[list(edits)] = True
    raw.write(target, edits=edits, keep=keep, append=_flows(graph, raw, edges))


def _code(texts: list[str], text: str) -> int:
    return texts.index(text) if text in texts else -2  # -1 is the null of text columns


def _flows(graph: CPGraph, raw: RawTrace, edges: Iterable[CPEdge]) -> Iterator[dict[str, Any]]:
    ends: dict[int, dict[str, Any]] = {}
    for number, edge in enumerate(edges):
        # The edge's own weight as HTA writes it; the graph's may have been changed by then.
        args = {
            "weight": int(edge.weight),
            "critical": edge in graph.critical_path_edges_set,
            "type": edge.type.value,
        }
        for phase, node in (("s", edge.begin), ("f", edge.end)):
            if node not in ends:
                ends[node] = _place(graph, raw, node)
            flow = {"ph": phase, "id": number, **ends[node], "cat": "critical_path", "name": "critical_path"}
            yield {**flow, "args": args} if phase == "s" else {**flow, "bp": "e", "args": args}


def _place(graph: CPGraph, raw: RawTrace, number: int) -> dict[str, Any]:
    """Where the flow of a node ends: process, thread and time of its event, the latter as exact text."""
    rank_trace, node = graph.rank_trace, graph.node_list[number]
    row = int(np.searchsorted(rank_trace.event_id, node.ev_idx))
    begun, lasts = int(rank_trace.slices.start[row]), int(rank_trace.slices.dur[row])
    time = begun
    if not node.is_start:
        time = begun + lasts
        if rank_trace.is_device[row] or rank_trace.event_class[row] == EventClass.SYNC:
            # Viewers tie a flow to the slice that contains it; streams have the next one right after.
            time -= min(1000, lasts)
    event = raw.event(node.ev_idx)
    us, rest = divmod(time, 1000)
    return {
        "pid": event.get("pid"),
        "tid": event.get("tid"),
        "ts": orjson.Fragment(f"{us}.{rest:03d}") if rest else us,
    }
