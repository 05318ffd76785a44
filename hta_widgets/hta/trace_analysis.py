"""`TraceAnalysis` with the methods of Holistic Trace Analysis.

Write `hta_widgets.hta` for `hta` in the imports of a notebook, and it runs. Signatures, defaults, column
names, order and units are HTA's; the numbers are ours (`docs/differences.md` lists where and why they
differ). Times are float us. Where a trace lacks what a method needs, the method returns what HTA returns for
"nothing" and warns with the reason and the profiler option that would record it. Methods that take `ranks`
mean rank 0 by None, as HTA does; where the job has no rank 0, its first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pandas as pd

from hta_widgets.hta import methods
from hta_widgets.hta.analyzers.straggler import find_stragglers_with_late_start_comm_kernels
from hta_widgets.hta.common.constants import CUDA_MAX_LAUNCH_QUEUE_PER_STREAM
from hta_widgets.hta.common.trace import Trace
from hta_widgets.hta.common.types import TimeSeriesTypes
from hta_widgets.hta.configs.default_values import DEFAULT_TRACE_DIR

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

    def get_comm_comp_overlap(self, visualize: bool = True) -> pd.DataFrame:
        """How much of each rank's communication is hidden behind computation?

        Returns:
            One row per rank: rank int64, comp_comm_overlap_pctg float64 (% of communication time in which the
            device also computes, two decimals; NaN without communication). Defined in
            `analysis.comm_comp_overlap`.
        """
        return methods.breakdowns.comm_comp_overlap(self.t.job, visualize)

    def get_profiler_steps(self) -> list[int]:
        """Numbers of the profiler steps on any rank, ascending; the last one only if it was included."""
        return methods.breakdowns.profiler_steps(self.t.job)

    def get_potential_stragglers(
        self,
        profiler_steps: list[int] | None = None,
        num_candidates: int = 2,
        visualize: bool = False,
        straggler_identification_impl: Callable[
            ..., pd.Series
        ] = find_stragglers_with_late_start_comm_kernels,
    ) -> list[int]:
        """Which ranks keep the others waiting?

        Args:
            profiler_steps: steps to look at, by default all; those that do not exist are ignored.
            num_candidates: how many ranks to name, at least 1.
            visualize: show the timeline of the collectives and the candidates.
            straggler_identification_impl: another rule: takes (events of all ranks, symbol table, number of
                candidates, visualize) and returns a Series of scores by rank. The events are those of these
                steps, with HTA's columns after rank and idx.

        Returns:
            Ranks, the most suspicious first. Empty, with a warning, where nothing can be compared: one rank,
            or no collective that all ranks share. Defined in `analysis.stragglers`.

        Raises:
            ValueError: the job has none of these steps.
        """
        from hta_widgets.hta.analyzers.straggler_analysis import potential_stragglers

        return potential_stragglers(
            self.t, profiler_steps, num_candidates, visualize, straggler_identification_impl
        )

    def get_gpu_kernel_breakdown(
        self,
        visualize: bool = True,
        duration_ratio: float = 0.8,
        num_kernels: int = 10,
        include_memory_kernels: bool = True,
        image_renderer: str = "",
    ) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Which kinds of kernels, and which kernels, take the device's time?

        Args:
            duration_ratio, num_kernels: which kernels are named in the second frame; the rest are `others`.
            include_memory_kernels: copies and fills count too.
            image_renderer: plotly renderer of the figures.

        Returns:
            Two frames. Of the time in which any kind runs, over all ranks: kernel_type (kinds that run at
            once are joined with "overlapping"), sum (us), percentage. And per rank, kind and kernel: name,
            sum (us), max (us), min (us), stddev, mean (us), kernel_type, rank; statistics of single launches,
            `others` included. Defined in `analysis.kernel_type_breakdown` and `analysis.kernel_breakdown`.
        """
        return methods.kernels.gpu_kernel_breakdown(
            self.t.job, visualize, duration_ratio, num_kernels, include_memory_kernels, image_renderer
        )

    def get_gpu_kernels_with_user_annotations(
        self,
        rank: int,
        expand_names: bool = True,
        shorten_names: bool = True,
    ) -> pd.DataFrame | None:
        """Which annotation does each kernel of a rank belong to?

        Args:
            expand_names: add the columns s_name, s_cat and s_user_annotation with the texts, "" for none.
            shorten_names: without template and call arguments.

        Returns:
            The rank's device events as in `t.get_trace(rank)`, and user_annotation: the symbol id of the
            innermost annotation on the kernel's stream, -1 for none. None, with a warning, if the device side
            of annotations was not recorded.
        """
        return methods.annotations.gpu_kernels_with_user_annotations(
            self.t, rank, expand_names, shorten_names
        )

    def get_gpu_user_annotation_breakdown(
        self,
        use_gpu_annotation: bool = True,
        visualize: bool = True,
        duration_ratio: float = 0.8,
        num_kernels: int = 1000,
        allowlist_patterns: list[str] | None = None,
        image_renderer: str | None = None,
    ) -> pd.DataFrame | None:
        """How long do the user's annotations last, on the device or on the host?

        Args:
            use_gpu_annotation: the device's side (first to last kernel), else the host's.
            duration_ratio, num_kernels: which annotations are named; the rest are `others`.
            allowlist_patterns: names that contain one of these texts, or in which one of these regular
                expressions is found, are always named.

        Returns:
            Per rank and annotation: name, sum (us), max (us), min (us), stddev, mean (us), rank. None, with a
            warning, if there are none. Defined in `analysis.user_annotations`.
        """
        return methods.annotations.gpu_user_annotation_breakdown(
            self.t.job,
            use_gpu_annotation,
            visualize,
            duration_ratio,
            num_kernels,
            allowlist_patterns,
            image_renderer,
        )

    def get_temporal_breakdown(self, visualize: bool = True) -> pd.DataFrame:
        """Is each rank's device idle, computing, or busy with something else?

        Returns:
            One row per rank with device events: rank, idle_time(us), compute_time(us), non_compute_time(us),
            kernel_time(us), and idle_time_pctg, compute_time_pctg, non_compute_time_pctg of kernel_time, the
            span from the first device event to the last. Defined in `analysis.temporal_breakdown`.
        """
        return methods.breakdowns.temporal_breakdown(self.t.job, visualize)

    def get_frequent_cuda_kernel_sequences(
        self,
        operator_name: str,
        output_dir: str,
        min_pattern_len: int = 3,
        rank: int = 0,
        top_k: int = 5,
        visualize: bool = False,
        compress_other_kernels: bool = True,
    ) -> pd.DataFrame:
        """Which sequences of kernels does an operator launch, and how often?

        Writes `overlaid_<trace file>` into `output_dir`: the trace with the sequences marked.

        Args:
            operator_name: part of the name of the operators looked at.
            output_dir: an existing folder.
            min_pattern_len: operators that launch fewer kernels are left out.
            top_k: how many sequences to mark and to draw.
            compress_other_kernels: leave the arguments of all other events out of the file, and number their
                names.

        Returns:
            pattern (operator and kernels, parted by "|"), count, GPU kernel duration (us), CPU op duration
            (us); the most frequent first. Empty, with a warning, if there is none, no operator name or no
            folder to write into. Defined in `analysis.kernel_sequences`.
        """
        return methods.sequences.frequent_cuda_kernel_sequences(
            self.t.job,
            operator_name,
            output_dir,
            min_pattern_len,
            rank,
            top_k,
            visualize,
            compress_other_kernels,
        )

    def get_aten_op_kernels_and_delay(
        self,
        ranks: list[int] | None = None,
        sort_by: list[str] | None = None,
    ) -> dict[int, pd.DataFrame]:
        """Which kernels does each aten operator launch, and how long until they start?

        Returns:
            {rank: frame} with aten_op_name, kernel_sequence (names parted by " -> "), occurrence_count,
            avg_aten_op_launch_delay (us from the operator's start to its first launch), avg_runtime_delay (us
            from that launch to the kernel), sorted by `sort_by` (default occurrence_count), descending.
            Defined in `analysis.op_kernels`.
        """
        return methods.launches.aten_op_kernels_and_delay(self.t.job, ranks, sort_by)

    def get_cuda_kernel_launch_stats(
        self,
        ranks: list[int] | None = None,
        runtime_cutoff: int = 50,
        launch_delay_cutoff: int = 100,
        include_memory_events: bool = True,
        visualize: bool = True,
    ) -> dict[int, pd.DataFrame]:
        """How long do launches take, and how long until their kernels start?

        Args:
            runtime_cutoff: us; calls above it are drawn as outliers.
            launch_delay_cutoff: us; delays above it are drawn as outliers.
            include_memory_events: copies and fills count too.

        Returns:
            {rank: frame} with one row per launched device event: correlation, cpu_duration, gpu_duration,
            launch_delay (us from the end of the call to the start on the device, at least 0). Defined in
            `analysis.launch_stats`.
        """
        return methods.launches.cuda_kernel_launch_stats(
            self.t.job, ranks, runtime_cutoff, launch_delay_cutoff, include_memory_events, visualize
        )

    def generate_trace_with_counters(
        self,
        time_series: TimeSeriesTypes | None = None,
        ranks: list[int] | None = None,
        output_suffix: str = "_with_counters",
    ) -> None:
        """Write the ranks' traces with counter tracks for Perfetto beside the originals.

        Args:
            time_series: `TimeSeriesTypes.QUEUE_LENGTH`, `.MEMCPY_BANDWIDTH` or both (None).
            output_suffix: put between the name and its ending.

        Raises:
            FileExistsError: the new file would replace one that no tool has written.
        """
        return methods.counters.generate_trace_with_counters(self.t.job, time_series, ranks, output_suffix)

    def get_queue_length_time_series(self, ranks: list[int] | None = None) -> dict[int, pd.DataFrame]:
        """How many launches wait in the queue of each stream, over time?

        Returns:
            {rank: frame}, one row per change: ts (us), pid, tid, stream, queue_length. Defined in
            `analysis.queue_length`.
        """
        return methods.counters.queue_length_time_series(self.t.job, ranks)

    def get_queue_length_summary(self, ranks: list[int] | None = None) -> pd.DataFrame | None:
        """Statistics of the queue length per rank and stream, over its changes (as pandas' `describe`)."""
        return methods.counters.queue_length_summary(self.t.job, ranks)

    def get_queue_length_summary_from_time_series(
        self, queue_length_dict: dict[int, pd.DataFrame]
    ) -> pd.DataFrame | None:
        """As `get_queue_length_summary`, of series already computed."""
        return methods.counters.queue_length_summary_from_time_series(queue_length_dict)

    def get_time_spent_blocked_on_full_queue(
        self,
        queue_length_dict: dict[int, pd.DataFrame],
        max_queue_length: int = CUDA_MAX_LAUNCH_QUEUE_PER_STREAM,
    ) -> pd.DataFrame:
        """How long was the queue of each stream full?

        Returns:
            rank, stream, duration_at_max_queue_length (us), relative_duration_at_max_queue_length (of the
            rank's recording); streams that never reached `max_queue_length` are left out. Defined in
            `analysis.blocked_on_full_queue`.
        """
        return methods.counters.time_spent_blocked_on_full_queue(
            self.t.job, queue_length_dict, max_queue_length
        )

    def get_memory_bw_time_series(self, ranks: list[int] | None = None) -> dict[int, pd.DataFrame]:
        """How fast is memory copied and set, over time?

        Returns:
            {rank: frame}, one row per change: ts (us), pid, name (kind of copy), memory_bw_gbps (GB/s).
            Defined in `analysis.memory_bandwidth`.
        """
        return methods.counters.memory_bw_time_series(self.t.job, ranks)

    def get_memory_bw_summary(self, ranks: list[int] | None = None) -> pd.DataFrame | None:
        """Statistics of the bandwidth per rank and kind of copy while above 0 (as pandas' `describe`)."""
        return methods.counters.memory_bw_summary(self.t.job, ranks)

    def get_idle_time_breakdown(
        self,
        ranks: list[int] | None = None,
        streams: list[int] | None = None,
        visualize: bool = True,
        visualize_pctg: bool = True,
        show_idle_interval_stats: bool = False,
        consecutive_kernel_delay: int = 30,
    ) -> tuple[pd.DataFrame, pd.DataFrame | None]:
        """What does each stream wait for between its kernels?

        Args:
            streams: streams to look at, by default all.
            visualize_pctg: draw shares instead of times.
            show_idle_interval_stats: return statistics of the pauses too.
            consecutive_kernel_delay: us; shorter pauses are `kernel_wait` unless the host was late.

        Returns:
            Per rank, stream and idle_category (host_wait, kernel_wait, other): rank, stream, idle_category,
            idle_time (us), idle_time_ratio; and the statistics or None. Defined in
            `analysis.stream_idle_breakdown`; `analysis.idle_breakdown` says why the device as a whole is
            idle.
        """
        return methods.idle.idle_time_breakdown(
            self.t.job,
            ranks,
            streams,
            visualize,
            visualize_pctg,
            show_idle_interval_stats,
            consecutive_kernel_delay,
        )

    def get_cupti_counter_data_with_operators(self, ranks: list[int] | None = None) -> list[pd.DataFrame]:
        """Hardware counters of each kernel, with the operators that launched it.

        Returns:
            Per rank a frame: the columns of `t.get_trace(rank)`, the counters, and op_stack, top_level_op,
            bottom_level_op. Empty, with a warning, without counters. Defined in `analysis.cupti_counters`.
        """
        from hta_widgets.hta.analyzers.cupti_counter_analysis import cupti_counter_data_with_operators

        return cupti_counter_data_with_operators(self.t, ranks)

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
            data_load_events: parts of names of host calls that load data.

        Returns:
            The graph, with the path on it, and whether it could be found; None, with a warning, if there is
            nothing to analyse. `analysis.critical_path` gives a path without gaps.

        Raises:
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
            only_show_critical_events: leave all other events out.
            show_all_edges: draw the edges that are not on the path too.

        Returns:
            Path of the new file in `output_dir`.
        """
        from hta_widgets.hta.analyzers.critical_path_analysis import CriticalPathAnalysis

        return CriticalPathAnalysis.overlay_critical_path_analysis(
            self.t, rank, critical_path_graph, output_dir, only_show_critical_events, show_all_edges
        )
