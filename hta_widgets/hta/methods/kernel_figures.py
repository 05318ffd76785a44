"""HTA's figures of kernels and annotations: pies of each rank's time, and bars of a name over the ranks.

They are built from the frames that the methods return. Unlike HTA's, they take any rank numbers. Names come
from the trace, and plotly interprets some HTML in texts, so they are escaped.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

import pandas as pd

if TYPE_CHECKING:
    import plotly.graph_objects as go

_MARGIN = {"l": 50, "r": 50, "b": 50, "t": 50}


def pie_of_types(types: pd.DataFrame) -> go.Figure:
    """Share of busy time of each kernel type, over all ranks."""
    import plotly.graph_objects as go

    shown = types[types["percentage"] > 0]
    figure = go.Figure(go.Pie(labels=shown["kernel_type"], values=shown["percentage"]))
    return figure.update_layout(
        title="Kernel Type Percentage Across All Ranks",
        height=500,
        margin=_MARGIN,
        showlegend=True,
        legend={"yanchor": "bottom", "y": -0.4, "xanchor": "left", "x": 0},
    )


def pies_by_rank(frame: pd.DataFrame, ranks: Sequence[int], title: str) -> go.Figure:
    """One pie for each rank, two in a row: the names and their time."""
    import plotly.graph_objects as go
    from plotly.subplots import make_subplots

    rows = (len(ranks) + 1) // 2
    figure = make_subplots(rows=rows, cols=2, specs=[[{"type": "domain"}] * 2] * rows)
    for position, rank in enumerate(ranks):
        subset = frame[frame["rank"] == rank]
        pie = go.Pie(
            labels=[_plain(name) for name in subset["name"]],
            values=subset["sum (us)"],
            title=f"Rank {rank}",
            automargin=False,
        )
        figure.add_trace(pie, position // 2 + 1, position % 2 + 1)
    return figure.update_layout(
        title_text=title,
        margin=_MARGIN,
        showlegend=True,
        height=400 * (1 + len(ranks) / 2),
        legend={"yanchor": "bottom", "y": -0.1, "xanchor": "left", "x": 0},
    )


def bars_by_rank(frame: pd.DataFrame, title: str) -> list[go.Figure]:
    """One figure for each name but "others": its mean on each rank, with its range as error bar."""
    import plotly.graph_objects as go

    figures = []
    for name, rows in frame[frame["name"] != "others"].groupby("name", sort=True):
        mean = rows["mean (us)"]
        spread = {
            "type": "data",
            "symmetric": False,
            "array": rows["max (us)"] - mean,
            "arrayminus": mean - rows["min (us)"],
        }
        figure = go.Figure(go.Bar(x=rows["rank"], y=mean, error_y=spread))
        figure.update_layout(
            title_text=title + _plain(str(name)),
            xaxis={"title": "Rank", "tickmode": "linear", "tick0": 0, "dtick": 1},
            yaxis={"title": "Mean Duration (us)"},
        )
        figures.append(figure)
    return figures


def _plain(name: str) -> str:
    return escape(name, quote=False)
