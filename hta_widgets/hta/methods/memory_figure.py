"""HTA's picture of memory by category."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.colors import qualitative


def memory_figure(frame: pd.DataFrame) -> go.Figure:
    """Filled lines of an `analysis.memory_categories` frame, one category on the other."""
    names = [name for name in frame if name != "time_ns"]
    time = (frame["time_ns"] - frame["time_ns"].min()) / 1e6
    stacked = np.cumsum(frame[names].to_numpy(), axis=1) / 1024**3
    figure = go.Figure()
    for at, (name, fill) in enumerate(zip(names, qualitative.Pastel, strict=False)):
        figure.add_scatter(
            x=time,
            y=stacked[:, at],
            mode="lines",
            fill="tonexty",
            fillcolor=fill,
            marker={"color": fill},
            name=str(name),
            showlegend=True,
        )
    figure.update_xaxes(title="Time (ms)")
    figure.update_yaxes(title="Memory (GB)")
    return figure.update_layout(title_text="Memory timeline", title_x=0.5, width=1200, height=800)
