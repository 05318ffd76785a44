"""Every analysis there is, called with what it needs, for tests that hold for all of them."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import pandas as pd

from hta_widgets.errors import HtaWidgetsError
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope

# module, function, options
_CALLS: list[tuple[str, str, dict[str, Any]]] = [
    ("findings", "overview", {}),
    ("steps", "step_times", {}),
    ("temporal", "temporal_breakdown", {}),
    ("temporal", "temporal_breakdown", {"by": "iteration"}),
    ("overlap", "comm_comp_overlap", {}),
    ("kernel_types", "kernel_type_breakdown", {}),
    ("kernels", "kernel_breakdown", {}),
    ("kernels", "kernel_breakdown", {"top": 2}),
    ("kernel_durations", "kernel_durations", {}),
    ("annotations", "user_annotations", {"side": "gpu"}),
    ("annotations", "user_annotations", {"side": "cpu"}),
    ("annotated_kernels", "annotated_kernels", {}),
    ("annotated_kernels", "annotation_totals", {}),
    ("idle", "idle_breakdown", {}),
    ("idle", "idle_breakdown", {"by": "iteration"}),
    ("gaps", "idle_gaps", {}),
    ("stream_idle", "stream_idle_intervals", {}),
    ("stream_idle", "stream_idle_breakdown", {}),
    ("launches", "launch_stats", {}),
    ("launches", "launch_summary", {}),
    ("op_kernels", "op_kernels", {}),
    ("queue", "queue_length", {}),
    ("queue", "queue_summary", {}),
    ("queue", "blocked_on_full_queue", {"limit": 2}),
    ("bandwidth", "memory_bandwidth", {}),
    ("bandwidth", "bandwidth_summary", {}),
    ("collectives", "collectives", {}),
    ("stragglers", "stragglers", {}),
    ("memory", "memory_timeline", {}),
    ("memory", "memory_peak", {}),
    ("op_counts", "op_counts", {}),
    ("sequences", "kernel_sequences", {"operator": "aten::", "min_length": 1}),
    ("modules", "module_stacks", {}),
    ("stacks", "call_stacks", {}),
    ("cupti", "cupti_counters", {}),
    ("critical_path.path", "critical_path", {}),
]
Question = Callable[[Trace, Scope], pd.DataFrame]


def _asker(module: str, function: str, options: dict[str, Any]) -> Question:
    def ask(trace: Trace, scope: Scope) -> pd.DataFrame:
        analysis = importlib.import_module(f"hta_widgets.analysis.{module}")
        frame: pd.DataFrame = getattr(analysis, function)(trace, scope, **options)
        return frame

    return ask


EVERY_ANALYSIS: dict[str, Question] = {
    function + "".join(f"-{value}" for value in options.values() if isinstance(value, str | int)): _asker(
        module, function, options
    )
    for module, function, options in _CALLS
}


def all_answers(trace: Trace, scope: Scope) -> dict[str, pd.DataFrame | str]:
    """Each analysis's frame, or what is missing for it. Any other error is passed on."""
    told: dict[str, pd.DataFrame | str] = {}
    for name, ask in EVERY_ANALYSIS.items():
        try:
            told[name] = ask(trace, scope)
        except HtaWidgetsError as missing:
            told[name] = f"{type(missing).__name__}: {missing}"
    return told
