"""The tables in hta.md: each method of HTA's classes with the function of ours that answers the same."""

import inspect
import re
from typing import Any

from docs.docstrings import cell, prose
from hta_widgets import analysis
from hta_widgets.hta.memory_analysis import MemoryAnalysis
from hta_widgets.hta.trace_analysis import TraceAnalysis
from hta_widgets.hta.trace_diff import LabeledTrace, TraceDiff

CLASSES: dict[str, type[Any]] = {
    item.__name__: item for item in (TraceAnalysis, TraceDiff, LabeledTrace, MemoryAnalysis)
}
MARK = re.compile(r"<!-- methods of (\w+) -->")

# Names in `hta_widgets.analysis`, or an attribute of a trace; () where nothing else of ours does it.
OURS: dict[str, tuple[str, ...]] = {
    "TraceAnalysis.get_comm_comp_overlap": ("comm_comp_overlap",),
    "TraceAnalysis.get_profiler_steps": ("trace.iterations",),
    "TraceAnalysis.get_potential_stragglers": ("stragglers",),
    "TraceAnalysis.get_gpu_kernel_breakdown": ("kernel_type_breakdown", "kernel_breakdown"),
    "TraceAnalysis.get_gpu_kernels_with_user_annotations": ("annotated_kernels", "annotation_totals"),
    "TraceAnalysis.get_gpu_user_annotation_breakdown": ("user_annotations",),
    "TraceAnalysis.get_temporal_breakdown": ("temporal_breakdown",),
    "TraceAnalysis.get_frequent_cuda_kernel_sequences": ("kernel_sequences",),
    "TraceAnalysis.get_aten_op_kernels_and_delay": ("op_kernels",),
    "TraceAnalysis.get_cuda_kernel_launch_stats": ("launch_stats", "launch_summary"),
    "TraceAnalysis.generate_trace_with_counters": ("queue_length", "memory_bandwidth"),
    "TraceAnalysis.get_queue_length_time_series": ("queue_length",),
    "TraceAnalysis.get_queue_length_summary": ("queue_summary",),
    "TraceAnalysis.get_queue_length_summary_from_time_series": ("queue_summary",),
    "TraceAnalysis.get_time_spent_blocked_on_full_queue": ("blocked_on_full_queue",),
    "TraceAnalysis.get_memory_bw_time_series": ("memory_bandwidth",),
    "TraceAnalysis.get_memory_bw_summary": ("bandwidth_summary",),
    "TraceAnalysis.get_idle_time_breakdown": ("stream_idle_breakdown", "idle_breakdown"),
    "TraceAnalysis.get_cupti_counter_data_with_operators": ("cupti_counters",),
    "TraceAnalysis.critical_path_analysis": ("critical_path",),
    "TraceAnalysis.overlay_critical_path_analysis": ("critical_path",),
    "TraceDiff.compare_traces": ("diff",),
    "TraceDiff.ops_diff": ("diff",),
    "TraceDiff.visualize_counts_diff": ("diff",),
    "TraceDiff.visualize_duration_diff": ("diff",),
    "LabeledTrace.ranks": ("trace.ranks",),
    "LabeledTrace.iterations": ("trace.iterations",),
    "LabeledTrace.scope": ("Scope",),
    "LabeledTrace.extract_ops": ("trace.events",),
    "LabeledTrace.get_ops_summary": ("op_counts",),
    "MemoryAnalysis.plot_memory_timeline": ("memory_categories",),
}


def fill_in(markdown: str) -> str:
    """Replace each mark by the table of its class."""
    return MARK.sub(lambda match: _table(match.group(1)), markdown)


def methods_of(kind: str) -> list[str]:
    """HTA's methods whose question the analysis answers."""
    return [method for method, ours in OURS.items() if kind in ours]


def _table(name: str) -> str:
    cls = CLASSES[name]
    there = [method for method in vars(cls) if not method.startswith("_")]
    listed = [method.split(".")[1] for method in OURS if method.startswith(f"{name}.")]
    if there != listed:
        raise ValueError(
            f"docs/hta_methods.py lists other methods than {name} has: {sorted({*there} ^ {*listed})}"
        )
    rows = [f"| `{method}` | {_what(cls, method)} | {_named(OURS[f'{name}.{method}'])} |" for method in there]
    return "\n".join(["| method | what it returns | ours |", "|---|---|---|", *rows])


def _what(cls: type[Any], method: str) -> str:
    """The first sentence or two of the docstring."""
    return cell(prose((inspect.getdoc(getattr(cls, method)) or "").split("\n\n")[0]))


def _named(ours: tuple[str, ...]) -> str:
    for name in ours:
        assert name.startswith(("trace.", "Scope")) or hasattr(analysis, name), name
    return ", ".join(f"`analysis.{name}`" if name == "diff" else f"`{name}`" for name in ours)
