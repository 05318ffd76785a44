"""All analyses that a panel can show, in display order.

A panel, a report and the command line need the same description of an analysis: what it computes, how to draw
it, how to put the answer in a sentence. Each module provides it as `ANALYSIS`; this module lists them. They
are imported when they are first looked up: all together take as long as pandas.
"""

from __future__ import annotations

from typing import Final

from hta_widgets.analysis.core.entry import Entries

ANALYSES: Final = Entries(
    {
        "overview": "findings.story",
        "step_times": "device_time.step_times",
        "serving_steps": "serving.steps",
        "serving_phases": "serving.phases",
        "step_parts": "device_time.step_parts",
        "roles": "serving.by_role",
        "temporal_breakdown": "device_time.temporal",
        "gpu_utilization": "device_time.gpu_utilization",
        "comm_comp_overlap": "device_time.overlap",
        "idle_breakdown": "idle.breakdown",
        "idle_gaps": "idle.gaps",
        "stream_idle_breakdown": "idle.streams",
        "kernel_type_breakdown": "device_time.kernel_types",
        "kernel_breakdown": "kernels.breakdown",
        "kernel_durations": "kernels.durations",
        "occupancy": "kernels.occupancy",
        "kernel_classes": "kernels.by_class",
        "operators": "operators.table",
        "roofline": "operators.roofline",
        "formula_coverage": "operators.coverage",
        "utilization": "operators.utilization",
        "op_kernels": "launches.op_kernels",
        "kernel_sequences": "calls.frequent_sequences",
        "fusion_candidates": "replay.fusion_candidates",
        "cupti_counters": "calls.cupti",
        "launch_stats": "launches.delays:LAUNCH_STATS",
        "launch_summary": "launches.delays:LAUNCH_SUMMARY",
        "queue_length": "launches.queue:QUEUE_LENGTH",
        "queue_summary": "launches.queue:QUEUE_SUMMARY",
        "blocked_on_full_queue": "launches.queue:FULL_QUEUES",
        "user_annotations": "annotations.regions",
        "annotation_totals": "annotations.kernels",
        "op_counts": "calls.op_counts",
        "call_stacks": "calls.call_stacks",
        "module_stacks": "calls.modules",
        "stragglers": "communication.stragglers",
        "rank_waits": "communication.rank_waits",
        "slowdown": "job.panel",
        "collectives": "communication.collectives",
        "alpha_beta": "communication.alpha_beta",
        "training_strategy": "strategy.table",
        "fsdp_units": "strategy.fsdp_units",
        "parallelism": "parallelism.grid",
        "pipeline": "parallelism.pipeline",
        "expert_balance": "parallelism.experts",
        "memory_timeline": "memory.usage:MEMORY_TIMELINE",
        "memory_peak": "memory.usage:MEMORY_PEAK",
        "memory_owners": "strategy.memory_panel",
        "memory_bandwidth": "copies.bandwidth:MEMORY_BANDWIDTH",
        "bandwidth_summary": "copies.bandwidth:BANDWIDTH_SUMMARY",
        "critical_path": "critical_path.path",
    }
)

TABLES: Final = Entries(
    {"critical_path_summary": "critical_path.by_name", "longest_events": "inspect.longest"}
)
"""Answers for the command line that no panel shows: another one draws the same, or lists it."""
