"""Horizontal bars, one per label."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from hta_widgets.charts.combined import Combined, combined, cumulative_shares
from hta_widgets.charts.labels import labels, short_labels, telling
from hta_widgets.charts.plotly.axis_unit import AxisUnit, axis_unit, in_words
from hta_widgets.charts.plotly.text import axis, plain, row_details
from hta_widgets.charts.spec import Bars
from hta_widgets.charts.time_classes import time_classes
from hta_widgets.palette import colour

_MOST_PIECES = 2000
_REACHED = "Cumulative share"


def bars(chart: Bars, frame: pd.DataFrame) -> go.Figure:
    """The bars that a panel shows; of a sum each row is a piece of its own, with all that it tells.

    A cumulative share is a line on a second axis, at the top.
    """
    of_rows = combined(chart, frame)
    shown = frame.iloc[of_rows.bars["first"].to_numpy()]
    ticks = [plain(text) for text in short_labels(shown, telling(frame, chart.label))]
    if chart.note:
        ticks = [
            f"{tick} · {plain(note)}"
            for tick, note in zip(ticks, shown[chart.note].astype("str"), strict=True)
        ]
    longest = of_rows.bars["value"].max() if len(of_rows.bars) else 0.0
    unit = axis_unit(chart.value, float(longest))
    pieces = _pieces(chart, frame, of_rows, unit)
    figure = go.Figure()
    for kind, own in pieces.groupby("kind", sort=False):
        figure.add_bar(
            x=own["value"] / unit.scale,
            y=own["bar"],
            orientation="h",
            name=plain(str(kind).replace("_", " ").capitalize()),
            marker={"color": colour(own["time_class"].iloc[0]), "line": {"color": "white", "width": 0.5}},
            customdata=own["hover"],
            hovertemplate="%{customdata}<extra></extra>",
        )
    if chart.cumulative:
        reached = cumulative_shares(chart, frame, of_rows.bars)
        figure.add_scatter(
            x=reached,
            y=list(range(len(reached))),
            xaxis="x2",
            mode="lines+markers",
            name=_REACHED,
            line={"color": "black", "width": 1.5},
            marker={"size": 5},
            customdata=ticks,
            hovertemplate="%{customdata}: %{x:.2f} % with those above<extra></extra>",
        )
        top = {"title": f"{_REACHED} (%)", "range": [0, 100], "dtick": 20, "overlaying": "x", "side": "top"}
        figure.update_layout(xaxis2={**top, "tickmode": "linear", "showgrid": False})
    return figure.update_layout(
        barmode="stack",
        showlegend=chart.time_class in frame,
        xaxis={
            "title": axis(chart.value, unit, chart.measure),
            **({"range": [0, chart.limit / unit.scale]} if chart.limit else {"rangemode": "tozero"}),
        },
        yaxis={
            "tickvals": list(range(len(ticks))),
            "ticktext": ticks,
            "autorange": "reversed",
            "automargin": True,
        },
    )


def _pieces(chart: Bars, frame: pd.DataFrame, of_rows: Combined, unit: AxisUnit) -> pd.DataFrame:
    """What the bars consist of. Columns: bar (its place), value, kind, time_class, hover."""
    place = pd.Series(range(len(of_rows.bars)), index=of_rows.bars.index)
    rows = frame[np.isin(of_rows.group, of_rows.bars.index) & frame[chart.value].notna().to_numpy()]
    group = pd.Series(of_rows.group, index=frame.index).loc[rows.index]
    if chart.combine != "sum":
        value, rows = of_rows.bars["value"], frame.iloc[of_rows.bars["first"].to_numpy()]
        counts, bar = of_rows.bars["count"], place
    elif len(rows) > _MOST_PIECES:
        keys = [group.rename("_group"), *([rows["rank"]] if "rank" in rows else [])]
        sums = rows[chart.value].groupby(keys, sort=False).agg(["sum", "size"])
        firsts = pd.Series(range(len(rows)), index=rows.index).groupby(keys, sort=False).first()
        rows = rows.iloc[firsts.to_numpy()]
        value, counts = sums["sum"], sums["size"]
        bar = pd.Series(sums.index.get_level_values(0)).map(place)
    else:
        value, counts, bar = rows[chart.value], pd.Series(1, index=rows.index), group.map(place)
    head = [f"{in_words(chart.value, chart.measure)}: {unit.text(float(number))}" for number in value]
    how = {"sum": "sum", "mean": "mean, by weight,", "max": "maximum"}[chart.combine]
    of_one = row_details(rows)
    return pd.DataFrame(
        {
            "bar": bar.to_numpy(),
            "value": value.to_numpy(np.float64),
            "kind": rows[chart.time_class].astype("str").to_numpy() if chart.time_class in rows else "",
            "time_class": time_classes(rows, chart.time_class),
            "hover": [
                details if count == 1 else f"{plain(name)}<br>{total_text}, the {how} of {count:,} rows"
                for details, count, name, total_text in zip(
                    of_one, counts, labels(rows, _named(chart, rows)), head, strict=True
                )
            ],
        }
    )


def _named(chart: Bars, rows: pd.DataFrame) -> list[str]:
    own = chart.combine == "sum" and "rank" in rows  # such pieces are of a rank each
    return list(filter(None, dict.fromkeys([*chart.label, chart.note, "rank" if own else ""])))
