"""What differs between runs: waterfalls of a step's parts, and bars of lines with their intervals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from hta_widgets.charts.plotly.error_bars import error_bars
from hta_widgets.charts.plotly.text import plain
from hta_widgets.charts.spec import Changes, Waterfall
from hta_widgets.charts.waterfall_bars import waterfall_bars
from hta_widgets.formatting import with_minus
from hta_widgets.kernel_names import short_kernel_names
from hta_widgets.palette import LIGHT, colour

_SHOWN = 20
# Of one hue each, as far apart for colour-blind readers as the classes of time whose colours they are.
_MORE, _LESS = LIGHT["communication"], LIGHT["compute"]
_NOT_SIGNIFICANT = 0.35


def waterfall(chart: Waterfall, frame: pd.DataFrame) -> go.Figure:
    """Each part begins where the last one ends; then the whole."""
    bars, names = waterfall_bars(chart, frame)
    figure = _side_by_side(names)
    for place, _ in enumerate(names):
        own = bars[bars["run"] == place]
        figure.add_bar(
            x=own["value"] / 1e6,
            base=own["start"] / 1e6,
            y=own["label"],
            orientation="h",
            marker={
                "color": [colour(name) for name in own["time_class"]],
                "opacity": _opacity(own["significant"]),
            },
            customdata=_facts(own["before"], own["after"], own["value"], own["low"], own["high"]),
            hovertemplate="%{y}<br>%{customdata}<extra></extra>",
            col=place + 1,
            row=1,
        )
    order = list(dict.fromkeys(bars["label"]))
    return _dressed(figure).update_yaxes(categoryorder="array", categoryarray=order)


def changes(chart: Changes, frame: pd.DataFrame) -> go.Figure:
    """The lines at the top of the frame, with the intervals of their changes."""
    first = frame[chart.run].iloc[0] if len(frame) else ""
    others = frame[frame[chart.run] != first]
    keys = list(dict.fromkeys(zip(others[chart.kind], others[chart.line], strict=True)))[:_SHOWN]
    places = list(range(len(keys)))
    runs = list(dict.fromkeys(others[chart.run]))
    figure = _side_by_side(runs)
    for place, run in enumerate(runs):
        own = others[others[chart.run] == run].set_index([chart.kind, chart.line]).loc[keys]
        time, change, low, high = (own[name] for name in (chart.time, chart.change, chart.low, chart.high))
        facts = _facts(time - change, time, change, low, high)
        figure.add_bar(
            x=change / 1e6,
            y=places,
            orientation="h",
            marker={
                "color": [_MORE if more > 0 else _LESS for more in change],
                "opacity": _opacity(own[chart.significant]),
            },
            error_x=error_bars(change, low, high, 1e6),
            customdata=[
                f"{plain(line)} ({plain(kind)})<br>{fact}"
                for (kind, line), fact in zip(keys, facts, strict=True)
            ],
            hovertemplate="%{customdata}<extra></extra>",
            col=place + 1,
            row=1,
        )
    short = short_kernel_names(line for _, line in keys)
    return _dressed(figure).update_yaxes(tickvals=places, ticktext=[plain(short[line]) for _, line in keys])


def _side_by_side(names: Sequence[str]) -> go.Figure:
    """Axes for each run, next to each other, with the same lines in all."""
    titles = [plain(name) for name in names]
    return make_subplots(cols=max(len(names), 1), shared_yaxes=True, subplot_titles=titles)


def _dressed(figure: go.Figure) -> go.Figure:
    figure.update_layout(showlegend=False)
    figure.update_xaxes(title="Change per step and rank (ms)", matches="x")
    return figure.update_yaxes(autorange="reversed", automargin=True)


def _opacity(significant: pd.Series) -> list[float]:
    """Changes that are not significant are pale."""
    return [1.0 if beyond else _NOT_SIGNIFICANT for beyond in significant]


def _facts(
    before: pd.Series, after: pd.Series, change: pd.Series, low: pd.Series, high: pd.Series
) -> list[str]:
    texts = []
    for old, new, more, least, most in zip(before, after, change, low, high, strict=True):
        noise = "noise unknown" if np.isnan(least) else f"95 %: {_signed_ms(least)} to {_signed_ms(most)} ms"
        texts.append(f"{old / 1e6:.6f} → {new / 1e6:.6f} ms, {_signed_ms(more)} ms<br>{noise}")
    return texts


def _signed_ms(ns: float) -> str:
    return with_minus(f"{ns / 1e6:+.6f}")
