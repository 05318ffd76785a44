"""Every analysis there is, called with what it needs, for tests that hold for all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd

from hta_widgets import analysis
from hta_widgets.errors import HtaWidgetsError
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope

# function, options
_CALLS: list[tuple[str, dict[str, Any]]] = [
    ("overview", {}),
    ("step_times", {}),
    ("temporal_breakdown", {}),
    ("temporal_breakdown", {"by": "iteration"}),
    ("comm_comp_overlap", {}),
    ("kernel_type_breakdown", {}),
    ("kernel_breakdown", {}),
    ("kernel_breakdown", {"top": 2}),
    ("kernel_durations", {}),
    ("user_annotations", {"side": "gpu"}),
    ("user_annotations", {"side": "cpu"}),
    ("annotated_kernels", {}),
    ("annotation_totals", {}),
    ("idle_breakdown", {}),
    ("idle_breakdown", {"by": "iteration"}),
    ("idle_gaps", {}),
    ("stream_idle_intervals", {}),
    ("stream_idle_breakdown", {}),
    ("launch_stats", {}),
    ("launch_summary", {}),
    ("op_kernels", {}),
    ("queue_length", {}),
    ("queue_summary", {}),
    ("blocked_on_full_queue", {"limit": 2}),
    ("memory_bandwidth", {}),
    ("bandwidth_summary", {}),
    ("collectives", {}),
    ("stragglers", {}),
    ("training_strategy", {}),
    ("memory_timeline", {}),
    ("memory_peak", {}),
    ("op_counts", {}),
    ("kernel_sequences", {"operator": "aten::", "min_length": 1}),
    ("module_stacks", {}),
    ("call_stacks", {}),
    ("cupti_counters", {}),
    ("critical_path", {}),
]
Question = Callable[[Trace, Scope], pd.DataFrame]


def _asker(function: str, options: dict[str, Any]) -> Question:
    def ask(trace: Trace, scope: Scope) -> pd.DataFrame:
        frame: pd.DataFrame = getattr(analysis, function)(trace, scope, **options)
        return frame

    return ask


EVERY_ANALYSIS: dict[str, Question] = {
    function + "".join(f"-{value}" for value in options.values() if isinstance(value, str | int)): _asker(
        function, options
    )
    for function, options in _CALLS
}


def all_answers(trace: Trace, scope: Scope) -> dict[str, pd.DataFrame | str]:
    """Each analysis's frame, or what is missing for it. Any other error is passed on."""
    answers: dict[str, pd.DataFrame | str] = {}
    for name, ask in EVERY_ANALYSIS.items():
        try:
            answers[name] = ask(trace, scope)
        except HtaWidgetsError as missing:
            answers[name] = f"{type(missing).__name__}: {missing}"
    return answers
