"""The ranks of a large job with which a timeline opens: those that stand out, and some that are usual."""

from __future__ import annotations

from typing import Any

import numpy as np

from hta_widgets.analysis.registry import ANALYSES
from hta_widgets.charts.rank_outliers import outliers
from hta_widgets.charts.spec import Stack
from hta_widgets.errors import MissingDataError
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope
from hta_widgets.widgets.answer_cache import cached_analysis

_ALL = 32  # of so many ranks the lanes can be scrolled through
_OUTLIERS, _USUAL = 6, 2
_KIND = "temporal_breakdown"


def first_lanes(trace: Trace) -> list[dict[str, Any]]:
    """The ranks to begin with, in the order of their lanes; [] where ranks are few enough to show them all.

    Returns:
        ``[{"rank", "why"}]``: up to six whose time is split unlike that of most, and the two whose time is
        split most like the median; the first ranks, where no device work was recorded.
    """
    if len(trace.ranks) <= _ALL:
        return []
    chart = ANALYSES[_KIND].chart
    assert isinstance(chart, Stack)
    parts = {part.column: part.label for part in chart.series}
    try:
        frame = cached_analysis(trace, _KIND, Scope())
    except MissingDataError:
        return [{"rank": rank, "why": "one of the first"} for rank in trace.ranks[: _OUTLIERS + _USUAL]]
    apart = outliers(frame, chart.whole, parts)[:_OUTLIERS]
    others = frame[~frame["rank"].isin([one["rank"] for one in apart])]
    values = others[list(parts)].to_numpy(np.float64)
    distance = np.abs(values - np.median(values, axis=0)).sum(axis=1)
    usual = others["rank"].to_numpy()[np.argsort(distance, kind="stable")[:_USUAL]].tolist()
    return [*apart, *({"rank": rank, "why": "usual: split like the median"} for rank in usual)]
