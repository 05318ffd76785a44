"""All analyses that a panel can show, in display order.

A panel, a report and the command line need the same description of an analysis: what it computes, how to draw
it, how to put the answer in a sentence. Each module provides it as `ANALYSIS`; this module lists them.
"""

from __future__ import annotations

from hta_widgets.analysis.annotations import kernels as annotated_kernels
from hta_widgets.analysis.annotations import regions
from hta_widgets.analysis.calls import cupti, frequent_sequences, modules, op_counts, stacks
from hta_widgets.analysis.communication import alpha_beta, collectives, rank_waits, stragglers
from hta_widgets.analysis.copies import bandwidth
from hta_widgets.analysis.core.entry import Analysis
from hta_widgets.analysis.critical_path import path as critical_path
from hta_widgets.analysis.device_time import kernel_types, overlap, step_times, temporal
from hta_widgets.analysis.findings.overview import ANALYSIS as OVERVIEW
from hta_widgets.analysis.idle import breakdown as idle_breakdown
from hta_widgets.analysis.idle import gaps, streams
from hta_widgets.analysis.job import panel as slowdown
from hta_widgets.analysis.kernels import breakdown as kernel_breakdown
from hta_widgets.analysis.kernels import by_class, durations, occupancy
from hta_widgets.analysis.launches import delays, op_kernels, queue
from hta_widgets.analysis.memory import usage
from hta_widgets.analysis.operators import coverage, roofline, utilization
from hta_widgets.analysis.operators import table as operators
from hta_widgets.analysis.parallelism import experts, grid, pipeline
from hta_widgets.analysis.replay import fusion_candidates
from hta_widgets.analysis.strategy import fsdp_units, memory_panel
from hta_widgets.analysis.strategy import table as strategy

__all__ = ["ANALYSES"]

ANALYSES: dict[str, Analysis] = {
    entry.kind: entry
    for entry in (
        OVERVIEW,
        step_times.ANALYSIS,
        temporal.ANALYSIS,
        overlap.ANALYSIS,
        idle_breakdown.ANALYSIS,
        gaps.ANALYSIS,
        streams.ANALYSIS,
        kernel_types.ANALYSIS,
        kernel_breakdown.ANALYSIS,
        durations.ANALYSIS,
        occupancy.ANALYSIS,
        by_class.ANALYSIS,
        operators.ANALYSIS,
        roofline.ANALYSIS,
        coverage.ANALYSIS,
        utilization.ANALYSIS,
        op_kernels.ANALYSIS,
        frequent_sequences.ANALYSIS,
        fusion_candidates.ANALYSIS,
        cupti.ANALYSIS,
        *delays.ANALYSES,
        *queue.ANALYSES,
        regions.ANALYSIS,
        annotated_kernels.ANALYSIS,
        op_counts.ANALYSIS,
        stacks.ANALYSIS,
        modules.ANALYSIS,
        stragglers.ANALYSIS,
        rank_waits.ANALYSIS,
        slowdown.ANALYSIS,
        collectives.ANALYSIS,
        alpha_beta.ANALYSIS,
        strategy.ANALYSIS,
        fsdp_units.ANALYSIS,
        grid.ANALYSIS,
        pipeline.ANALYSIS,
        experts.ANALYSIS,
        *usage.ANALYSES,
        memory_panel.ANALYSIS,
        *bandwidth.ANALYSES,
        critical_path.ANALYSIS,
    )
}
