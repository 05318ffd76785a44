"""A critical path graph as a zip file of text: tables as CSV and JSON, nothing that could run."""

from __future__ import annotations

import json
from pathlib import Path
from zipfile import ZIP_DEFLATED, BadZipFile, ZipFile

import numpy as np

from hta_widgets.errors import TraceFormatError
from hta_widgets.hta.analyzers.critical_path.graph import CPGraph
from hta_widgets.hta.analyzers.critical_path.model import NO_EVENT, TYPES, Edges, Nodes
from hta_widgets.hta.common.trace import Trace

_TRACE, _GRAPH, _DATA = "trace_data.csv", "cp_graph.json", "cp_data.json"


def save(graph: CPGraph, out_dir: str) -> str:
    """Write the three files into `out_dir` (made if missing) and into ``out_dir + ".zip"``; that path."""
    folder = Path(out_dir)
    folder.mkdir(parents=True, exist_ok=True)
    graph.trace_df.to_csv(folder / _TRACE, index=True, index_label="_index_")
    types = {kind: code for code, kind in enumerate(TYPES)}
    edges = [
        (
            begin,
            end,
            types[data["object"].type],
            data["object"].weight,
            data["weight"],
            graph.edge_to_event_map.get((begin, end), NO_EVENT),
        )
        for begin, end, data in graph.edges(data=True)
    ]
    nodes = graph._nodes
    (folder / _GRAPH).write_text(
        json.dumps(
            {
                "event": nodes.event.tolist(),
                "time_ns": nodes.time.tolist(),
                "is_start": nodes.is_start.tolist(),
                "is_blocking": nodes.is_blocking.tolist(),
                "edges": edges,
            }
        )
    )
    (folder / _DATA).write_text(
        json.dumps(
            {
                "data_load_events": graph.data_load_events,
                "events": graph._events.tolist(),
                "critical_path_nodes": graph.critical_path_nodes,
            }
        )
    )
    target = f"{out_dir}.zip"
    with ZipFile(target, "w", ZIP_DEFLATED) as archive:
        for name in (_TRACE, _GRAPH, _DATA):
            archive.write(folder / name, name)
    return target


def restore(zip_filename: str, t_full: Trace, rank: int) -> CPGraph:
    """The graph that `save` wrote, on the same trace.

    Raises:
        TraceFormatError: the file is no such archive, or is of another trace.
    """
    try:
        with ZipFile(zip_filename) as archive:
            stored, data = json.loads(archive.read(_GRAPH)), json.loads(archive.read(_DATA))
        nodes = Nodes(
            np.array(stored["event"], np.int64),
            np.array(stored["time_ns"], np.int64),
            np.array(stored["is_start"], np.bool_),
            np.array(stored["is_blocking"], np.bool_),
        )
        table = np.array(stored["edges"], np.float64).reshape(-1, 6)
        path = [int(node) for node in data["critical_path_nodes"]]
        events = np.array(data["events"], np.int64)
        loads = data["data_load_events"]
    except (KeyError, TypeError, ValueError, OSError, BadZipFile) as error:
        raise TraceFormatError(zip_filename, f"no saved critical path graph: {error}") from error
    numbers = table[:, [0, 1, 2, 5]].astype(np.int64)
    edges = Edges(numbers[:, 0], numbers[:, 1], numbers[:, 2], table[:, 3].copy(), numbers[:, 3])
    if rank not in t_full.job.ranks:
        raise TraceFormatError(zip_filename, f"this trace has no rank {rank}")
    rank_trace = t_full.job.rank(rank)
    ends = np.concatenate([numbers[:, 0], numbers[:, 1], path]).astype(np.int64)
    fits = {len(column) for column in (nodes.time, nodes.is_start, nodes.is_blocking)} == {len(nodes.event)}
    fits = fits and bool(((ends >= 0) & (ends < len(nodes.event))).all())
    fits = fits and bool(np.isin(nodes.event, rank_trace.event_id).all())
    if not fits or not bool(np.isin(numbers[:, 2], range(len(TYPES))).all()):
        raise TraceFormatError(zip_filename, f"the saved graph is not about rank {rank} of this trace")
    graph = CPGraph.from_arrays(t_full, rank_trace, events, nodes, edges, loads)
    for begin, end, weight in table[table[:, 3] != table[:, 4]][:, [0, 1, 4]].tolist():
        graph.edges[int(begin), int(end)]["weight"] = weight
    graph.mark_path(path)
    return graph
