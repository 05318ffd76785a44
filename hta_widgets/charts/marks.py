"""What of a frame its chart can show: as many marks as there are pixels for, with the extremes kept exactly.

A frame may hold a row per event. `marks` turns it into the small table that `js/src/charts` draws; the column
names of that table are the fields of the chart where they exist in the frame, and those named below.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import singledispatch

import numpy as np
import pandas as pd

from hta_widgets.charts.combined import combined, cumulative_shares
from hta_widgets.charts.flame_boxes import flame_marks
from hta_widgets.charts.labels import labels, short_labels, telling
from hta_widgets.charts.rank_bands import in_bands
from hta_widgets.charts.rank_outliers import outliers
from hta_widgets.charts.rank_strips import strips
from hta_widgets.charts.roofline_rows import roofline_rows
from hta_widgets.charts.spec import (
    Bars,
    Chart,
    Flame,
    Heat,
    Histogram,
    Lines,
    Roofline,
    Spread,
    Stack,
    Trend,
    Waterfall,
)
from hta_widgets.charts.stacked import stacked
from hta_widgets.charts.step_points import shown_points
from hta_widgets.charts.time_classes import time_classes
from hta_widgets.charts.trend_points import trend_points
from hta_widgets.charts.waterfall_bars import waterfall_bars
from hta_widgets.kernel_names import short_kernel_names

_MOST_STACKS = 256
# More bars of ranks than this are drawn as the distribution of each part.
_MANY_RANKS = 48
_MOST_LINES = 8
_MOST_HEAT_ROWS = 256
_MOST_SPREADS = 12
_MOST_NAMES = 200
_BINS = 60


@dataclass(frozen=True)
class Marks:
    """What a chart draws."""

    table: pd.DataFrame  # a row per mark
    # names of the lines, by their number in the table; what a chart of many ranks draws besides
    legend: list[str] = field(default_factory=list)
    left_out: int = 0  # how many bars, lines or rows there was no room for


@singledispatch
def marks(chart: Chart, frame: pd.DataFrame) -> Marks:
    """The marks that a chart makes of a frame that is not empty."""
    raise TypeError(f"no marks for a {type(chart).__name__}")


@marks.register
def _stack(chart: Stack, frame: pd.DataFrame) -> Marks:
    """Columns: label, rank, [iteration], the parts, the whole, [start, end]. Of many ranks some have a row.

    Those stand out; all of the many are in the legend, as `strips` has them.
    """
    frame, keys = stacked(chart, frame)
    legend: list[str] = []
    left_out = max(0, len(frame) - _MOST_STACKS)
    shown = frame.head(_MOST_STACKS)
    if keys == ["rank"] and len(frame) > _MANY_RANKS:
        parts = {series.column: series.label for series in chart.series}
        legend, left_out = strips(frame, parts, chart.whole), 0
        row = pd.Series(np.arange(len(frame)), frame["rank"])
        shown = frame.iloc[[int(row[one["rank"]]) for one in outliers(frame, chart.whole, parts)]]
    places = [name for name in keys if name in ("rank", "iteration")]
    columns = [*places, *(series.column for series in chart.series), chart.whole]
    table = shown[columns].copy()
    table.insert(0, "label", labels(shown, telling(frame, keys)))
    if chart.window:
        table[["start", "end"]] = shown[list(chart.window)].astype("float64").to_numpy()
    return Marks(table, legend, left_out)


@marks.register
def _bars(chart: Bars, frame: pd.DataFrame) -> Marks:
    """Columns: label, short, value, count (of rows), time_class, names (JSON), [cumulative (%), note, rank,
    start, end].
    """
    of_rows = combined(chart, frame)
    bars = of_rows.bars
    shown = frame.iloc[bars["first"].to_numpy()]
    columns = telling(frame, chart.label)
    table = pd.DataFrame(
        {
            "label": labels(shown, columns),
            "short": short_labels(shown, columns),
            "value": bars["value"].to_numpy(),
            "count": bars["count"].to_numpy(),
            "time_class": time_classes(shown, chart.time_class),
        }
    )
    if chart.names:
        wanted = np.isin(of_rows.group, bars.index)
        texts = frame.loc[wanted, chart.names].astype("str").groupby(of_rows.group[wanted])
        names = texts.agg(lambda own: json.dumps(_event_names(own, chart.no_event)))
        table["names"] = names.reindex(bars.index).to_numpy()
    if chart.cumulative:
        table["cumulative"] = cumulative_shares(chart, frame, bars)
    if chart.note:
        table["note"] = shown[chart.note].astype("str").to_numpy()
    if "rank" in chart.label:
        table["rank"] = shown["rank"].to_numpy()
    if chart.window:
        table["start"], table["end"] = (shown[column].to_numpy() for column in chart.window)
    return Marks(table, left_out=of_rows.left_out)


@marks.register
def _lines(chart: Lines, frame: pd.DataFrame) -> Marks:
    """Columns: line, time, value, [beside, end, mean (of the line)]."""
    group = frame.groupby(list(chart.by), sort=True, observed=True).ngroup().to_numpy()
    if (np.diff(group) < 0).any():
        order = np.argsort(group, kind="stable")
        frame, group = frame.iloc[order], group[order]
    first = np.flatnonzero(np.diff(group, prepend=-1))
    after = np.append(first[1:], len(group))
    time, value = frame[chart.time].to_numpy(), frame[chart.value].to_numpy(np.float64)
    if chart.weight:
        weight = frame[chart.weight].to_numpy(np.float64)
        means = np.add.reduceat(value * weight, first) / np.add.reduceat(weight, first)
        chosen = np.sort(np.argsort(means, kind="stable")[:_MOST_LINES])
        left_out = len(means) - len(chosen)
    else:
        peaks = np.maximum.reduceat(value, first)
        chosen = np.sort(np.argsort(-peaks, kind="stable")[:_MOST_LINES])
        chosen = chosen[peaks[chosen] > 0]
        left_out = int((peaks > 0).sum()) - len(chosen)
    drawn = {"value": value}
    if chart.beside and frame[chart.beside].notna().any():
        drawn["beside"] = frame[chart.beside].to_numpy(np.float64, na_value=np.nan)
    tables = [pd.DataFrame({name: [] for name in ("line", "time", *drawn)})]
    for line, at in enumerate(chosen):
        own = slice(first[at], after[at])
        if chart.end:
            rows = np.arange(own.start, own.stop)
        else:
            rows = own.start + np.unique(
                np.concatenate([shown_points(time[own], each[own]) for each in drawn.values()])
            )
        table = pd.DataFrame({"line": line, "time": time[rows]})
        table = table.assign(**{name: each[rows] for name, each in drawn.items()})
        if chart.end:
            table["end"] = frame[chart.end].to_numpy()[rows]
        if chart.weight:
            table["mean"] = means[at]
        tables.append(table)
    legend = labels(frame.iloc[first[chosen]], telling(frame, chart.by))
    return Marks(pd.concat(tables[1:] or tables, ignore_index=True), legend, left_out)


@marks.register
def _heat(chart: Heat, frame: pd.DataFrame) -> Marks:
    """Columns: x, y, value: the rows with the greatest sums; ranks as `in_bands` has them."""
    table = pd.DataFrame(
        {
            "x": frame[chart.x].astype("float64"),
            "y": frame[chart.y].astype("float64"),
            "value": frame[chart.value].astype("float64"),
        }
    )
    if chart.y == "rank":
        return Marks(*in_bands(table))
    sums = table.groupby("y")["value"].sum().sort_values(ascending=False, kind="stable")
    shown = table[table["y"].isin(sums.head(_MOST_HEAT_ROWS).index)].reset_index(drop=True)
    return Marks(shown, left_out=max(0, len(sums) - _MOST_HEAT_ROWS))


@marks.register
def _trend(chart: Trend, frame: pd.DataFrame) -> Marks:
    """Columns as in `trend_points`; the legend says what the line and the band are."""
    table, line, band = trend_points(chart, frame)
    return Marks(table, [line, band])


@marks.register
def _spread(chart: Spread, frame: pd.DataFrame) -> Marks:
    """Columns: line, short (its name), rank, low, mid, high, time_class; the legend has the full names."""
    order = frame.groupby(chart.label, sort=True)[chart.order].sum()
    shown = order.sort_values(ascending=False, kind="stable").head(_MOST_SPREADS)
    number = {name: place for place, name in enumerate(shown.index)}
    rows = frame[frame[chart.label].isin(number)]
    table = pd.DataFrame(
        {
            "line": rows[chart.label].map(number).astype("int64"),
            "short": rows[chart.label].astype("str").map(short_kernel_names(map(str, number))),
            "rank": rows["rank"],
            "low": rows[chart.low],
            "mid": rows[chart.mid],
            "high": rows[chart.high],
            "time_class": time_classes(rows, chart.time_class),
        }
    )
    return Marks(table.reset_index(drop=True), [str(name) for name in number], len(order) - len(shown))


@marks.register
def _histogram(chart: Histogram, frame: pd.DataFrame) -> Marks:
    """Columns: low, high, count."""
    value = np.maximum(frame[chart.value].to_numpy(np.float64), 1.0)
    edges = np.geomspace(value.min(), max(value.max(), value.min() * 1.01), _BINS + 1)
    edges[0], edges[-1] = value.min(), max(value.max(), edges[-1])  # geomspace rounds
    count, _ = np.histogram(value, edges)
    return Marks(pd.DataFrame({"low": edges[:-1], "high": edges[1:], "count": count}))


@marks.register
def _flame(chart: Flame, frame: pd.DataFrame) -> Marks:
    """Columns as in `flame_marks`, and short, of the name; the same for a `Treemap`."""
    table, left_out = flame_marks(chart, frame)
    table["short"] = table["name"].map(short_kernel_names(table["name"]))
    return Marks(table, left_out=left_out)


@marks.register
def _waterfall(chart: Waterfall, frame: pd.DataFrame) -> Marks:
    return Marks(*waterfall_bars(chart, frame))


@marks.register
def _roofline(chart: Roofline, frame: pd.DataFrame) -> Marks:
    return Marks(*roofline_rows(chart, frame))


def _event_names(texts: Iterable[str], no_event: str) -> list[str]:
    """Distinct ones, without those that stand for no event: work outside any region, memory from before."""
    return [text for text in dict.fromkeys(texts) if text and text != no_event][:_MOST_NAMES]
