"""The pictures of what stands out, and of the time of each step on each rank."""

from __future__ import annotations

from textwrap import wrap

import pandas as pd
import plotly.graph_objects as go

from hta_widgets.charts.plotly.kernels import plain
from hta_widgets.palette import colour

__all__ = ["overview", "step_times"]

_LINE = 90


def overview(frame: pd.DataFrame) -> go.Figure:
    """Bars of an `analysis.overview` frame: what each finding costs, its sentence on hover."""
    found = frame[frame["kind"] != ""]
    figure = go.Figure(
        go.Bar(
            x=found["share_pct"],
            y=[topic.replace("_", " ").capitalize() for topic in found["topic"]],
            orientation="h",
            marker_color=colour("host"),
            customdata=[_lines(text) for text in found["text"]],
            hovertemplate="%{customdata}<extra></extra>",
        )
    )
    figure.update_layout(
        title="What stands out",
        xaxis={"title": "Share of time lost (%)", "rangemode": "tozero"},
        yaxis={"autorange": "reversed", "automargin": True},
        template="plotly_white",
    )
    return figure


def step_times(frame: pd.DataFrame) -> go.Figure:
    """Heat map of an `analysis.step_times` frame, with a mark on each outlier."""
    times = frame.pivot_table(index="rank", columns="iteration", values="dur_ns") / 1e6
    iterations, ranks = ([str(number) for number in axis] for axis in (times.columns, times.index))
    figure = go.Figure(
        go.Heatmap(
            x=iterations,
            y=ranks,
            z=times.to_numpy(),
            colorscale=[[0, "#ffffff"], [1, colour("host")]],
            colorbar={"title": "ms"},
            hovertemplate="iteration %{x}, rank %{y}<br>%{z:.6f} ms<extra></extra>",
        )
    )
    late = frame[frame["outlier"]]
    if len(late):
        figure.add_scatter(
            x=late["iteration"].astype("str"),
            y=late["rank"].astype("str"),
            mode="markers",
            marker={"symbol": "circle-open", "color": "#000000"},
            name="unusually long",
            hoverinfo="skip",
        )
    figure.update_layout(
        title="How long each step takes on each rank",
        xaxis={"title": "Iteration", "type": "category"},
        yaxis={"title": "Rank", "type": "category", "autorange": "reversed"},
        template="plotly_white",
    )
    return figure


def _lines(text: str) -> str:
    return "<br>".join(plain(line) for line in wrap(text, _LINE))
