"""How far HTA's rounding can move a number.

If any timestamp of a file has a fraction, HTA turns [start, end) into [ceil(start), floor(end)) in us. Either
edge moves by less than 1 us, so a duration loses less than 2 us; one without a whole us inside becomes -1,
that is 3 us at most. A sum over n events is off by less than 3n. A percentage of part in whole is off by what
both move.

What rounding decides rather than moves (which gap has which cause, what overlaps what) has no bound: those
questions are compared on the copy in whole ns alone, where nothing is rounded and every cell must be equal.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

EDGE_US = 1.0
SPAN_US = 3.0

UNBOUNDED = (
    "overlap", "idle", "bandwidth", "blocked", "queue", "counters", "sequences", "call_graph",
    "critical_path", "kernels_with_annotations", "operator_kernels", "filter", "stragglers", "cupti",
    "trace_frame", "trace_facts",
    "kernels", "kernels_without_memory", "cpu_annotations_5",
)  # fmt: skip


def is_bounded(question: str) -> bool:
    return question == "kernels_all" or not question.startswith(UNBOUNDED)


def bound(events: int) -> Callable[[str, str, dict[str, Any]], float]:
    """The tolerance for a job of so many device events."""

    def tolerance(question: str, column: str, row: dict[str, Any]) -> float:
        if question == "temporal":
            moved = SPAN_US * events
            return 100 * 2 * moved / max(row["kernel_time(us)"], 1) if column.endswith("_pctg") else moved
        if question == "kernels_all.0":
            return 100.0 if column == "percentage" else SPAN_US * events
        if column == "sum (us)":
            return SPAN_US * _launches(row, events)
        if column == "stddev":
            return SPAN_US * math.sqrt(2)
        return SPAN_US if column.endswith(("(us)", "duration", "delay")) else 0.0

    return tolerance


def _launches(row: dict[str, Any], events: int) -> float:
    mean = row.get("mean (us)")
    return float(abs(row["sum (us)"] / mean)) if mean else events
