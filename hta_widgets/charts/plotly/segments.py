"""Stretches of time in lanes."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

from hta_widgets.charts.labels import labels
from hta_widgets.charts.plotly.axis_unit import axis_unit
from hta_widgets.charts.plotly.stack import fill
from hta_widgets.charts.plotly.text import axis, plain
from hta_widgets.charts.spec import Segments

_LONGEST_NAME = 120


def segments(chart: Segments, frame: pd.DataFrame) -> go.Figure:
    """A bar per lane, its rows along the time since the first."""
    unit = axis_unit(chart.duration)
    first = frame[chart.start].min() if len(frame) else 0
    figure = go.Figure()
    for series in chart.series:
        rows = frame[frame[chart.part] == series.column]
        if rows.empty:
            continue
        figure.add_bar(
            orientation="h",
            x=rows[chart.duration] / unit.scale,
            base=(rows[chart.start] - first) / unit.scale,
            y=[plain(text) for text in labels(rows, chart.label)],
            name=series.label,
            marker={**fill(series), "line": {"width": 0}},
            customdata=[plain(name[:_LONGEST_NAME]) for name in rows[chart.name]],
            hovertemplate=f"%{{customdata}}<br>%{{x:{unit.digits}}} {unit.name}",
        )
    return figure.update_layout(barmode="overlay", showlegend=True, xaxis={"title": axis("time_ns", unit)})
