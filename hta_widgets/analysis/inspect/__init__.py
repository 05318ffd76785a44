"""Everything known about one event, one gap of a stream, or one stretch of time."""

from __future__ import annotations

from hta_widgets.analysis.inspect.event import inspect_event
from hta_widgets.analysis.inspect.gap import inspect_gap
from hta_widgets.analysis.inspect.longest import longest_events
from hta_widgets.analysis.inspect.steps import compare_iterations
from hta_widgets.analysis.inspect.window import inspect_window, same_stretch

__all__ = [
    "compare_iterations",
    "inspect_event",
    "inspect_gap",
    "inspect_window",
    "longest_events",
    "same_stretch",
]
