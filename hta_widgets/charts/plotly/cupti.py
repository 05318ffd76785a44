"""The picture of hardware counters: floating-point operations by operator."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

from hta_widgets.palette import colour

__all__ = ["cupti_counters"]


def cupti_counters(frame: pd.DataFrame) -> go.Figure:
    """Bars of an `analysis.cupti_counters` frame: one bar per operator, in the order they first ran."""
    figure = go.Figure()
    one_rank = len(frame["rank"].unique()) < 2
    for rank, rows in frame.groupby("rank"):
        operators = [(text or "(no operator)").replace("<", "&lt;") for text in rows["top_level_op"]]
        figure.add_bar(
            x=operators,
            y=rows["flops"],
            name=f"rank {rank}",
            marker_color=colour("compute") if one_rank else None,
            customdata=[text[:80].replace("<", "&lt;") for text in rows["name"]],
            hovertemplate="%{x}<br>%{customdata}<br>%{y:.4s}FLOP",
        )
    figure.update_layout(
        # Kernels of one operator are stacked on each other; ranks stand side by side.
        barmode="stack" if one_rank else "group",
        title="Floating-point operations by operator",
        xaxis={"title": "Outermost operator", "type": "category"},
        yaxis={"title": "Floating-point operations"},
        template="plotly_white",
    )
    return figure
