"""The picture of who waits for whom at the collectives."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

from hta_widgets.palette import colour

__all__ = ["stragglers"]


def stragglers(frame: pd.DataFrame) -> go.Figure:
    """Bars of an `analysis.stragglers` frame by rank: waiting caused above the line, own waiting below it."""
    total = frame.groupby("rank", sort=True)[["caused_wait_ns", "waited_ns"]].sum()
    ranks = [str(rank) for rank in total.index]
    figure = go.Figure()
    for column, name, time_class, sign in (
        ("caused_wait_ns", "Others waited for it", "communication", 1),
        ("waited_ns", "It waited for others", "idle", -1),
    ):
        figure.add_bar(
            x=ranks,
            y=sign * total[column] / 1e6,
            name=name,
            marker_color=colour(time_class),
            customdata=total[column] / 1e6,
            hovertemplate="%{customdata:.6f} ms",
        )
    figure.update_layout(
        title="Who waits for whom at collectives",
        barmode="relative",
        xaxis={"title": "Rank", "type": "category"},
        yaxis_title="Waiting (ms)",
        template="plotly_white",
    )
    return figure
