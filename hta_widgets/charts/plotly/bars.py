"""Stacked bars of the parts of a whole, one bar per rank (and iteration)."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

from hta_widgets.analysis.core.entry import Analysis
from hta_widgets.charts.spec import Stack
from hta_widgets.palette import colour

__all__ = ["stacked_bars"]


def stacked_bars(frame: pd.DataFrame, analysis: Analysis) -> go.Figure:
    """Draw the parts of `analysis.chart` as a share of their whole; the exact time is in the hover text."""
    assert isinstance(analysis.chart, Stack)
    figure = go.Figure()
    whole = frame[analysis.chart.whole]
    for series in analysis.chart.series:
        parts = frame[series.column]
        figure.add_bar(
            x=_places(frame),
            y=100.0 * parts / whole.where(whole > 0),
            name=series.label,
            marker_color=colour(series.time_class),
            customdata=parts / 1e6,
            hovertemplate="%{y:.2f} %<br>%{customdata:.6f} ms",
        )
    figure.update_layout(
        barmode="stack",
        title=analysis.title,
        xaxis={"title": "Rank", "type": "category" if "iteration" not in frame else "multicategory"},
        yaxis={"title": "Share of time (%)", "range": [0, 100]},
        template="plotly_white",
    )
    return figure


def _places(frame: pd.DataFrame) -> list[str] | list[list[str]]:
    ranks = [str(rank) for rank in frame["rank"]]
    if "iteration" not in frame:
        return ranks
    return [[f"rank {rank}" for rank in ranks], [str(number) for number in frame["iteration"]]]
