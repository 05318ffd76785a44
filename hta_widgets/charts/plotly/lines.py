"""Step functions of time."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.colors import qualitative

from hta_widgets.charts.labels import labels, telling
from hta_widgets.charts.plotly.axis_unit import axis_unit, in_words
from hta_widgets.charts.plotly.text import axis, plain
from hta_widgets.charts.spec import Lines
from hta_widgets.palette import colour


def lines(chart: Lines, frame: pd.DataFrame) -> go.Figure:
    """A stepped line for each combination of `by`, each in a colour of its own where there are several."""
    columns = [chart.value, *([chart.beside] if chart.beside else [])]
    unit = axis_unit(chart.value, float(frame[columns].max().max()) if len(frame) else 0.0)
    clock = axis_unit(chart.time)
    distinct = telling(frame, chart.by)
    groups = frame.groupby(list(chart.by), sort=True, observed=True)
    colours = qualitative.Safe if groups.ngroups > 1 else [colour(chart.time_class)]
    figure = go.Figure()
    for number, (_, points) in enumerate(groups):
        name = labels(points.head(1), distinct)[0]
        for column in columns:
            known = points[points[column].notna()]
            figure.add_scattergl(
                x=known[chart.time] / clock.scale,
                y=known[column].to_numpy(np.float64) / unit.scale,
                mode="lines",
                line={
                    "shape": "hv",
                    "color": colours[number % len(colours)],
                    "width": 2 if column == chart.value else 1,
                    "dash": "solid" if column == chart.value else "dot",
                },
                name=plain(f"{name}, {in_words(column).lower()}" if chart.beside else name),
                hovertemplate=f"%{{x:{clock.digits}}} {clock.name}: %{{y:{unit.digits}}} {unit.name}",
            )
    return figure.update_layout(
        showlegend=True,
        xaxis={"title": axis("time_ns", clock)},
        yaxis={"title": axis(chart.value, unit, chart.measure), "rangemode": "tozero"},
    )
