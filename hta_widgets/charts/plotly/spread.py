"""How values are spread, by label and rank."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

from hta_widgets.charts.plotly.axis_unit import axis_unit
from hta_widgets.charts.plotly.error_bars import error_bars
from hta_widgets.charts.plotly.text import axis, plain, row_details
from hta_widgets.charts.spec import Spread
from hta_widgets.charts.time_classes import time_classes
from hta_widgets.kernel_names import short_kernel_names
from hta_widgets.palette import colour

_SHOWN = 20


def spread(chart: Spread, frame: pd.DataFrame) -> go.Figure:
    """Boxes per label, one for each rank, where the chart names quartiles; else dots with their ranges."""
    unit = axis_unit(chart.mid, float(frame[chart.high].max()) if len(frame) else 0.0)
    sums = frame.groupby(chart.label, sort=True, observed=True)[chart.order].sum()
    order = sums.sort_values(ascending=False, kind="stable").index[:_SHOWN]
    place = {label: number for number, label in enumerate(order)}
    shown = frame[frame[chart.label].isin(place)]
    shown = shown.assign(_class=time_classes(shown, chart.time_class))
    figure = go.Figure()
    for (rank, time_class), rows in shown.groupby(["rank", "_class"], sort=True):
        low, mid, high = (rows[column] / unit.scale for column in (chart.low, chart.mid, chart.high))
        look = {
            "y": rows[chart.label].map(place),
            "orientation": "h",
            "name": f"rank {rank}",
            "offsetgroup": str(rank),
            "marker": {"color": colour(str(time_class))},
        }
        if chart.quartiles:
            q1, median, q3 = (rows[column] / unit.scale for column in chart.quartiles)
            figure.add_box(
                lowerfence=low, q1=q1, median=median, q3=q3, upperfence=high, xhoverformat=unit.digits, **look
            )
        else:
            figure.add_scatter(
                x=mid,
                mode="markers",
                error_x=error_bars(mid, low, high, 1),
                customdata=row_details(rows.drop(columns="_class")),
                hovertemplate="%{customdata}<extra></extra>",
                **look,
            )
    return figure.update_layout(
        height=_height(len(place), shown["rank"].nunique()),
        boxmode="group",
        scattermode="group",
        showlegend=False,
        xaxis={"title": axis(chart.mid, unit, chart.measure), "type": chart.scale},
        yaxis={
            "tickvals": list(place.values()),
            "ticktext": [plain(text) for text in short_kernel_names(map(str, place)).values()],
            "autorange": "reversed",
            "automargin": True,
        },
    )


def _height(labels: int, ranks: int) -> int:
    """Pixels that leave each label a line of text, and each rank a box."""
    return max(450, 150 + labels * max(20, 6 * ranks))
