"""The picture of queue lengths over time."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

__all__ = ["queue_length"]


def queue_length(frame: pd.DataFrame) -> go.Figure:
    """One stepped line per stream of an `analysis.queue_length` frame."""
    figure = go.Figure()
    several = len(set(frame["rank"])) > 1
    for (rank, _, stream), points in frame.groupby(["rank", "device", "stream"]):
        figure.add_scattergl(
            x=points["time_ns"] / 1e6,
            y=points["queue_length"],
            line_shape="hv",
            mode="lines",
            name=f"rank {rank}, stream {stream}" if several else f"stream {stream}",
            hovertemplate="%{x:.6f} ms: %{y}",
        )
    figure.update_layout(
        title="Launched and not yet started",
        xaxis={"title": "Time (ms)"},
        yaxis={"title": "Queue length", "rangemode": "tozero"},
        template="plotly_white",
    )
    return figure
