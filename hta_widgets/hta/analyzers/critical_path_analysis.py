"""HTA's `hta.analyzers.critical_path_analysis`: the critical path of a rank as a graph.

`hta_widgets.analysis.critical_path` answers the same question without gaps: its path covers the window.
"""

from __future__ import annotations

import logging
from pathlib import Path

from hta_widgets.errors import RECORD_DEVICE, MissingDataError
from hta_widgets.hta.analyzers.critical_path.archive import restore
from hta_widgets.hta.analyzers.critical_path.build import build
from hta_widgets.hta.analyzers.critical_path.clip import clip, instances_window
from hta_widgets.hta.analyzers.critical_path.graph import CPGraph
from hta_widgets.hta.analyzers.critical_path.model import BoundType, CPEdge, CPEdgeType, CPNode
from hta_widgets.hta.analyzers.critical_path.overlay import DEFAULT_EDGE_TYPES_IN_VIZ, write_overlay
from hta_widgets.hta.common.trace import Trace
from hta_widgets.hta.configs import env_options
from hta_widgets.hta.methods.conventions import or_none, warn
from hta_widgets.trace.classify import EventClass

__all__ = [
    "DEFAULT_EDGE_TYPES_IN_VIZ",
    "BoundType",
    "CPEdge",
    "CPEdgeType",
    "CPGraph",
    "CPNode",
    "CriticalPathAnalysis",
    "restore_cpgraph",
]

logger = logging.getLogger(__name__)


class CriticalPathAnalysis:
    """HTA's two entry points."""

    @classmethod
    def critical_path_analysis(
        cls,
        t: Trace,
        rank: int,
        annotation: str,
        instance_id: int | tuple[int, int] | None = None,
        data_load_events: list[str] | None = None,
    ) -> tuple[CPGraph, bool] | None:
        """As `TraceAnalysis.critical_path_analysis`, by default of the first instance."""
        return _analyse(t, rank, annotation, instance_id, data_load_events)

    @classmethod
    def overlay_critical_path_analysis(
        cls,
        t: Trace,
        rank: int,
        critical_path_graph: CPGraph,
        output_dir: str,
        only_show_critical_events: bool = True,
        show_all_edges: bool = False,
        edge_types_to_viz: set[CPEdgeType] | None = None,
    ) -> str:
        """As `TraceAnalysis.overlay_critical_path_analysis`.

        Args:
            edge_types_to_viz: which edges of the path are drawn, by default dependencies, launch delays and
                synchronisation.
        """
        folder = Path(output_dir).expanduser()
        if folder.exists() and not folder.is_dir():
            logger.error("%s is not a directory.", output_dir)
            return ""
        folder.mkdir(parents=True, exist_ok=True)
        target = folder / f"overlaid_critical_path_{Path(critical_path_graph.rank_trace.path).name}"
        if show_all_edges and not only_show_critical_events:
            edges = [edge for _, _, edge in critical_path_graph.edges(data="object")]
            if not env_options.critical_path_show_zero_weight_launch_edges():
                edges = [edge for edge in edges if edge.weight or edge.type != CPEdgeType.KERNEL_LAUNCH_DELAY]
        else:
            drawn = DEFAULT_EDGE_TYPES_IN_VIZ if edge_types_to_viz is None else edge_types_to_viz
            edges = [edge for edge in critical_path_graph.critical_path_edges_set if edge.type in drawn]
            edges.sort(key=lambda edge: (edge.begin, edge.end))
        write_overlay(critical_path_graph, target, edges, only_show_critical_events)
        return str(target)


@or_none
def _analyse(
    t: Trace,
    rank: int,
    annotation: str,
    instance_id: object,
    data_load_events: list[str] | None,
) -> tuple[CPGraph, bool] | None:
    if rank not in t.job.ranks:
        raise ValueError(f"no rank {rank}: this trace has {t.job.ranks}")
    if instance_id is None:
        first, last = 0, 0
    elif isinstance(instance_id, tuple):
        first, last = instance_id
    elif isinstance(instance_id, int):
        first, last = instance_id, instance_id
    else:
        logger.error("instance_id is an int or a pair of them, not %s", type(instance_id).__name__)
        return None
    if not any(annotation in name for name in t.job.rank(rank).names):
        logger.error("Could not find annotation %s in the trace.", annotation)
        return None
    rank_trace = t.job.rank(rank)
    window = instances_window(rank_trace, annotation, first, last)
    if window is None:
        raise ValueError(f"{annotation!r} has no instance {first} on rank {rank}")
    if not (rank_trace.launch >= 0).any():
        raise MissingDataError(
            "link from device work to its launch",
            RECORD_DEVICE,
            "no device event has a launching call with the same correlation id",
        )
    if not (rank_trace.event_class == EventClass.SYNC).any():
        warn(
            "the trace has no cuda_sync events, so the graph has no edges from the device to calls that wait "
            "for it. Record with experimental_config=torch._C._profiler._ExperimentalConfig("
            "enable_cuda_sync_events=True)."
        )
    strict = env_options.critical_path_strict_negative_weight_check()
    causal = env_options.critical_path_add_zero_weight_launch_edges()
    part = clip(rank_trace, window)
    nodes, edges = build(part, data_load_events or (), causal, strict)
    graph = CPGraph.from_arrays(
        t, rank_trace, rank_trace.event_id[part.rows].astype("int64"), nodes, edges, data_load_events, strict
    )
    return graph, graph.critical_path()


def restore_cpgraph(zip_filename: str, t_full: Trace, rank: int) -> CPGraph:
    """The graph that `CPGraph.save` wrote, on the same trace.

    Raises:
        TraceFormatError: the file is no saved graph, or one of another trace. Files that HTA saved hold
            Python objects that could run anything; they are not read.
    """
    return restore(zip_filename, t_full, rank)
