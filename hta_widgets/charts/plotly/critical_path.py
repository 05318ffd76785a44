"""The picture of a critical path: what held up each rank, along the window."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

from hta_widgets.palette import colour

__all__ = ["critical_path"]

# bound_by -> (label, class of time whose colour it takes, share of that colour's opacity)
_LOOKS = {
    "cpu_bound": ("Host", "host", 1.0),
    "data_loading": ("Data loading", "host", 0.5),
    "gpu_compute_bound": ("Compute", "compute", 1.0),
    "gpu_communication_bound": ("Communication", "communication", 1.0),
    "gpu_memory_bound": ("Memory", "memory", 1.0),
    "kernel_launch_overhead": ("Launch delay", "idle", 1.0),
    "kernel_kernel_overhead": ("Between kernels", "idle", 0.5),
    "sync": ("Synchronisation", "sync", 1.0),
}


def critical_path(frame: pd.DataFrame) -> go.Figure:
    """Draw a frame of `analysis.critical_path`: a bar per rank, its segments along the time."""
    figure = go.Figure()
    first = frame["start_ns"].min() if len(frame) else 0
    for bound_by, (label, time_class, opacity) in _LOOKS.items():
        rows = frame[frame["bound_by"] == bound_by]
        if rows.empty:
            continue
        figure.add_bar(
            orientation="h",
            x=rows["dur_ns"] / 1e6,
            base=(rows["start_ns"] - first) / 1e6,
            y=[f"Rank {rank}" for rank in rows["rank"]],
            name=label,
            marker={"color": colour(time_class), "opacity": opacity, "line": {"width": 0}},
            customdata=[_plain(name) for name in rows["name"]],
            hovertemplate="%{customdata}<br>%{x:.6f} ms",
        )
    figure.update_layout(
        barmode="overlay",
        title="What held up the window",
        xaxis={"title": "Time (ms)"},
        template="plotly_white",
    )
    return figure


def _plain(name: str) -> str:
    """A name from a trace as text: plotly reads hover text as HTML."""
    return name[:120].replace("&", "&amp;").replace("<", "&lt;")
