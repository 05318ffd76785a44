"""Pictures of answers without one of their own: horizontal bars, as their panel shows them."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

from hta_widgets.analysis.registry import ANALYSES
from hta_widgets.charts.plotly.kernels import plain, short
from hta_widgets.charts.spec import Bars
from hta_widgets.palette import colour

__all__ = [
    "bandwidth_summary",
    "blocked_on_full_queue",
    "collectives",
    "idle_gaps",
    "launch_summary",
    "op_counts",
    "queue_summary",
]

_SHOWN = 20


def bandwidth_summary(frame: pd.DataFrame) -> go.Figure:
    """Bars of an `analysis.bandwidth_summary` frame: time that each kind of copy takes."""
    return _bars("bandwidth_summary", frame)


def blocked_on_full_queue(frame: pd.DataFrame) -> go.Figure:
    """Bars of an `analysis.blocked_on_full_queue` frame: time that each queue was full."""
    return _bars("blocked_on_full_queue", frame)


def collectives(frame: pd.DataFrame) -> go.Figure:
    """Bars of an `analysis.collectives` frame: time of each collective by process group."""
    return _bars("collectives", frame)


def idle_gaps(frame: pd.DataFrame) -> go.Figure:
    """Bars of an `analysis.idle_gaps` frame: idle time before each kernel."""
    return _bars("idle_gaps", frame)


def launch_summary(frame: pd.DataFrame) -> go.Figure:
    """Bars of an `analysis.launch_summary` frame: host time of each launching call."""
    return _bars("launch_summary", frame)


def op_counts(frame: pd.DataFrame) -> go.Figure:
    """Bars of an `analysis.op_counts` frame: time of its own that each operation takes."""
    return _bars("op_counts", frame)


def queue_summary(frame: pd.DataFrame) -> go.Figure:
    """Bars of an `analysis.queue_summary` frame: time that each queue held work."""
    return _bars("queue_summary", frame)


def _bars(kind: str, frame: pd.DataFrame) -> go.Figure:
    analysis = ANALYSES[kind]
    chart = analysis.chart
    assert isinstance(chart, Bars)
    sums = frame.groupby(list(chart.label), sort=True, dropna=False)[chart.value].sum()
    longest = sums.sort_values(ascending=False, kind="stable").head(_SHOWN)
    keys = longest.index.to_frame(index=False).astype("str")
    texts = [", ".join(text for text in row if text) for row in keys.itertuples(index=False)]
    figure = go.Figure(
        go.Bar(
            x=longest / 1e6,
            y=list(range(len(longest))),
            orientation="h",
            marker_color=colour("compute"),
            customdata=[plain(text) for text in texts],
            hovertemplate="%{customdata}<br>%{x:.6f} ms<extra></extra>",
        )
    )
    figure.update_layout(
        title=analysis.title,
        xaxis={"title": "Time (ms)"},
        yaxis={
            "tickvals": list(range(len(texts))),
            "ticktext": [short(text) for text in texts],
            "autorange": "reversed",
            "automargin": True,
        },
        template="plotly_white",
    )
    return figure
