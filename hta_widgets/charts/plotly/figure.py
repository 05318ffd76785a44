"""Which function draws which type of chart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from hta_widgets.charts import spec
from hta_widgets.charts.plotly.bars import bars
from hta_widgets.charts.plotly.changes import changes, waterfall
from hta_widgets.charts.plotly.contour import contour
from hta_widgets.charts.plotly.flame import flame
from hta_widgets.charts.plotly.heat import heat
from hta_widgets.charts.plotly.histogram import histogram
from hta_widgets.charts.plotly.lines import lines
from hta_widgets.charts.plotly.roofline import roofline
from hta_widgets.charts.plotly.savings import savings
from hta_widgets.charts.plotly.segments import segments
from hta_widgets.charts.plotly.spread import spread
from hta_widgets.charts.plotly.stack import stack
from hta_widgets.charts.plotly.table import table
from hta_widgets.charts.plotly.trend import trend

_DRAW: dict[type[spec.Figure], Callable[[Any, pd.DataFrame], go.Figure]] = {
    spec.Bars: bars,
    spec.Changes: changes,
    spec.Contour: contour,
    spec.Flame: flame,
    spec.Heat: heat,
    spec.Histogram: histogram,
    spec.Lines: lines,
    spec.Roofline: roofline,
    spec.Savings: savings,
    spec.Segments: segments,
    spec.Spread: spread,
    spec.Stack: stack,
    spec.Table: table,
    spec.Treemap: flame,
    spec.Trend: trend,
    spec.Waterfall: waterfall,
}


def figure(chart: spec.Figure, frame: pd.DataFrame, title: str) -> go.Figure:
    """The plotly figure of a frame that has the columns which the chart names; it may be empty.

    Args:
        chart: how to draw the frame.
        title: the heading. Plotly reads some HTML in it; names from the frame are escaped.
    """
    drawn = _DRAW[type(chart)](chart, frame)
    return drawn.update_layout(title=title, template="plotly_white")
