"""Questions about a trace: each a function `(trace, scope) -> DataFrame`, with times in exact nanoseconds."""

from hta_widgets.analysis.overlap import comm_comp_overlap
from hta_widgets.analysis.registry import ANALYSES, Analysis, Series
from hta_widgets.analysis.temporal import temporal_breakdown

__all__ = ["ANALYSES", "Analysis", "Series", "comm_comp_overlap", "temporal_breakdown"]
