"""Files to events: discovery, scanning, classification, links, clocks and the job model."""

from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.model import Trace
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.reader.schema import NULL
from hta_widgets.trace.scope import Scope

__all__ = ["NULL", "EventClass", "RankTrace", "Scope", "Trace"]
