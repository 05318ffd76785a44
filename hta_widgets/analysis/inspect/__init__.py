"""Everything known about one event, one gap of a stream, or one stretch of time."""

from __future__ import annotations

from hta_widgets.analysis.inspect.event import inspect_event
from hta_widgets.analysis.inspect.gap import inspect_gap
from hta_widgets.analysis.inspect.window import inspect_window, same_stretch

__all__ = ["inspect_event", "inspect_gap", "inspect_window", "same_stretch"]
