"""How long an analysis takes to answer again after the selected window, iterations or ranks changed."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from benchmarks.figure import Figure
from benchmarks.process import call
from benchmarks.setup import Setup
from hta_widgets import analysis
from hta_widgets.errors import MissingDataError
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope

Question = Callable[[Trace, Scope], Any]
ANALYSES: dict[str, Question] = {
    function.__name__: function
    for function in (
        analysis.temporal_breakdown,
        analysis.comm_comp_overlap,
        analysis.idle_breakdown,
        analysis.stream_idle_breakdown,
        analysis.kernel_type_breakdown,
        analysis.kernel_breakdown,
        analysis.kernel_durations,
        analysis.launch_summary,
        analysis.queue_summary,
        analysis.bandwidth_summary,
        analysis.user_annotations,
        analysis.op_counts,
        analysis.call_stacks,
        analysis.critical_path,
        analysis.operators,
        analysis.roofline,
        analysis.formula_coverage,
        analysis.utilization,
    )
} | {f"operators by {by}": partial(analysis.operators, by=by) for by in ("shapes", "category", "call_path")}
EVENTS = 1_000_000
SMALL = 100_000
GOAL_MS = 100.0  # the slowest


def scopes(trace: Trace) -> Iterator[Scope]:
    """Windows of every width, and iterations."""
    first, last = trace.extent_ns
    span = last - first
    for begin, end in ((0.0, 0.9), (0.1, 1.0), (0.25, 0.75), (0.4, 0.6), (0.5, 0.51)):
        yield Scope(window_ns=(first + int(begin * span), first + int(end * span)))
    numbers = trace.iterations["iteration"].tolist()
    for count in (1, 10, len(numbers) // 2):
        yield Scope(iterations=tuple(numbers[:count]))


def measure(setup: Setup) -> list[Figure]:
    """CPU ms of eight other selections: median, and extent."""
    path = setup.recording_of(SMALL if setup.small else EVENTS)
    times: dict[str, list[float]] = call(answered, path, **setup.kernels).result
    return [
        Figure(f"`{name}`, CPU ms", others, goal=None if setup.small else GOAL_MS)
        for name, others in sorted(times.items(), key=lambda item: -statistics.median(item[1]))
    ]


def answered(path: str) -> dict[str, list[float]]:
    """CPU ms of each selection, after the whole recording was asked about."""
    trace = Trace.open(path)
    times: dict[str, list[float]] = {}
    for name, ask in ANALYSES.items():
        try:
            _ms(ask, trace, Scope())
        except MissingDataError:
            continue
        times[name] = [_ms(ask, trace, scope) for scope in scopes(trace)]
    return times


def _ms(ask: Question, trace: Trace, scope: Scope) -> float:
    begun = time.process_time()
    ask(trace, scope)
    return 1000 * (time.process_time() - begun)
