"""Pictures of what differs between runs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from pandas.api.types import is_bool_dtype, is_numeric_dtype
from plotly.subplots import make_subplots

from hta_widgets.analysis.compare.check_table import check_table
from hta_widgets.analysis.compare.registry import COMPARISONS
from hta_widgets.analysis.registry import ANALYSES
from hta_widgets.charts.plotly.kernels import plain, short
from hta_widgets.charts.spec import Stack, Waterfall
from hta_widgets.charts.waterfall_bars import waterfall_bars
from hta_widgets.formatting import column_format
from hta_widgets.palette import LIGHT, colour

__all__ = ["comparability", "diff", "run_table", "step_waterfall", "training_strategy"]

_SHOWN = 20
# Of one hue each, as far apart for colour-blind readers as the classes of time whose colours they are.
_MORE, _LESS = LIGHT["communication"], LIGHT["compute"]
_WITHIN_NOISE = 0.35


def run_table(frame: pd.DataFrame) -> go.Figure:
    """Stacked bars of an `analysis.run_table` frame: the parts of a step, and the interval of its time."""
    analysis = COMPARISONS["run_table"]
    assert isinstance(analysis.chart, Stack)
    runs = [plain(run) for run in frame["run"]]
    figure = go.Figure()
    for series in analysis.chart.series:
        figure.add_bar(
            x=runs,
            y=frame[series.column] / 1e6,
            name=series.label,
            marker={"color": colour(series.time_class), "pattern_shape": series.pattern},
            hovertemplate="%{y:.6f} ms",
        )
    figure.add_scatter(
        x=runs,
        y=frame["step_ns"] / 1e6,
        mode="markers",
        name="Step, 95 % interval",
        marker={"color": "black", "symbol": "line-ew-open", "size": 9},
        error_y=_errors(frame["step_ns"], frame["low_ns"], frame["high_ns"]),
        hovertemplate="%{y:.6f} ms",
    )
    figure.update_layout(
        barmode="stack",
        title=analysis.title,
        xaxis={"title": "Run", "type": "category"},
        yaxis={"title": "Time per step and rank (ms)"},
        template="plotly_white",
    )
    return figure


def step_waterfall(frame: pd.DataFrame) -> go.Figure:
    """Bars of an `analysis.step_waterfall` frame: each part begins where the last one ends; then the step."""
    analysis = COMPARISONS["step_waterfall"]
    assert isinstance(analysis.chart, Waterfall)
    bars, names = waterfall_bars(analysis.chart, frame)
    figure = _side_by_side(names)
    for place, _ in enumerate(names):
        own = bars[bars["run"] == place]
        figure.add_bar(
            x=own["value"] / 1e6,
            base=own["start"] / 1e6,
            y=own["label"],
            orientation="h",
            marker={"color": [colour(name) for name in own["time_class"]], "opacity": _opacity(own)},
            customdata=_facts(own["before"], own["after"], own["value"], own["low"], own["high"]),
            hovertemplate="%{y}<br>%{customdata}<extra></extra>",
            col=place + 1,
            row=1,
        )
    return _dressed(figure, analysis.title, list(dict.fromkeys(bars["label"])))


def diff(frame: pd.DataFrame) -> go.Figure:
    """Bars of an `analysis.diff` frame: the lines that changed most, with the intervals of the changes."""
    first = frame["run"].iloc[0] if len(frame) else ""
    others = frame[frame["run"] != first]
    keys = list(dict.fromkeys(zip(others["kind"], others["line"], strict=True)))[:_SHOWN]
    runs = list(dict.fromkeys(others["run"]))
    figure = _side_by_side(runs)
    for place, run in enumerate(runs):
        own = others[others["run"] == run].set_index(["kind", "line"]).loc[keys]
        figure.add_bar(
            x=own["change_ns"] / 1e6,
            y=list(range(len(keys))),
            orientation="h",
            marker={
                "color": [_MORE if change > 0 else _LESS for change in own["change_ns"]],
                "opacity": _opacity(own),
            },
            error_x=_errors(own["change_ns"], own["low_ns"], own["high_ns"]),
            customdata=[
                f"{plain(line)} ({plain(kind)})<br>{fact}"
                for (kind, line), fact in zip(
                    keys,
                    _facts(
                        own["exclusive_ns"] - own["change_ns"], own["exclusive_ns"], own["change_ns"],
                        own["low_ns"], own["high_ns"],
                    ),
                    strict=True,
                )
            ],
            hovertemplate="%{customdata}<extra></extra>",
            col=place + 1,
            row=1,
        )  # fmt: skip
    figure = _dressed(figure, COMPARISONS["diff"].title, list(range(len(keys))))
    return figure.update_yaxes(tickvals=list(range(len(keys))), ticktext=[short(line) for _, line in keys])


def comparability(frame: pd.DataFrame) -> go.Figure:
    """A table of an `analysis.comparability` frame: a row per check, with what was found in each run."""
    return _table(COMPARISONS["comparability"].title, check_table(frame))


def training_strategy(frame: pd.DataFrame) -> go.Figure:
    """A table of an `analysis.training_strategy` frame, or of `strategies`, that of several runs."""
    registry = COMPARISONS if "run" in frame else ANALYSES
    return _table(registry["training_strategy"].title, frame)


def _side_by_side(names: Sequence[str]) -> go.Figure:
    """Axes for each run, next to each other, with the same lines in all."""
    titles = [plain(name) for name in names]
    return make_subplots(cols=max(len(names), 1), shared_yaxes=True, subplot_titles=titles)


def _dressed(figure: go.Figure, title: str, order: Sequence[object]) -> go.Figure:
    figure.update_layout(title=title, showlegend=False, template="plotly_white")
    figure.update_xaxes(title="Change per step and rank (ms)", matches="x")
    figure.update_yaxes(autorange="reversed", automargin=True)
    if order and isinstance(order[0], str):
        figure.update_yaxes(categoryorder="array", categoryarray=list(order))
    return figure


def _opacity(rows: pd.DataFrame) -> list[float]:
    """Changes within noise are pale."""
    return [1.0 if significant else _WITHIN_NOISE for significant in rows["significant"]]


def _errors(value: pd.Series, low: pd.Series, high: pd.Series) -> dict[str, object]:
    """An interval as plotly takes it; absent bounds draw nothing."""
    above, below = (high - value).fillna(0.0) / 1e6, (value - low).fillna(0.0) / 1e6
    return {"type": "data", "array": above.clip(lower=0), "arrayminus": below.clip(lower=0), "thickness": 1}


def _facts(
    before: pd.Series, after: pd.Series, change: pd.Series, low: pd.Series, high: pd.Series
) -> list[str]:
    told = []
    for old, new, more, least, most in zip(before, after, change, low, high, strict=True):
        noise = "noise unknown" if np.isnan(least) else f"95 %: {least / 1e6:+.6f} to {most / 1e6:+.6f} ms"
        told.append(f"{old / 1e6:.6f} → {new / 1e6:.6f} ms, {more / 1e6:+.6f} ms<br>{noise}")
    return told


def _table(title: str, frame: pd.DataFrame) -> go.Figure:
    columns = [_column(str(name), frame[name]) for name in frame]
    figure = go.Figure(
        go.Table(
            header={"values": [heading for heading, _ in columns], "align": "left"},
            cells={"values": [cells for _, cells in columns], "align": "left"},
        )
    )
    return figure.update_layout(title=title, template="plotly_white")


def _column(name: str, series: pd.Series) -> tuple[str, list[str]]:
    """A column's heading and its cells."""
    if is_bool_dtype(series) or not is_numeric_dtype(series):
        texts = series.astype("object").where(series.notna(), "")
        return plain(name.replace("_", " ")), [plain(str(text)) for text in texts]
    values = series.astype("object").where(series.notna(), np.nan).tolist()
    shown = column_format(name, values)
    return plain(f"{shown.heading} {shown.unit.name}".strip()), [shown.cell(value) for value in values]
