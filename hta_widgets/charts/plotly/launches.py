"""The picture of launch delays: how the time from call to start is spread, by call."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from hta_widgets.palette import colour

__all__ = ["launch_stats"]

_BINS = 60


def launch_stats(frame: pd.DataFrame) -> go.Figure:
    """Histogram of an `analysis.launch_stats` frame over latency, on a log axis: waiting, launching."""
    figure = go.Figure()
    latency = np.maximum(frame["latency_ns"].to_numpy(np.float64), 1.0) / 1e3
    first, last = (latency.min(), latency.max()) if len(latency) else (1.0, 1.0)
    edges = np.geomspace(first, max(last, first * 1.01), _BINS + 1)
    waits = (2 * frame["queued_ns"] > frame["latency_ns"]).to_numpy()
    for chosen, label, time_class in (
        (waits, "Mostly behind earlier work", "compute"),
        (~waits, "Mostly launching", "host"),
    ):
        counts, _ = np.histogram(latency[chosen], edges)
        figure.add_bar(
            x=np.sqrt(edges[:-1] * edges[1:]),
            y=counts,
            width=np.diff(edges),
            name=label,
            marker_color=colour(time_class),
            hovertemplate="about %{x:.3g} µs: %{y} events",
        )
    figure.update_layout(
        barmode="stack",
        title="From launch call to start",
        xaxis={"title": "Time from start of call to start of event (µs)", "type": "log"},
        yaxis={"title": "Device events"},
        template="plotly_white",
    )
    return figure
