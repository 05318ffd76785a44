"""Stacked bars: the parts of each whole."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

from hta_widgets.charts.labels import labels, telling
from hta_widgets.charts.plotly.axis_unit import axis_unit, in_words
from hta_widgets.charts.plotly.error_bars import error_bars
from hta_widgets.charts.plotly.text import axis, plain
from hta_widgets.charts.spec import Series, Stack
from hta_widgets.charts.stacked import stacked
from hta_widgets.palette import colour


def stack(chart: Stack, frame: pd.DataFrame) -> go.Figure:
    """A bar per whole; on hover the exact time of a part, and its share of the whole and of the window."""
    wide, keys = stacked(chart, frame)
    distinct = telling(wide, keys)
    places = _places(wide, distinct)
    whole = wide[chart.whole]
    unit = axis_unit("_ns")
    figure = go.Figure()
    for series in chart.series:
        part = wide[series.column]
        figure.add_bar(
            x=places,
            y=part / unit.scale,
            name=series.label,
            marker=fill(series),
            customdata=_shares(wide, series.column, chart.whole),
            hovertemplate=f"%{{y:{unit.digits}}} {unit.name}%{{customdata}}",
        )
    if chart.interval:
        low, high = (wide[column] for column in chart.interval)
        figure.add_scatter(
            x=places,
            y=whole / unit.scale,
            mode="markers",
            name="Whole, 95 % interval",
            marker={"color": "black", "symbol": "line-ew-open", "size": 9},
            error_y=error_bars(whole, low, high, unit.scale),
            hovertemplate=f"%{{y:{unit.digits}}} {unit.name}",
        )
    return figure.update_layout(
        barmode="stack",
        xaxis={"type": "multicategory" if len(distinct) > 1 else "category"},
        yaxis={"title": axis("time_ns", unit), "rangemode": "tozero"},
    )


def fill(series: Series) -> dict[str, object]:
    """Colour and pattern of a part as plotly takes them."""
    look: dict[str, object] = {"color": colour(series.time_class)}
    if series.pattern:
        over = colour(series.over) if series.over else "#ffffff"
        look["pattern"] = {"shape": series.pattern, "fgcolor": over, "bgcolor": look["color"]}
    return look


def _shares(wide: pd.DataFrame, part: str, whole: str) -> list[str]:
    texts = [""] * len(wide)
    for column in dict.fromkeys([whole, *({"window_ns"} & set(wide))]):
        shares = 100.0 * wide[part] / wide[column].where(wide[column] > 0)
        of = in_words(column).lower()
        texts = [
            text if pd.isna(share) else f"{text}<br>{share:.2f} % of {of}"
            for text, share in zip(texts, shares, strict=True)
        ]
    return texts


def _places(wide: pd.DataFrame, keys: list[str]) -> list[str] | list[list[str]]:
    """The name of each bar; of several columns the last one on an axis within the others."""
    inner = [plain(text) for text in labels(wide, keys[-1:])]
    return [[plain(text) for text in labels(wide, keys[:-1])], inner] if len(keys) > 1 else inner
