"""The pictures of idle time: of each device by cause, and of each stream by HTA's categories."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

from hta_widgets.palette import colour

__all__ = ["idle_breakdown", "stream_idle_breakdown"]

# Part -> label, class of time, fill pattern. There are more causes than classes: those of one class share its
# colour and differ in pattern.
_CAUSES = {
    "host_sync": ("Host blocked in sync", "sync", ""),
    "data_stall": ("Host waits for data", "host", "/"),
    "host_busy": ("Host busy", "host", ""),
    "launch_latency": ("Launch latency", "host", "."),
    "kernel_wait": ("Between kernels", "idle", ""),
    "device_wait": ("Device waits", "idle", "/"),
    "unknown": ("Launch not recorded", "idle", "x"),
    "edge": ("No work due", "idle", "."),
}
_CATEGORIES = {
    "host_wait": ("Host wait", "host", ""),
    "kernel_wait": ("Kernel wait", "idle", ""),
    "other": ("Other", "idle", "/"),
}
_HOVER = "%{y:.2f} %<br>%{customdata:.6f} ms"


def idle_breakdown(frame: pd.DataFrame) -> go.Figure:
    """Stacked bars of an `analysis.idle.idle_breakdown` frame: share of the window that each cause takes."""
    figure = go.Figure()
    ranks = [str(rank) for rank in frame["rank"]]
    places: list[str] | list[list[str]] = ranks
    if "iteration" in frame:
        places = [[f"rank {rank}" for rank in ranks], [str(number) for number in frame["iteration"]]]
    for cause, (label, time_class, pattern) in _CAUSES.items():
        parts = frame[f"{cause}_ns"]
        figure.add_bar(
            x=places,
            y=100.0 * parts / frame["window_ns"].where(frame["window_ns"] > 0),
            name=label,
            marker={"color": colour(time_class), "pattern_shape": pattern},
            customdata=parts / 1e6,
            hovertemplate=_HOVER,
        )
    figure.update_layout(
        barmode="stack",
        title="Why each device is idle",
        xaxis={"title": "Rank", "type": "multicategory" if "iteration" in frame else "category"},
        yaxis={"title": "Idle share of time (%)", "rangemode": "tozero"},
        template="plotly_white",
    )
    return figure


def stream_idle_breakdown(frame: pd.DataFrame) -> go.Figure:
    """Stacked bars of an `analysis.stream_idle.stream_idle_breakdown` frame, a bar per rank and stream."""
    figure = go.Figure()
    for category, (label, time_class, pattern) in _CATEGORIES.items():
        part = frame[frame["category"] == category]
        figure.add_bar(
            x=[[f"rank {rank}" for rank in part["rank"]], [f"stream {stream}" for stream in part["stream"]]],
            y=part["idle_pct"],
            name=label,
            marker={"color": colour(time_class), "pattern_shape": pattern},
            customdata=part["idle_ns"] / 1e6,
            hovertemplate=_HOVER,
        )
    figure.update_layout(
        barmode="stack",
        title="What each stream waits for between its kernels",
        xaxis={"title": "Stream", "type": "multicategory"},
        yaxis={"title": "Share of idle time (%)", "range": [0, 100]},
        template="plotly_white",
    )
    return figure
