"""The pictures of annotated regions."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

from hta_widgets.charts.plotly.kernels import plain, short
from hta_widgets.palette import colour

__all__ = ["annotation_totals", "user_annotations"]

_SHOWN = 20


def user_annotations(frame: pd.DataFrame) -> go.Figure:
    """Bars of a `user_annotations` frame: mean duration of each region by rank, and its range."""
    figure = go.Figure()
    names = list(dict.fromkeys(frame["name"]))[:_SHOWN]
    for rank, part in frame[frame["name"].isin(names)].groupby("rank"):
        mean = part["mean_ns"] / 1e6
        figure.add_bar(
            y=[short(name) for name in part["name"]],
            x=mean,
            name=f"Rank {rank}",
            orientation="h",
            error_x={
                "type": "data",
                "symmetric": False,
                "array": part["max_ns"] / 1e6 - mean,
                "arrayminus": mean - part["min_ns"] / 1e6,
            },
            customdata=[
                f"{plain(name)}: {count} runs"
                for name, count in zip(part["name"], part["count"], strict=True)
            ],
            hovertemplate="%{customdata}<br>mean %{x:.6f} ms",
        )
    return _laid_out(figure, names, "How long annotated regions take", "Mean duration (ms)", "group")


def annotation_totals(frame: pd.DataFrame) -> go.Figure:
    """Bars of an `annotation_totals` frame: device work of each region, stacked by rank."""
    figure = go.Figure()
    names = list(dict.fromkeys(frame["annotation"]))[:_SHOWN]
    for rank, part in frame[frame["annotation"].isin(names)].groupby("rank"):
        figure.add_bar(
            y=[_region(name) for name in part["annotation"]],
            x=part["sum_ns"] / 1e6,
            name=f"Rank {rank}",
            orientation="h",
            marker={"color": colour("compute"), "line": {"color": "white", "width": 1}},
            customdata=part["kernel_count"],
            hovertemplate="%{x:.6f} ms in %{customdata} kernels",
        )
    return _laid_out(figure, names, "Device work of annotated regions", "Time (ms)", "stack")


def _region(name: str) -> str:
    return short(name) if name else "outside any region"


def _laid_out(figure: go.Figure, names: list[str], title: str, unit: str, mode: str) -> go.Figure:
    return figure.update_layout(
        barmode=mode,
        title=title,
        xaxis={"title": unit},
        yaxis={"categoryorder": "array", "categoryarray": [_region(name) for name in names][::-1]},
        template="plotly_white",
    )
