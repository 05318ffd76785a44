"""The pictures of kernel tables.

Names come from the trace, so they are escaped: plotly reads HTML in texts.
"""

from __future__ import annotations

from html import escape

import pandas as pd
import plotly.graph_objects as go

from hta_widgets.palette import colour

__all__ = ["kernel_breakdown", "kernel_durations", "plain", "short"]

_COLOURS = {
    "compute": "compute",
    "communication": "communication",
    "memory_copy": "memory",
    "memory_set": "memory",
}
_SHOWN = 20
_WIDTH = 60


def kernel_breakdown(frame: pd.DataFrame) -> go.Figure:
    """Bars of a `kernel_breakdown` frame: its first names, longest on top, stacked by rank."""
    figure = go.Figure()
    names = list(dict.fromkeys(zip(frame["event_class"], frame["name"], strict=True)))[:_SHOWN]
    for event_class in dict.fromkeys(kind for kind, _ in names):
        part = frame[(frame["event_class"] == event_class) & frame["name"].isin([name for _, name in names])]
        hover = [
            f"{place}{plain(name)}<br>{total / 1e6:.6f} ms in {count} launches<br>mean {mean / 1e3:.3f} µs"
            for place, name, total, count, mean in zip(
                _places(part), part["name"], part["sum_ns"], part["count"], part["mean_ns"], strict=True
            )
        ]
        figure.add_bar(
            y=[short(name) for name in part["name"]],
            x=part["sum_ns"] / 1e6,
            name=event_class.replace("_", " ").capitalize(),
            orientation="h",
            marker_color=colour(_COLOURS[event_class]),
            customdata=hover,
            hovertemplate="%{customdata}<extra></extra>",
        )
    order = [short(name) for _, name in names]
    figure.update_layout(
        barmode="stack",
        title="Kernels that take most device time",
        xaxis={"title": "Time (ms)"},
        yaxis={"categoryorder": "array", "categoryarray": order[::-1]},
        template="plotly_white",
    )
    return figure


def kernel_durations(frame: pd.DataFrame) -> go.Figure:
    """Boxes of a `kernel_durations` frame: quartiles of its first kernels, one box per rank."""
    figure = go.Figure()
    for event_class, name in list(dict.fromkeys(zip(frame["event_class"], frame["name"], strict=True)))[
        :_SHOWN
    ]:
        part = frame[(frame["event_class"] == event_class) & (frame["name"] == name)]
        figure.add_box(
            name=short(name),
            x=[[short(name)] * len(part), [f"rank {rank}" for rank in part["rank"]]],
            lowerfence=part["min_ns"] / 1e3,
            q1=part["p25_ns"] / 1e3,
            median=part["median_ns"] / 1e3,
            q3=part["p75_ns"] / 1e3,
            upperfence=part["max_ns"] / 1e3,
            mean=part["mean_ns"] / 1e3,
            marker_color=colour(_COLOURS[event_class]),
        )
    figure.update_layout(
        title="How long single launches take",
        yaxis={"title": "Duration (µs)", "type": "log"},
        showlegend=False,
        template="plotly_white",
    )
    return figure


def plain(text: str) -> str:
    """A name from the trace as text that plotly shows as it is."""
    return escape(text, quote=False)


def short(name: str) -> str:
    """A name that fits beside an axis: of a long one the middle is left out."""
    return plain(name if len(name) <= _WIDTH else name[: _WIDTH // 2 - 1] + "…" + name[-_WIDTH // 2 :])


def _places(frame: pd.DataFrame) -> list[str]:
    if "rank" not in frame:
        return [""] * len(frame)
    if "iteration" not in frame:
        return [f"rank {rank}: " for rank in frame["rank"]]
    return [
        f"rank {rank}, iteration {number}: "
        for rank, number in zip(frame["rank"], frame["iteration"], strict=True)
    ]
