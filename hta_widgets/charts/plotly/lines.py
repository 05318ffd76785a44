"""Step functions of time."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.colors import qualitative

from hta_widgets.arrays import Float64
from hta_widgets.charts.labels import labels, telling
from hta_widgets.charts.plotly.axis_unit import axis_unit, in_words
from hta_widgets.charts.plotly.text import axis, plain
from hta_widgets.charts.spec import Lines
from hta_widgets.palette import colour


def lines(chart: Lines, frame: pd.DataFrame) -> go.Figure:
    """A stepped line for each combination of `by`, each in a colour of its own where there are several.

    The mean of a line is dashed.
    """
    columns = [chart.value, *([chart.beside] if chart.beside else [])]
    unit = axis_unit(chart.value, float(frame[columns].max().max()) if len(frame) else 0.0)
    clock = axis_unit(chart.time)
    distinct = telling(frame, chart.by)
    groups = frame.groupby(list(chart.by), sort=True, observed=True)
    colours = qualitative.Safe if groups.ngroups > 1 else [colour(chart.time_class)]
    figure = go.Figure()
    for number, (_, points) in enumerate(groups):
        name = labels(points.head(1), distinct)[0]
        for column in columns:
            known = points[points[column].notna()]
            time, value = known[chart.time].to_numpy(np.float64), known[column].to_numpy(np.float64)
            if chart.end:
                time, value = _until(time, value, known[chart.end].to_numpy(np.float64))
            figure.add_scattergl(
                x=time / clock.scale,
                y=value / unit.scale,
                mode="lines",
                line={
                    "shape": "hv",
                    "color": colours[number % len(colours)],
                    "width": 2 if column == chart.value else 1,
                    "dash": "solid" if column == chart.value else "dot",
                },
                name=plain(f"{name}, {in_words(column).lower()}" if chart.beside else name),
                hovertemplate=f"%{{x:{clock.digits}}} {clock.name}: %{{y:{unit.digits}}} {unit.name}",
            )
        if chart.weight:
            mean = float(np.average(points[chart.value], weights=points[chart.weight])) / unit.scale
            figure.add_scattergl(
                x=np.array([points[chart.time].iloc[0], points[chart.end or chart.time].iloc[-1]])
                / clock.scale,
                y=[mean, mean],
                mode="lines",
                line={"color": colours[number % len(colours)], "width": 1, "dash": "dash"},
                name=plain(f"{name}, mean {unit.text(mean * unit.scale)}"),
                hovertemplate=f"mean %{{y:{unit.digits}}} {unit.name}",
            )
    height = {"range": [0, chart.limit / unit.scale]} if chart.limit else {"rangemode": "tozero"}
    return figure.update_layout(
        showlegend=True,
        xaxis={"title": axis("time_ns", clock)},
        yaxis={"title": axis(chart.value, unit, chart.measure), **height},
    )


def _until(time: Float64, value: Float64, end: Float64) -> tuple[Float64, Float64]:
    """The points of a line whose values hold until their ends, with a gap where the next begins later."""
    last = np.flatnonzero(np.append(end[:-1] < time[1:], True))
    gap = np.repeat(last + 1, 2)
    return (
        np.insert(time, gap, np.repeat(end[last], 2)),
        np.insert(value, gap, np.column_stack((value[last], np.full(len(last), np.nan))).ravel()),
    )
