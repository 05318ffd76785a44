"""Lines of equal time over two speeds."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from hta_widgets.charts.plotly.axis_unit import axis_unit
from hta_widgets.charts.spec import Contour
from hta_widgets.palette import colour


def contour(chart: Contour, frame: pd.DataFrame) -> go.Figure:
    """Shares of the whole as filled contours; of several ranks the time is that of all together."""
    value, whole = (
        frame.pivot_table(column, chart.y, chart.x, "sum") for column in (chart.value, chart.whole)
    )
    unit = axis_unit(chart.value)
    grid, times = 100 * value / whole.clip(lower=1), value / unit.scale
    xs, ys = (list(map(float, axis)) for axis in (grid.columns, grid.index))
    figure = go.Figure()
    figure.add_contour(
        x=np.log2(xs),
        y=np.log2(ys),
        z=grid.to_numpy(float),
        text=[[f"{time:{unit.digits}} {unit.name}" for time in row] for row in times.to_numpy(float)],
        colorscale=[[0, colour(chart.time_class)], [1, "#ffffff"]],
        contours={"showlabels": True, "labelfont": {"size": 12, "color": "#1c1e21"}},
        line={"color": "#1c1e21", "width": 0.5},
        colorbar={"title": "% of the recorded time"},
        hovertemplate=f"{chart.measures[0]} × %{{customdata[0]:.2f}}, {chart.measures[1].lower()} "
        "× %{customdata[1]:.2f}<br>%{text}, %{z:.2f} %<extra></extra>",
        customdata=np.stack(np.meshgrid(xs, ys), axis=-1),
    )
    for name, symbol, (x, y) in (
        ("recorded speeds", "circle-open", (1.0, 1.0)),
        ("chosen", "x", chart.point),
    ):
        figure.add_scatter(
            x=[np.log2(x)],
            y=[np.log2(y)],
            mode="markers",
            name=name,
            marker={"symbol": symbol, "size": 12, "color": "#1c1e21", "line": {"width": 2}},
            hovertemplate=f"{name}<extra></extra>",
        )
    axes = [
        {"title": f"{title}: times as fast", "tickvals": np.log2(at), "ticktext": [f"{one:g}" for one in at]}
        for title, at in zip(chart.measures, (xs, ys), strict=True)
    ]
    return figure.update_layout(
        xaxis=axes[0], yaxis=axes[1], legend={"orientation": "h", "y": 1.08, "x": 1, "xanchor": "right"}
    )
