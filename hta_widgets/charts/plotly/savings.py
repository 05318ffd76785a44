"""What changes save one after the other, and alone."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

from hta_widgets.charts.plotly.axis_unit import axis_unit
from hta_widgets.charts.plotly.text import plain, row_details
from hta_widgets.charts.spec import Savings
from hta_widgets.palette import colour

_ALL = "together"


def savings(chart: Savings, frame: pd.DataFrame) -> go.Figure:
    """A bar per row as long as what it adds, then one for all of them; a line where each would end alone."""
    unit = axis_unit(chart.adds)
    places = list(range(len(frame)))
    adds, together, alone = (
        frame[column] / unit.scale for column in (chart.adds, chart.together, chart.alone)
    )
    details = row_details(frame.drop(columns=chart.time_class))
    figure = go.Figure()
    figure.add_bar(
        x=adds,
        base=(together - adds).to_numpy(),
        y=places,
        orientation="h",
        name="adds",
        marker={"color": [colour(name) for name in frame[chart.time_class]]},
        customdata=details,
        hovertemplate="%{customdata}<extra></extra>",
    )
    figure.add_scatter(
        x=alone,
        y=places,
        mode="markers",
        name="alone",
        marker={"symbol": "line-ns", "size": 18, "line": {"width": 2, "color": "#1c1e21"}},
        customdata=details,
        hovertemplate="%{customdata}<extra></extra>",
    )
    ticks = [plain(text) for text in frame[chart.label]]
    if len(frame):
        whole = int(frame[chart.whole].iloc[0])
        share = 100 * int(frame[chart.together].iloc[-1]) / max(whole, 1)
        figure.add_bar(
            x=together.iloc[-1:],
            y=[len(frame)],
            orientation="h",
            name=_ALL,
            marker={"color": colour("idle")},
            hovertemplate=f"{_ALL}: {share:.2f} % of {unit.text(whole)}<extra></extra>",
        )
        ticks.append(_ALL)
    return figure.update_layout(
        barmode="overlay",
        xaxis={"title": f"Saved ({unit.name})"},
        yaxis={
            "tickvals": list(range(len(ticks))),
            "ticktext": ticks,
            "autorange": "reversed",
            "automargin": True,
        },
    )
