"""The notebook widgets: the selection, the parts, and the explorer that composes them."""

from hta_widgets.widgets.breadcrumb import Breadcrumb
from hta_widgets.widgets.breakdown_panel import BreakdownPanel
from hta_widgets.widgets.comparison_panel import ComparisonPanel
from hta_widgets.widgets.diff_viewer import DiffViewer
from hta_widgets.widgets.events_table import EventsTable
from hta_widgets.widgets.inspector import Inspector
from hta_widgets.widgets.iteration_selector import IterationSelector
from hta_widgets.widgets.job_view import JobView
from hta_widgets.widgets.rank_selector import RankSelector
from hta_widgets.widgets.selection import Selection
from hta_widgets.widgets.timeline_scrubber import TimelineScrubber
from hta_widgets.widgets.trace_explorer import TraceExplorer
from hta_widgets.widgets.what_if import WhatIf

__all__ = [
    "Breadcrumb",
    "BreakdownPanel",
    "ComparisonPanel",
    "DiffViewer",
    "EventsTable",
    "Inspector",
    "IterationSelector",
    "JobView",
    "RankSelector",
    "Selection",
    "TimelineScrubber",
    "TraceExplorer",
    "WhatIf",
]
