"""A grid of cells, darker the greater their value."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

from hta_widgets.charts.plotly.axis_unit import axis_unit, in_words
from hta_widgets.charts.plotly.text import axis, row_details
from hta_widgets.charts.spec import Heat
from hta_widgets.palette import colour

_LEAST_SPAN = 0.1  # of the least value, as `Heat.contrast` documents


def heat(chart: Heat, frame: pd.DataFrame) -> go.Figure:
    """A cell per row, which tells all columns of the row on hover."""
    unit = axis_unit(chart.value, float(frame[chart.value].max()) if len(frame) else 0.0)
    cells = frame.assign(
        _x=frame[chart.x].astype("str").replace("<NA>", "none"),
        _y=frame[chart.y].astype("str").replace("<NA>", "none"),
        _value=frame[chart.value].astype("Float64") / unit.scale,
        _hover=row_details(frame),
    )
    columns = cells.sort_values(chart.x, kind="stable")["_x"].unique()
    rows = cells.sort_values(chart.y, kind="stable")["_y"].unique()
    grid = cells.drop_duplicates(["_y", "_x"]).set_index(["_y", "_x"])
    index = pd.MultiIndex.from_product([rows, columns])
    shape = (len(rows), len(columns))
    least = float(cells["_value"].min()) if chart.contrast and len(cells) else 0.0
    most = float(cells["_value"].max()) if len(cells) else 0.0
    span = max(most, least * (1 + _LEAST_SPAN)) - least
    figure = go.Figure(
        go.Heatmap(
            x=columns,
            y=rows,
            z=grid["_value"].reindex(index).to_numpy(float, na_value=float("nan")).reshape(shape),
            zmin=least,
            zmax=most if most > least else least + 1,  # plotly draws no scale without length
            showscale=most > least,
            text=grid["_hover"].reindex(index).fillna("").to_numpy(object).reshape(shape),
            colorscale=[[0, "#ffffff"], [1, _tint(colour(chart.time_class), (most - least) / (span or 1))]],
            colorbar={"title": axis(chart.value, unit, chart.measure)},
            hovertemplate="%{text}<extra></extra>",
        )
    )
    return figure.update_layout(
        xaxis={"title": in_words(chart.x), "type": "category"},
        yaxis={"title": in_words(chart.y), "type": "category", "autorange": "reversed"},
    )


def _tint(full: str, share: float) -> str:
    """A colour #rrggbb mixed with white: white for a share of 0, the colour itself for 1."""
    parts = (int(full[at : at + 2], 16) for at in (1, 3, 5))
    return "#" + "".join(f"{round(255 + share * (part - 255)):02x}" for part in parts)
