"""The order of a panel's table with rows of many ranks: those that stand out first."""

from __future__ import annotations

import pandas as pd

from hta_widgets.analysis.registry import ANALYSES
from hta_widgets.charts.rank_outliers import outliers
from hta_widgets.charts.spec import Stack
from hta_widgets.errors import MissingDataError
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope
from hta_widgets.widgets.answer_cache import cached_analysis

_MANY = 32
_KIND = "temporal_breakdown"


def ranks_that_stand_out(trace: Trace, scope: Scope) -> list[int]:
    """The ranks whose time is split unlike that of most, the farthest first; [] without device work."""
    chart = ANALYSES[_KIND].chart
    assert isinstance(chart, Stack)
    try:
        frame = cached_analysis(trace, _KIND, scope)
    except MissingDataError:
        return []
    return [
        one["rank"]
        for one in outliers(frame, chart.whole, {part.column: part.label for part in chart.series})
    ]


def outliers_first(trace: Trace, scope: Scope, frame: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """The rows of a frame as its table has them, and how they are ordered, in words.

    Only rows by rank, of many ranks, are put in another order; "" says that they are as the frame has them.
    """
    if "rank" not in frame or not frame["rank"].is_monotonic_increasing or frame["rank"].nunique() <= _MANY:
        return frame, ""
    first = [rank for rank in ranks_that_stand_out(trace, scope) if frame["rank"].eq(rank).any()]
    if not first:
        return frame, ""
    place = frame["rank"].map({rank: at for at, rank in enumerate(first)}).fillna(len(first))
    return frame.iloc[place.argsort(kind="stable")], "ranks that stand out first, then by rank"
