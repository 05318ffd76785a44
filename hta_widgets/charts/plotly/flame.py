"""Trees as icicles, parents above their children, or as treemaps, children within their parents."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

from hta_widgets.charts.plotly.text import plain, row_details
from hta_widgets.charts.spec import Flame, Treemap
from hta_widgets.kernel_names import short_kernel_names
from hta_widgets.palette import colour

_MOST_NODES = 5000
_LEVELS = 10  # shown at once: a click goes deeper


def flame(chart: Flame, frame: pd.DataFrame) -> go.Figure:
    """A tree per weight, with buttons to choose one; click a box to go down into it."""
    figure = go.Figure([_tree(chart, frame, *weight[:2], weight[3]) for weight in chart.weights])
    for number, tree in enumerate(figure.data):
        tree.visible = number == 0
    buttons = [
        {
            "label": label,
            "method": "update",
            "args": [{"visible": [number == at for at in range(len(chart.weights))]}],
        }
        for number, (_, _, label, _) in enumerate(chart.weights)
    ]
    menu = {
        "type": "buttons",
        "direction": "right",
        "x": 1,
        "xanchor": "right",
        "y": 1.08,
        "buttons": buttons,
    }
    return figure.update_layout(updatemenus=[menu], margin={"l": 10, "r": 10, "b": 10})


def _tree(chart: Flame, frame: pd.DataFrame, total: str, own: str, time_class: str) -> go.Icicle | go.Treemap:
    shown = frame[frame[total] > 0]
    # A browser draws only so many boxes: the narrowest go. A caller is never narrower than what it calls.
    shown = shown[shown[total].rank(method="first", ascending=False) <= _MOST_NODES]
    rank = "rank " + shown["rank"].astype("str")
    key = rank + ":" + shown[chart.node].astype("str")
    is_top = shown[chart.parent] < 0
    caller = (rank + ":" + shown[chart.parent].astype("str")).where(~is_top, rank)
    tops = rank.unique().tolist()
    if own:
        # Threads run side by side under one step: own times fill a box exactly, totals may not.
        width, of_tops = shown[own], pd.Series(0, index=tops)
    else:
        width, of_tops = shown[total], shown[total].where(is_top, 0).groupby(rank).sum()
    names = shown[chart.label].astype("str")
    short = short_kernel_names(names)
    columns = list(
        dict.fromkeys(
            [chart.label, "count", *(name for weight in chart.weights for name in weight[:2] if name)]
        )
    )
    # the largest first, as a treemap needs it; an icicle keeps the order of calls
    draw, order = (go.Treemap, True) if isinstance(chart, Treemap) else (go.Icicle, False)
    return draw(
        ids=[*tops, *key],
        labels=[*tops, *(plain(short[text]) for text in names)],
        parents=[*([""] * len(tops)), *caller],
        values=[*of_tops[tops], *width],
        branchvalues="remainder" if own else "total",
        maxdepth=_LEVELS,
        sort=order,
        customdata=[*tops, *row_details(shown[columns])],
        hovertemplate="%{customdata}<extra></extra>",
        marker_colors=[*([colour("idle")] * len(tops)), *([colour(time_class)] * len(shown))],
    )
