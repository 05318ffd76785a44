"""A line through the steps, with a band around it."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

from hta_widgets.charts.plotly.axis_unit import axis_unit, in_words
from hta_widgets.charts.plotly.text import axis, plain
from hta_widgets.charts.spec import Trend
from hta_widgets.charts.trend_points import trend_points
from hta_widgets.palette import colour

_BAND = 0.2  # opacity


def trend(chart: Trend, frame: pd.DataFrame) -> go.Figure:
    """The line and its band; an outlier has a numbered dot, a step that does not count a ring."""
    unit = axis_unit(chart.value, float(frame[chart.value].max()) if len(frame) else 0.0)
    figure = go.Figure().update_layout(
        xaxis={"title": in_words(chart.x), "type": "category"},
        yaxis={"title": axis(chart.value, unit, chart.measure)},
    )
    if frame.empty:
        return figure
    points, line, band = trend_points(chart, frame)
    points["step"] = points["x"].astype("str")
    points[["mid", "low", "high", "most"]] /= unit.scale
    tint = colour(chart.time_class)
    value = f"%{{y:{unit.digits}}} {unit.name}"
    hover = f"%{{x}}: {value}"
    for column, fill in (("low", None), ("high", "tonexty")):
        figure.add_scatter(
            x=points["step"],
            y=points[column],
            mode="lines",
            line={"width": 0, "color": tint},
            fill=fill,
            fillcolor=_translucent(tint),
            name=plain(band),
            legendgroup="band",
            showlegend=column == "high",
            hovertemplate=hover,
        )
    figure.add_scatter(
        x=points["step"],
        y=points["mid"],
        mode="lines+markers",
        line={"color": tint},
        name=plain(line),
        hovertemplate=hover,
    )
    slow = points[points["outlier"] > 0]
    if len(slow):
        figure.add_scatter(
            x=slow["step"],
            y=slow["most"],
            mode="markers+text",
            marker={"color": "#000000", "size": 9},
            text=slow["step"],
            textposition="top center",
            customdata=slow["rank"],
            name="unusually long",
            hovertemplate=f"{hover} on rank %{{customdata}}",
        )
    aside = points[points["aside"] != ""]
    if len(aside):
        figure.add_scatter(
            x=aside["step"],
            y=aside["most"],
            mode="markers",
            marker={"symbol": "circle-open", "color": tint, "size": 9},
            customdata=aside["aside"],
            name="does not count",
            hovertemplate=f"{hover}, %{{customdata}}",
        )
    return figure.update_xaxes(categoryorder="array", categoryarray=points["step"])


def _translucent(full: str) -> str:
    """A colour #rrggbb that lets a line shine through."""
    red, green, blue = (int(full[at : at + 2], 16) for at in (1, 3, 5))
    return f"rgba({red},{green},{blue},{_BAND})"
