from typing import Any

from hta_widgets import analysis as analysis
from hta_widgets import examples as examples
from hta_widgets.analysis.replay import edits as edits
from hta_widgets.hta.trace_analysis import TraceAnalysis as TraceAnalysis
from hta_widgets.hta.trace_diff import DeviceType as DeviceType
from hta_widgets.hta.trace_diff import LabeledTrace as LabeledTrace
from hta_widgets.hta.trace_diff import TraceDiff as TraceDiff
from hta_widgets.memory_snapshot.snapshot import MemorySnapshot as MemorySnapshot
from hta_widgets.trace.model import Trace as Trace
from hta_widgets.trace.scope import Scope as Scope
from hta_widgets.version import __version__ as __version__
from hta_widgets.widgets.breadcrumb import Breadcrumb as Breadcrumb
from hta_widgets.widgets.breakdown_panel import BreakdownPanel as BreakdownPanel
from hta_widgets.widgets.comparison_panel import ComparisonPanel as ComparisonPanel
from hta_widgets.widgets.diff_viewer import DiffViewer as DiffViewer
from hta_widgets.widgets.events_table import EventsTable as EventsTable
from hta_widgets.widgets.inspector import Inspector as Inspector
from hta_widgets.widgets.iteration_selector import IterationSelector as IterationSelector
from hta_widgets.widgets.job_view import JobView as JobView
from hta_widgets.widgets.memory_view import MemoryView as MemoryView
from hta_widgets.widgets.rank_selector import RankSelector as RankSelector
from hta_widgets.widgets.selection import Selection as Selection
from hta_widgets.widgets.timeline_scrubber import TimelineScrubber as TimelineScrubber
from hta_widgets.widgets.trace_explorer import TraceExplorer as TraceExplorer
from hta_widgets.widgets.what_if import WhatIf as WhatIf

def load_ipython_extension(shell: Any) -> None: ...
