"""Questions about a trace: each a function `(trace, scope) -> DataFrame`, with times in exact nanoseconds."""

from hta_widgets.analysis.annotations.kernels import annotated_kernels, annotation_totals
from hta_widgets.analysis.annotations.regions import user_annotations
from hta_widgets.analysis.calls.cupti import cupti_counters
from hta_widgets.analysis.calls.modules import module_stacks
from hta_widgets.analysis.calls.op_counts import op_counts
from hta_widgets.analysis.calls.sequences import kernel_sequences, sequence_instances
from hta_widgets.analysis.calls.stacks import call_stacks
from hta_widgets.analysis.communication.collectives import collectives
from hta_widgets.analysis.communication.stragglers import stragglers
from hta_widgets.analysis.compare import comparability, diff, run_table, step_waterfall
from hta_widgets.analysis.compare.registry import COMPARISONS
from hta_widgets.analysis.copies.bandwidth import bandwidth_summary, memory_bandwidth
from hta_widgets.analysis.core.entry import Analysis
from hta_widgets.analysis.critical_path import critical_path, critical_path_summary
from hta_widgets.analysis.device_time.kernel_types import kernel_type_breakdown
from hta_widgets.analysis.device_time.overlap import comm_comp_overlap
from hta_widgets.analysis.device_time.step_times import step_times
from hta_widgets.analysis.device_time.temporal import temporal_breakdown
from hta_widgets.analysis.findings import overview, savings
from hta_widgets.analysis.idle.breakdown import idle_breakdown
from hta_widgets.analysis.idle.gaps import idle_gaps
from hta_widgets.analysis.idle.streams import stream_idle_breakdown, stream_idle_intervals
from hta_widgets.analysis.job import slowdown
from hta_widgets.analysis.kernels.breakdown import kernel_breakdown
from hta_widgets.analysis.kernels.by_class import kernel_classes
from hta_widgets.analysis.kernels.durations import kernel_durations
from hta_widgets.analysis.kernels.occupancy import occupancy
from hta_widgets.analysis.kernels.peaks import Peaks, peaks_of, register_peaks
from hta_widgets.analysis.launches.delays import launch_stats, launch_summary
from hta_widgets.analysis.launches.op_kernels import op_kernels
from hta_widgets.analysis.launches.queue import blocked_on_full_queue, queue_length, queue_summary
from hta_widgets.analysis.memory.categories import memory_categories
from hta_widgets.analysis.memory.usage import memory_peak, memory_timeline
from hta_widgets.analysis.operators.coverage import formula_coverage
from hta_widgets.analysis.operators.formulas import register_formula
from hta_widgets.analysis.operators.roofline import roofline
from hta_widgets.analysis.operators.table import operators
from hta_widgets.analysis.registry import ANALYSES
from hta_widgets.analysis.replay import marginal_savings, replay_quality, speed_map, what_if
from hta_widgets.analysis.strategy import strategies, strategy_memory, training_strategy
from hta_widgets.charts.spec import Series

__all__ = [
    "ANALYSES",
    "COMPARISONS",
    "Analysis",
    "Peaks",
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
    "formula_coverage",
    "idle_breakdown",
    "idle_gaps",
    "kernel_breakdown",
    "kernel_classes",
    "kernel_durations",
    "kernel_sequences",
    "kernel_type_breakdown",
    "launch_stats",
    "launch_summary",
    "marginal_savings",
    "memory_bandwidth",
    "memory_categories",
    "memory_peak",
    "memory_timeline",
    "module_stacks",
    "occupancy",
    "op_counts",
    "op_kernels",
    "operators",
    "overview",
    "peaks_of",
    "queue_length",
    "queue_summary",
    "register_formula",
    "register_peaks",
    "replay_quality",
    "roofline",
    "run_table",
    "savings",
    "sequence_instances",
    "slowdown",
    "speed_map",
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
    "what_if",
]
