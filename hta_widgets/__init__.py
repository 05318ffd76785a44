"""Explore PyTorch profiler (Kineto) traces of many ranks in a notebook.

    from hta_widgets import TraceExplorer, examples

    TraceExplorer(examples.path("ddp_4ranks"))

The names below are the public API. They are imported on first use: reading a trace in a script should not
have to load the widgets.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hta_widgets.version import __version__ as __version__

if TYPE_CHECKING:
    from hta_widgets import analysis, examples
    from hta_widgets.analysis.replay import edits
    from hta_widgets.hta.trace_analysis import TraceAnalysis
    from hta_widgets.hta.trace_diff import DeviceType, LabeledTrace, TraceDiff
    from hta_widgets.memory_snapshot.snapshot import MemorySnapshot
    from hta_widgets.trace.model import Trace
    from hta_widgets.trace.scope import Scope
    from hta_widgets.widgets.breadcrumb import Breadcrumb
    from hta_widgets.widgets.breakdown_panel import BreakdownPanel
    from hta_widgets.widgets.comparison_panel import ComparisonPanel
    from hta_widgets.widgets.diff_viewer import DiffViewer
    from hta_widgets.widgets.events_table import EventsTable
    from hta_widgets.widgets.inspector import Inspector
    from hta_widgets.widgets.iteration_selector import IterationSelector
    from hta_widgets.widgets.job_view import JobView
    from hta_widgets.widgets.memory_view import MemoryView
    from hta_widgets.widgets.rank_selector import RankSelector
    from hta_widgets.widgets.selection import Selection
    from hta_widgets.widgets.timeline_scrubber import TimelineScrubber
    from hta_widgets.widgets.trace_explorer import TraceExplorer
    from hta_widgets.widgets.what_if import WhatIf

__all__ = [
    "Breadcrumb", "BreakdownPanel", "ComparisonPanel", "DeviceType", "DiffViewer", "EventsTable", "Inspector",
    "IterationSelector", "JobView", "LabeledTrace", "MemorySnapshot", "MemoryView", "RankSelector", "Scope",
    "Selection", "TimelineScrubber", "Trace", "TraceAnalysis", "TraceDiff", "TraceExplorer", "WhatIf",
    "analysis", "edits", "examples",
]  # fmt: skip

_MODULES = {
    "Breadcrumb": "hta_widgets.widgets.breadcrumb",
    "BreakdownPanel": "hta_widgets.widgets.breakdown_panel",
    "ComparisonPanel": "hta_widgets.widgets.comparison_panel",
    "DeviceType": "hta_widgets.hta.trace_diff",
    "DiffViewer": "hta_widgets.widgets.diff_viewer",
    "EventsTable": "hta_widgets.widgets.events_table",
    "Inspector": "hta_widgets.widgets.inspector",
    "IterationSelector": "hta_widgets.widgets.iteration_selector",
    "JobView": "hta_widgets.widgets.job_view",
    "LabeledTrace": "hta_widgets.hta.trace_diff",
    "MemorySnapshot": "hta_widgets.memory_snapshot.snapshot",
    "MemoryView": "hta_widgets.widgets.memory_view",
    "RankSelector": "hta_widgets.widgets.rank_selector",
    "Scope": "hta_widgets.trace.scope",
    "Selection": "hta_widgets.widgets.selection",
    "TimelineScrubber": "hta_widgets.widgets.timeline_scrubber",
    "Trace": "hta_widgets.trace.model",
    "TraceAnalysis": "hta_widgets.hta.trace_analysis",
    "TraceDiff": "hta_widgets.hta.trace_diff",
    "TraceExplorer": "hta_widgets.widgets.trace_explorer",
    "WhatIf": "hta_widgets.widgets.what_if",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    if name == "edits":
        return import_module("hta_widgets.analysis.replay.edits")
    if name in __all__:
        return import_module(f"hta_widgets.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext hta_widgets`: the magics `%trace` and `%%profile_trace`."""
    import_module("hta_widgets.widgets.magics").register(shell)


def __dir__() -> list[str]:
    """The public names, without what importing one of them left here."""
    return [*(name for name in globals() if name.startswith("__") and name.endswith("__")), *__all__]
