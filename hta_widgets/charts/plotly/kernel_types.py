"""The picture of a kernel type breakdown."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

from hta_widgets.analysis.device_time.kernel_types import LABELS
from hta_widgets.palette import colour

__all__ = ["kernel_type_breakdown"]


def kernel_type_breakdown(frame: pd.DataFrame) -> go.Figure:
    """Stacked bars of a kernel type frame; what runs at once is hatched in the second kind's colour."""
    figure = go.Figure()
    for label in LABELS:
        part = frame[frame["kernel_type"] == label]
        if part.empty:
            continue
        kinds = label.split(" + ")
        marker: dict[str, object] = {"color": colour(kinds[0])}
        if len(kinds) > 1:
            shape = "x" if len(kinds) > 2 else "/"
            marker["pattern"] = {"shape": shape, "fgcolor": colour(kinds[1]), "bgcolor": colour(kinds[0])}
        figure.add_bar(
            x=_places(part),
            y=part["window_pct"],
            name=label.capitalize(),
            marker=marker,
            customdata=part["dur_ns"] / 1e6,
            hovertemplate="%{y:.2f} %<br>%{customdata:.6f} ms",
        )
    figure.update_layout(
        barmode="stack",
        title="What runs on each device, alone and at once",
        xaxis={"title": "Rank", "type": "category" if "iteration" not in frame else "multicategory"},
        yaxis={"title": "Share of time (%)", "range": [0, 100]},
        template="plotly_white",
    )
    return figure


def _places(frame: pd.DataFrame) -> list[str] | list[list[str]]:
    ranks = [str(rank) for rank in frame["rank"]]
    if "iteration" not in frame:
        return ranks
    return [[f"rank {rank}" for rank in ranks], [str(number) for number in frame["iteration"]]]
