"""Questions about a trace: each a function `(trace, scope) -> DataFrame`, with times in exact nanoseconds."""

from hta_widgets.analysis.annotated_kernels import annotated_kernels, annotation_totals
from hta_widgets.analysis.annotations import user_annotations
from hta_widgets.analysis.bandwidth import bandwidth_summary, memory_bandwidth
from hta_widgets.analysis.collectives import collectives
from hta_widgets.analysis.comparisons import COMPARISONS
from hta_widgets.analysis.critical_path import critical_path, critical_path_summary
from hta_widgets.analysis.cupti import cupti_counters
from hta_widgets.analysis.diff import comparability, diff, run_table, step_waterfall
from hta_widgets.analysis.findings import overview
from hta_widgets.analysis.gaps import idle_gaps
from hta_widgets.analysis.idle import idle_breakdown
from hta_widgets.analysis.kernel_durations import kernel_durations
from hta_widgets.analysis.kernel_types import kernel_type_breakdown
from hta_widgets.analysis.kernels import kernel_breakdown
from hta_widgets.analysis.launches import launch_stats, launch_summary
from hta_widgets.analysis.memory import memory_peak, memory_timeline
from hta_widgets.analysis.memory_categories import memory_categories
from hta_widgets.analysis.modules import module_stacks
from hta_widgets.analysis.op_counts import op_counts
from hta_widgets.analysis.op_kernels import op_kernels
from hta_widgets.analysis.overlap import comm_comp_overlap
from hta_widgets.analysis.queue import blocked_on_full_queue, queue_length, queue_summary
from hta_widgets.analysis.registry import ANALYSES, Analysis, Series
from hta_widgets.analysis.sequences import kernel_sequences, sequence_instances
from hta_widgets.analysis.stacks import call_stacks
from hta_widgets.analysis.steps import step_times
from hta_widgets.analysis.stragglers import stragglers
from hta_widgets.analysis.strategy import strategies, strategy_memory, training_strategy
from hta_widgets.analysis.stream_idle import stream_idle_breakdown, stream_idle_intervals
from hta_widgets.analysis.temporal import temporal_breakdown

__all__ = [
    "ANALYSES",
    "COMPARISONS",
    "Analysis",
    "Series",
    "annotated_kernels",
    "annotation_totals",
    "bandwidth_summary",
    "blocked_on_full_queue",
    "call_stacks",
    "collectives",
    "comm_comp_overlap",
    "comparability",
    "critical_path",
    "critical_path_summary",
    "cupti_counters",
    "diff",
    "idle_breakdown",
    "idle_gaps",
    "kernel_breakdown",
    "kernel_durations",
    "kernel_sequences",
    "kernel_type_breakdown",
    "launch_stats",
    "launch_summary",
    "memory_bandwidth",
    "memory_categories",
    "memory_peak",
    "memory_timeline",
    "module_stacks",
    "op_counts",
    "op_kernels",
    "overview",
    "queue_length",
    "queue_summary",
    "run_table",
    "sequence_instances",
    "step_times",
    "step_waterfall",
    "stragglers",
    "strategies",
    "strategy_memory",
    "stream_idle_breakdown",
    "stream_idle_intervals",
    "temporal_breakdown",
    "training_strategy",
    "user_annotations",
]
