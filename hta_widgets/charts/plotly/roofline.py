"""Operators under the ceilings of their device, both axes logarithmic."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from hta_widgets.charts.plotly.text import plain
from hta_widgets.charts.roofline_rows import over_ranks
from hta_widgets.charts.spec import Roofline

_LEAST, _LARGEST = 6.0, 40.0  # diameter of a mark
_LONGEST_NAME = 120
_MARGIN = 4.0  # how far the ceilings reach beyond the outermost marks


def roofline(chart: Roofline, frame: pd.DataFrame) -> go.Figure:
    """A mark per operator, as large as its time, and for each unit the ceilings of compute and memory."""
    figure = go.Figure()
    frame = over_ranks(chart, frame)
    drawn = frame[(frame[chart.x] > 0) & (frame[chart.y] > 0)]
    greatest = max(float(drawn[chart.size].max()), 1.0) if len(drawn) else 1.0
    for unit, rows in drawn.groupby(drawn[chart.part].fillna("")):
        share = rows[chart.size].to_numpy(np.float64) / greatest
        figure.add_scatter(
            x=rows[chart.x],
            y=rows[chart.y],
            mode="markers",
            name=plain(str(unit)) or "other",
            marker={"size": _LEAST + (_LARGEST - _LEAST) * np.sqrt(share), "opacity": 0.7},
            customdata=np.array(
                [[plain(str(name)[:_LONGEST_NAME]) for name in rows[chart.label]], rows[chart.size] / 1e6],
                object,
            ).T,
            hovertemplate="%{customdata[0]}<br>%{x:.3g} FLOP/byte<br>%{y:.3g} TFLOP/s<br>"
            "%{customdata[1]:.3g} ms",
        )
    for ceiling in drawn[[chart.part, chart.peak, chart.bandwidth]].dropna().drop_duplicates().to_numpy():
        unit, peak, bandwidth = str(ceiling[0]), float(ceiling[1]), float(ceiling[2])
        ridge = 1e3 * peak / bandwidth
        first, last = (float(end) for end in (drawn[chart.x].min(), drawn[chart.x].max()))
        ends = np.array([min(first / _MARGIN, ridge), ridge, max(last, ridge) * _MARGIN])
        figure.add_scatter(
            x=ends,
            y=np.minimum(peak, ends * bandwidth / 1e3),
            mode="lines",
            name=f"{plain(unit)}: {peak:g} TFLOP/s, {bandwidth:g} GB/s",
            line={"dash": "dash", "width": 1.5},
            hoverinfo="name",
        )
    return figure.update_layout(
        showlegend=True,
        xaxis={"type": "log", "title": "Arithmetic intensity (FLOP/byte)"},
        yaxis={"type": "log", "title": "Achieved (TFLOP/s)"},
    )
