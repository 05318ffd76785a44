"""Plotly figures of answers: `figures.<analysis>(frame) -> Figure`. They draw a frame and compute nothing."""

from hta_widgets.charts.plotly.annotations import annotation_totals, user_annotations
from hta_widgets.charts.plotly.bandwidth import memory_bandwidth
from hta_widgets.charts.plotly.comparisons import (
    comparability,
    diff,
    run_table,
    step_waterfall,
    training_strategy,
)
from hta_widgets.charts.plotly.critical_path import critical_path
from hta_widgets.charts.plotly.cupti import cupti_counters
from hta_widgets.charts.plotly.idle import idle_breakdown, stream_idle_breakdown
from hta_widgets.charts.plotly.kernel_types import kernel_type_breakdown
from hta_widgets.charts.plotly.kernels import kernel_breakdown, kernel_durations
from hta_widgets.charts.plotly.launches import launch_stats
from hta_widgets.charts.plotly.memory import hta_memory_timeline, memory_peak, memory_timeline
from hta_widgets.charts.plotly.op_kernels import op_kernels
from hta_widgets.charts.plotly.overlap import comm_comp_overlap
from hta_widgets.charts.plotly.overview import overview, step_times
from hta_widgets.charts.plotly.queue import queue_length
from hta_widgets.charts.plotly.sequences import kernel_sequences
from hta_widgets.charts.plotly.stacks import call_stacks, module_stacks
from hta_widgets.charts.plotly.stragglers import stragglers
from hta_widgets.charts.plotly.summaries import (
    bandwidth_summary,
    blocked_on_full_queue,
    collectives,
    idle_gaps,
    launch_summary,
    op_counts,
    queue_summary,
)
from hta_widgets.charts.plotly.temporal import temporal_breakdown

__all__ = [
    "annotation_totals",
    "bandwidth_summary",
    "blocked_on_full_queue",
    "call_stacks",
    "collectives",
    "comm_comp_overlap",
    "comparability",
    "critical_path",
    "cupti_counters",
    "diff",
    "hta_memory_timeline",
    "idle_breakdown",
    "idle_gaps",
    "kernel_breakdown",
    "kernel_durations",
    "kernel_sequences",
    "kernel_type_breakdown",
    "launch_stats",
    "launch_summary",
    "memory_bandwidth",
    "memory_peak",
    "memory_timeline",
    "module_stacks",
    "op_counts",
    "op_kernels",
    "overview",
    "queue_length",
    "queue_summary",
    "run_table",
    "step_times",
    "step_waterfall",
    "stragglers",
    "stream_idle_breakdown",
    "temporal_breakdown",
    "training_strategy",
    "user_annotations",
]
