"""The picture of kernel sequences: how often each pattern occurs."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

from hta_widgets.palette import colour

__all__ = ["kernel_sequences"]

_LINES = 25


def kernel_sequences(frame: pd.DataFrame) -> go.Figure:
    """Bars of an `analysis.kernel_sequences` frame, the most frequent first; hover for the kernels."""
    figure = go.Figure()
    one_rank = len(frame["rank"].unique()) < 2
    for rank, rows in frame.groupby("rank"):
        figure.add_bar(
            x=[str(number) for number in range(len(rows))],
            y=rows["count"],
            name=f"rank {rank}",
            marker_color=colour("compute") if one_rank else None,
            customdata=list(
                zip(map(_lines, rows["pattern"]), rows["device_ns"] / 1e6, rows["host_ns"] / 1e6, strict=True)
            ),
            hovertemplate=(
                "%{customdata[0]}<br>%{y} times, %{customdata[1]:.6f} ms of kernels, "
                "%{customdata[2]:.6f} ms in the operator"
            ),
        )
    figure.update_layout(
        title="Frequent kernel sequences",
        xaxis={"title": "Pattern", "type": "category"},
        yaxis={"title": "Count"},
        template="plotly_white",
    )
    return figure


def _lines(pattern: str) -> str:
    """The names one below the other, shortened: a tooltip as long as a step is none."""
    names = [name if len(name) < 80 else name[:79] + "…" for name in pattern.split("|")]
    if len(names) > _LINES:
        names = [*names[:_LINES], f"… and {len(names) - _LINES} more"]
    return "<br>".join(name.replace("<", "&lt;") for name in names)
