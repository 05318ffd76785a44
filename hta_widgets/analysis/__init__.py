"""Questions about a trace: each a function `(trace, scope) -> DataFrame`, with times in exact nanoseconds.

They are imported on first use: a script that asks one question should not have to load all of them.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hta_widgets.analysis.annotations.kernels import annotated_kernels, annotation_totals
    from hta_widgets.analysis.annotations.regions import user_annotations
    from hta_widgets.analysis.calls.call_stacks import call_stacks
    from hta_widgets.analysis.calls.cupti import cupti_counters
    from hta_widgets.analysis.calls.modules import module_stacks
    from hta_widgets.analysis.calls.op_counts import op_counts
    from hta_widgets.analysis.calls.sequences import kernel_sequences, sequence_instances
    from hta_widgets.analysis.communication.alpha_beta import alpha_beta
    from hta_widgets.analysis.communication.collectives import collectives
    from hta_widgets.analysis.communication.rank_waits import rank_waits
    from hta_widgets.analysis.communication.stragglers import stragglers
    from hta_widgets.analysis.compare.comparability import comparability
    from hta_widgets.analysis.compare.compare import diff
    from hta_widgets.analysis.compare.registry import COMPARISONS
    from hta_widgets.analysis.compare.run_table import run_table
    from hta_widgets.analysis.compare.waterfall import step_waterfall
    from hta_widgets.analysis.copies.bandwidth import bandwidth_summary, memory_bandwidth
    from hta_widgets.analysis.core.entry import Analysis
    from hta_widgets.analysis.counters import counters
    from hta_widgets.analysis.critical_path.path import critical_path
    from hta_widgets.analysis.critical_path.replayed import replayed_path
    from hta_widgets.analysis.critical_path.summary import critical_path_summary
    from hta_widgets.analysis.critical_path.what_if import what_if
    from hta_widgets.analysis.device_time.gpu_utilization import gpu_utilization
    from hta_widgets.analysis.device_time.kernel_types import kernel_type_breakdown
    from hta_widgets.analysis.device_time.overlap import comm_comp_overlap
    from hta_widgets.analysis.device_time.step_parts import step_parts
    from hta_widgets.analysis.device_time.step_times import step_times
    from hta_widgets.analysis.device_time.temporal import temporal_breakdown
    from hta_widgets.analysis.findings import overview, savings
    from hta_widgets.analysis.idle.breakdown import idle_breakdown
    from hta_widgets.analysis.idle.gaps import idle_gaps
    from hta_widgets.analysis.idle.streams import stream_idle_breakdown, stream_idle_intervals
    from hta_widgets.analysis.inspect.event import inspect_event
    from hta_widgets.analysis.inspect.gap import inspect_gap
    from hta_widgets.analysis.inspect.longest import longest_events
    from hta_widgets.analysis.inspect.step_difference import step_difference
    from hta_widgets.analysis.inspect.steps import compare_iterations
    from hta_widgets.analysis.inspect.window import inspect_window, same_stretch
    from hta_widgets.analysis.job.parts import job_iterations
    from hta_widgets.analysis.job.ranks import job_ranks
    from hta_widgets.analysis.job.slowdown import slowdown
    from hta_widgets.analysis.kernels.breakdown import kernel_breakdown
    from hta_widgets.analysis.kernels.by_class import kernel_classes
    from hta_widgets.analysis.kernels.durations import kernel_durations
    from hta_widgets.analysis.kernels.occupancy import occupancy
    from hta_widgets.analysis.kernels.peaks import Peaks, peaks_of, register_peaks
    from hta_widgets.analysis.launches.delays import launch_stats, launch_summary
    from hta_widgets.analysis.launches.op_kernels import op_kernels
    from hta_widgets.analysis.launches.queue import blocked_on_full_queue, queue_length, queue_summary
    from hta_widgets.analysis.memory.advice import memory_advice
    from hta_widgets.analysis.memory.categories import memory_categories
    from hta_widgets.analysis.memory.owners import memory_owners
    from hta_widgets.analysis.memory.usage import memory_peak, memory_timeline
    from hta_widgets.analysis.operators.coverage import formula_coverage
    from hta_widgets.analysis.operators.formulas import register_formula
    from hta_widgets.analysis.operators.roofline import roofline
    from hta_widgets.analysis.operators.table import operators
    from hta_widgets.analysis.operators.utilization import utilization
    from hta_widgets.analysis.parallelism.experts import expert_balance
    from hta_widgets.analysis.parallelism.grid import parallelism
    from hta_widgets.analysis.parallelism.pipeline import pipeline
    from hta_widgets.analysis.registry import ANALYSES
    from hta_widgets.analysis.replay.fusion_candidates import fusion_candidates
    from hta_widgets.analysis.replay.marginal import marginal_savings
    from hta_widgets.analysis.replay.quality import replay_quality
    from hta_widgets.analysis.replay.replayed_events import replayed_events
    from hta_widgets.analysis.replay.speed_map import speed_map
    from hta_widgets.analysis.serving.by_role import roles
    from hta_widgets.analysis.serving.phases import serving_phases
    from hta_widgets.analysis.serving.steps import serving_steps
    from hta_widgets.analysis.strategy.fsdp_units import fsdp_units
    from hta_widgets.analysis.strategy.model_states import strategy_memory
    from hta_widgets.analysis.strategy.table import strategies, training_strategy
    from hta_widgets.charts.spec import Series

__all__ = [
    "ANALYSES", "COMPARISONS", "Analysis", "Peaks", "Series", "alpha_beta", "annotated_kernels",
    "annotation_totals", "bandwidth_summary", "blocked_on_full_queue", "call_stacks", "collectives",
    "comm_comp_overlap", "comparability", "compare_iterations", "counters", "critical_path",
    "critical_path_summary", "cupti_counters", "diff", "expert_balance", "formula_coverage", "fsdp_units",
    "fusion_candidates", "gpu_utilization", "idle_breakdown", "idle_gaps", "inspect_event", "inspect_gap",
    "inspect_window", "job_iterations", "job_ranks", "kernel_breakdown", "kernel_classes", "kernel_durations",
    "kernel_sequences", "kernel_type_breakdown", "launch_stats", "launch_summary", "longest_events",
    "marginal_savings", "memory_advice", "memory_bandwidth", "memory_categories", "memory_owners",
    "memory_peak", "memory_timeline", "module_stacks", "occupancy", "op_counts", "op_kernels", "operators",
    "overview", "parallelism", "peaks_of", "pipeline", "queue_length", "queue_summary", "rank_waits",
    "register_formula", "register_peaks", "replay_quality", "replayed_events", "replayed_path", "roles",
    "roofline", "run_table", "same_stretch", "savings", "sequence_instances", "serving_phases",
    "serving_steps", "slowdown", "speed_map", "step_difference", "step_parts", "step_times", "step_waterfall",
    "stragglers", "strategies", "strategy_memory", "stream_idle_breakdown", "stream_idle_intervals",
    "temporal_breakdown", "training_strategy", "user_annotations", "utilization", "what_if",
]  # fmt: skip

_MODULES = {
    "ANALYSES": "hta_widgets.analysis.registry",
    "COMPARISONS": "hta_widgets.analysis.compare.registry",
    "Analysis": "hta_widgets.analysis.core.entry",
    "Peaks": "hta_widgets.analysis.kernels.peaks",
    "Series": "hta_widgets.charts.spec",
    "alpha_beta": "hta_widgets.analysis.communication.alpha_beta",
    "annotated_kernels": "hta_widgets.analysis.annotations.kernels",
    "annotation_totals": "hta_widgets.analysis.annotations.kernels",
    "bandwidth_summary": "hta_widgets.analysis.copies.bandwidth",
    "blocked_on_full_queue": "hta_widgets.analysis.launches.queue",
    "call_stacks": "hta_widgets.analysis.calls.call_stacks",
    "collectives": "hta_widgets.analysis.communication.collectives",
    "comm_comp_overlap": "hta_widgets.analysis.device_time.overlap",
    "comparability": "hta_widgets.analysis.compare.comparability",
    "compare_iterations": "hta_widgets.analysis.inspect.steps",
    "critical_path": "hta_widgets.analysis.critical_path.path",
    "critical_path_summary": "hta_widgets.analysis.critical_path.summary",
    "counters": "hta_widgets.analysis.counters",
    "cupti_counters": "hta_widgets.analysis.calls.cupti",
    "diff": "hta_widgets.analysis.compare.compare",
    "expert_balance": "hta_widgets.analysis.parallelism.experts",
    "formula_coverage": "hta_widgets.analysis.operators.coverage",
    "fsdp_units": "hta_widgets.analysis.strategy.fsdp_units",
    "fusion_candidates": "hta_widgets.analysis.replay.fusion_candidates",
    "gpu_utilization": "hta_widgets.analysis.device_time.gpu_utilization",
    "idle_breakdown": "hta_widgets.analysis.idle.breakdown",
    "idle_gaps": "hta_widgets.analysis.idle.gaps",
    "inspect_event": "hta_widgets.analysis.inspect.event",
    "inspect_gap": "hta_widgets.analysis.inspect.gap",
    "inspect_window": "hta_widgets.analysis.inspect.window",
    "job_iterations": "hta_widgets.analysis.job.parts",
    "job_ranks": "hta_widgets.analysis.job.ranks",
    "kernel_breakdown": "hta_widgets.analysis.kernels.breakdown",
    "kernel_classes": "hta_widgets.analysis.kernels.by_class",
    "kernel_durations": "hta_widgets.analysis.kernels.durations",
    "kernel_sequences": "hta_widgets.analysis.calls.sequences",
    "kernel_type_breakdown": "hta_widgets.analysis.device_time.kernel_types",
    "launch_stats": "hta_widgets.analysis.launches.delays",
    "launch_summary": "hta_widgets.analysis.launches.delays",
    "longest_events": "hta_widgets.analysis.inspect.longest",
    "marginal_savings": "hta_widgets.analysis.replay.marginal",
    "memory_advice": "hta_widgets.analysis.memory.advice",
    "memory_bandwidth": "hta_widgets.analysis.copies.bandwidth",
    "memory_categories": "hta_widgets.analysis.memory.categories",
    "memory_owners": "hta_widgets.analysis.memory.owners",
    "memory_peak": "hta_widgets.analysis.memory.usage",
    "memory_timeline": "hta_widgets.analysis.memory.usage",
    "module_stacks": "hta_widgets.analysis.calls.modules",
    "occupancy": "hta_widgets.analysis.kernels.occupancy",
    "op_counts": "hta_widgets.analysis.calls.op_counts",
    "op_kernels": "hta_widgets.analysis.launches.op_kernels",
    "operators": "hta_widgets.analysis.operators.table",
    "overview": "hta_widgets.analysis.findings",
    "parallelism": "hta_widgets.analysis.parallelism.grid",
    "peaks_of": "hta_widgets.analysis.kernels.peaks",
    "pipeline": "hta_widgets.analysis.parallelism.pipeline",
    "queue_length": "hta_widgets.analysis.launches.queue",
    "queue_summary": "hta_widgets.analysis.launches.queue",
    "rank_waits": "hta_widgets.analysis.communication.rank_waits",
    "register_formula": "hta_widgets.analysis.operators.formulas",
    "register_peaks": "hta_widgets.analysis.kernels.peaks",
    "replay_quality": "hta_widgets.analysis.replay.quality",
    "replayed_events": "hta_widgets.analysis.replay.replayed_events",
    "replayed_path": "hta_widgets.analysis.critical_path.replayed",
    "roles": "hta_widgets.analysis.serving.by_role",
    "roofline": "hta_widgets.analysis.operators.roofline",
    "run_table": "hta_widgets.analysis.compare.run_table",
    "same_stretch": "hta_widgets.analysis.inspect.window",
    "savings": "hta_widgets.analysis.findings",
    "sequence_instances": "hta_widgets.analysis.calls.sequences",
    "serving_phases": "hta_widgets.analysis.serving.phases",
    "serving_steps": "hta_widgets.analysis.serving.steps",
    "slowdown": "hta_widgets.analysis.job.slowdown",
    "speed_map": "hta_widgets.analysis.replay.speed_map",
    "step_difference": "hta_widgets.analysis.inspect.step_difference",
    "step_parts": "hta_widgets.analysis.device_time.step_parts",
    "step_times": "hta_widgets.analysis.device_time.step_times",
    "step_waterfall": "hta_widgets.analysis.compare.waterfall",
    "stragglers": "hta_widgets.analysis.communication.stragglers",
    "strategies": "hta_widgets.analysis.strategy.table",
    "strategy_memory": "hta_widgets.analysis.strategy.model_states",
    "stream_idle_breakdown": "hta_widgets.analysis.idle.streams",
    "stream_idle_intervals": "hta_widgets.analysis.idle.streams",
    "temporal_breakdown": "hta_widgets.analysis.device_time.temporal",
    "training_strategy": "hta_widgets.analysis.strategy.table",
    "user_annotations": "hta_widgets.analysis.annotations.regions",
    "utilization": "hta_widgets.analysis.operators.utilization",
    "what_if": "hta_widgets.analysis.critical_path.what_if",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_MODULES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*globals(), *__all__]


class _Package(ModuleType):
    """Python puts each imported submodule into its package, where `critical_path` is the analysis."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _MODULES and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
