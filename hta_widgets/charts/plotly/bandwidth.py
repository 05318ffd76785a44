"""The picture of memory bandwidth over time."""

from __future__ import annotations

import html

import pandas as pd
import plotly.graph_objects as go

__all__ = ["memory_bandwidth"]


def memory_bandwidth(frame: pd.DataFrame) -> go.Figure:
    """One stepped line per kind of copy of an `analysis.memory_bandwidth` frame."""
    figure = go.Figure()
    several = len(set(frame["rank"])) > 1
    for (rank, _, kind), points in frame.groupby(["rank", "device", "kind"]):
        figure.add_scattergl(
            x=points["time_ns"] / 1e6,
            y=points["gbps"],
            line_shape="hv",
            mode="lines",
            name=f"rank {rank}, {html.escape(str(kind))}" if several else html.escape(str(kind)),
            hovertemplate="%{x:.6f} ms: %{y:.4g} GB/s",
        )
    figure.update_layout(
        title="Memory bandwidth",
        xaxis={"title": "Time (ms)"},
        yaxis={"title": "Bandwidth (GB/s)", "rangemode": "tozero"},
        template="plotly_white",
    )
    return figure
