"""Pictures of memory: over time, at its peak, and by category."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.colors
import plotly.graph_objects as go

from hta_widgets.palette import colour

__all__ = ["hta_memory_timeline", "memory_peak", "memory_timeline"]

_MOST_HOLDERS = 12
_DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
_GIB = 1024**3


def memory_timeline(frame: pd.DataFrame) -> go.Figure:
    """Steps of an `analysis.memory_timeline` frame: allocated and, thin, reserved memory of each device."""
    figure = go.Figure()
    for number, ((rank, device), rows) in enumerate(frame.groupby(["rank", "device"], sort=True)):
        place = f"rank {rank} {device}"
        dash = _DASHES[number % len(_DASHES)]
        for column, what, width in (("allocated_bytes", "allocated", 2), ("reserved_bytes", "reserved", 1)):
            known = rows[rows[column].notna()]
            figure.add_scatter(
                x=known["time_ns"] / 1e6,
                y=known[column].astype("float64") / _GIB,
                mode="lines",
                line={
                    "shape": "hv",
                    "width": width,
                    "dash": dash,
                    "color": colour("memory" if what == "allocated" else "idle"),
                },
                name=f"{place} {what}",
                hovertemplate="%{x:.6f} ms<br>%{y:.3f} GiB",
            )
    figure.update_layout(
        title="Memory in use over time",
        xaxis_title="Time (ms)",
        yaxis={"title": "Memory (GiB)", "rangemode": "tozero"},
        template="plotly_white",
    )
    return figure


def memory_peak(frame: pd.DataFrame) -> go.Figure:
    """Bars of an `analysis.memory_peak` frame: what each operator held at the peak of each device."""
    held = frame.groupby(["rank", "device", "top_operator"], sort=True)["bytes"].sum().reset_index()
    places = "rank " + held["rank"].astype("str") + " " + held["device"]
    most = held.groupby("top_operator")["bytes"].sum().sort_values(ascending=False, kind="stable")
    figure = go.Figure()
    for operator in most.index[:_MOST_HOLDERS]:
        rows = held["top_operator"] == operator
        figure.add_bar(
            y=places[rows],
            x=held.loc[rows, "bytes"] / _GIB,
            orientation="h",
            name=str(operator)[:80].replace("<", "&lt;"),
            hovertemplate="%{x:.3f} GiB",
        )
    figure.update_layout(
        title="Who holds memory at the peak",
        barmode="stack",
        xaxis_title="Memory (GiB)",
        yaxis={"type": "category", "autorange": "reversed"},
        template="plotly_white",
    )
    return figure


def hta_memory_timeline(frame: pd.DataFrame) -> go.Figure:
    """HTA's picture of an `analysis.memory_categories` frame: filled lines, one category on the other."""
    names = [name for name in frame if name != "time_ns"]
    time = (frame["time_ns"] - frame["time_ns"].min()) / 1e6
    stacked = np.cumsum(frame[names].to_numpy(), axis=1) / _GIB
    figure = go.Figure()
    for at, (name, fill) in enumerate(zip(names, plotly.colors.qualitative.Pastel, strict=False)):
        figure.add_scatter(
            x=time,
            y=stacked[:, at],
            mode="lines",
            fill="tonexty",
            fillcolor=fill,
            marker={"color": fill},
            name=str(name),
            showlegend=True,
        )
    figure.update_xaxes(title="Time (ms)")
    figure.update_yaxes(title="Memory (GB)")
    figure.update_layout(title_text="Memory timeline", title_x=0.5, width=1200, height=800)
    return figure
