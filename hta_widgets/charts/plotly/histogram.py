"""How many rows have a value of which magnitude."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from hta_widgets.charts.plotly.axis_unit import axis_unit
from hta_widgets.charts.plotly.text import axis
from hta_widgets.charts.spec import Histogram
from hta_widgets.palette import colour

_BINS = 60


def histogram(chart: Histogram, frame: pd.DataFrame) -> go.Figure:
    """Counts on a logarithmic axis; stacked, where a part tells the rows apart that mostly consist of it."""
    value = np.maximum(frame[chart.value].to_numpy(np.float64), 1.0)
    first, last = (value.min(), value.max()) if len(value) else (1.0, 1.0)
    edges = np.geomspace(first, max(last, first * 1.01), _BINS + 1)
    edges[0], edges[-1] = first, max(last, edges[-1])  # geomspace rounds
    unit = axis_unit(chart.value, float(last))
    groups = [(np.ones(len(value), np.bool_), chart.rest, chart.time_class)]
    if chart.part:
        mostly = (2 * frame[chart.part.column] > frame[chart.value]).to_numpy()
        groups = [
            (mostly, chart.part.label, chart.part.time_class),
            (~mostly, chart.rest, chart.time_class),
        ]
    figure = go.Figure()
    for chosen, name, time_class in groups:
        counts, _ = np.histogram(value[chosen], edges)
        figure.add_bar(
            x=np.sqrt(edges[:-1] * edges[1:]) / unit.scale,
            y=counts,
            width=np.diff(edges) / unit.scale,
            name=name,
            marker_color=colour(time_class),
            customdata=[f"{unit.text(low)} to {unit.text(high)}" for low, high in pairwise(edges.tolist())],
            hovertemplate="%{customdata}: %{y:,} rows",
        )
    return figure.update_layout(
        barmode="stack",
        showlegend=chart.part is not None,
        xaxis={"title": axis(chart.value, unit, chart.measure), "type": "log"},
        yaxis={"title": "Rows"},
    )
