"""`TraceAnalysis` with the methods of Holistic Trace Analysis.

Write `hta_widgets.hta` for `hta` in the imports of a notebook, and it runs. Signatures, defaults, column
names, order and units are HTA's; the numbers are ours (`docs/differences.md` lists where and why they
differ). Times are float us. Where a trace lacks what a method needs, the method returns what HTA returns for
"nothing" and warns with the reason and the profiler option that would record it. Methods that take `ranks`
mean rank 0 by None, as HTA does; where the job has no rank 0, its first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from hta_widgets.hta import analyzers, methods
from hta_widgets.hta.common.trace import Trace
from hta_widgets.hta.common.types import TimeSeriesTypes
from hta_widgets.hta.configs.default_values import DEFAULT_TRACE_DIR
from hta_widgets.hta.methods.conventions import Door, of_trace

if TYPE_CHECKING:
    from hta_widgets.hta.analyzers.critical_path_analysis import CPGraph

__all__ = ["TimeSeriesTypes", "TraceAnalysis"]


class TraceAnalysis:
    """All analyses of HTA on one job.

    Args:
        trace_files: {rank: file} or a list of files; None: every trace in `trace_dir`.
        trace_dir: folder that holds the traces, one file per rank.
        include_last_profiler_step: keep the last step too, which the recording may have cut.

    Attributes:
        t: the job as HTA's `Trace`: `t.traces`, `t.symbol_table`, `t.get_trace(rank)`, ...

    Raises:
        TraceNotFoundError: a path does not exist or holds no file to read.
        TraceFormatError: no file is a usable trace.
    """

    def __init__(
        self,
        trace_files: dict[int, str] | list[str] | None = None,
        trace_dir: str = DEFAULT_TRACE_DIR,
        include_last_profiler_step: bool | None = False,
    ) -> None:
        self.t = Trace(trace_files, trace_dir)
        self.t.load_traces(bool(include_last_profiler_step))

    get_comm_comp_overlap = Door(lambda: of_trace(methods.breakdowns.comm_comp_overlap))
    get_profiler_steps = Door(lambda: of_trace(methods.breakdowns.profiler_steps))
    get_potential_stragglers = Door(lambda: analyzers.straggler_analysis.potential_stragglers)
    get_gpu_kernel_breakdown = Door(lambda: of_trace(methods.kernels.gpu_kernel_breakdown))
    get_gpu_kernels_with_user_annotations = Door(
        lambda: methods.annotations.gpu_kernels_with_user_annotations
    )
    get_gpu_user_annotation_breakdown = Door(
        lambda: of_trace(methods.annotations.gpu_user_annotation_breakdown)
    )
    get_temporal_breakdown = Door(lambda: of_trace(methods.breakdowns.temporal_breakdown))
    get_frequent_cuda_kernel_sequences = Door(
        lambda: of_trace(methods.sequences.frequent_cuda_kernel_sequences)
    )
    get_aten_op_kernels_and_delay = Door(lambda: of_trace(methods.launches.aten_op_kernels_and_delay))
    get_cuda_kernel_launch_stats = Door(lambda: of_trace(methods.launches.cuda_kernel_launch_stats))
    generate_trace_with_counters = Door(lambda: of_trace(methods.counter_events.generate_trace_with_counters))
    get_queue_length_time_series = Door(lambda: of_trace(methods.counters.queue_length_time_series))
    get_queue_length_summary = Door(lambda: of_trace(methods.counters.queue_length_summary))

    def get_queue_length_summary_from_time_series(
        self, queue_length_dict: dict[int, pd.DataFrame]
    ) -> pd.DataFrame | None:
        """As `get_queue_length_summary`, of series already computed."""
        return methods.counters.queue_length_summary_from_time_series(queue_length_dict)

    get_time_spent_blocked_on_full_queue = Door(
        lambda: of_trace(methods.counters.time_spent_blocked_on_full_queue)
    )
    get_memory_bw_time_series = Door(lambda: of_trace(methods.counters.memory_bw_time_series))
    get_memory_bw_summary = Door(lambda: of_trace(methods.counters.memory_bw_summary))
    get_idle_time_breakdown = Door(lambda: of_trace(methods.idle.idle_time_breakdown))
    get_cupti_counter_data_with_operators = Door(
        lambda: analyzers.cupti_counter_analysis.cupti_counter_data_with_operators
    )

    def critical_path_analysis(
        self,
        rank: int,
        annotation: str,
        instance_id: int | tuple[int, int] | None,
        data_load_events: list[str] | None = None,
    ) -> tuple[CPGraph, bool] | None:
        """Which chain of calls, launches and kernels determines how long something takes?

        Args:
            annotation: part of the name of the annotation to look into; "" for the whole recording.
            instance_id: which occurrence, the first and last of several, or None for the first.
            data_load_events: host calls that load data: parts of their names for those that would have no
                node, regular expressions on short names for the breakdown.

        Returns:
            The graph, with the path on it, and whether it could be found; None, with a warning, if there is
            nothing to analyse. `analysis.critical_path` gives a path without gaps.

        Raises:
            ValueError: the job has no such rank, or the annotation no such occurrence.
            ModuleNotFoundError: networkx is not installed, of which the graph is one (`hta_widgets[hta]`).
        """
        from hta_widgets.hta.analyzers.critical_path_analysis import CriticalPathAnalysis

        return CriticalPathAnalysis.critical_path_analysis(
            self.t, rank, annotation, instance_id, data_load_events
        )

    def overlay_critical_path_analysis(
        self,
        rank: int,
        critical_path_graph: CPGraph,
        output_dir: str,
        only_show_critical_events: bool = True,
        show_all_edges: bool = False,
    ) -> str:
        """Write the rank's trace with the critical path marked, for Perfetto.

        Args:
            only_show_critical_events: leave all other events out, except annotations and Python frames; then
                only edges of the path are drawn.
            show_all_edges: draw the edges that are not on the path too.

        Returns:
            Path of the new file, `overlaid_critical_path_<trace file>` in `output_dir`; "" if that is a file.
        """
        from hta_widgets.hta.analyzers.critical_path_analysis import CriticalPathAnalysis

        return CriticalPathAnalysis.overlay_critical_path_analysis(
            self.t, rank, critical_path_graph, output_dir, only_show_critical_events, show_all_edges
        )
