"""The picture of call trees: an icicle, callers above what they call."""

from __future__ import annotations

from typing import Literal

import pandas as pd
import plotly.graph_objects as go

from hta_widgets.palette import colour

__all__ = ["call_stacks", "module_stacks"]

_MOST_NODES = 5000


def call_stacks(frame: pd.DataFrame, by: Literal["host", "device"] = "host", depth: int = 10) -> go.Figure:
    """Draw an `analysis.call_stacks` frame; click a box to go down into it.

    Args:
        by: what the width of a box is: host time (the call's own and that of all it calls, on whatever
            thread), or the duration of the kernels launched below it.
        depth: levels shown at once.
    """
    total = "host_ns" if by == "host" else "device_ns"
    shown = frame[frame[total] > 0]
    # A browser draws only so many boxes: the narrowest go. A caller is never narrower than what it calls.
    shown = shown[shown[total].rank(method="first", ascending=False) <= _MOST_NODES]
    rank = "rank " + shown["rank"].astype(str)
    key = rank + ":" + shown["node"].astype(str)
    caller = (rank + ":" + shown["parent_node"].astype(str)).where(shown["parent_node"] >= 0, rank)
    tops = rank.unique().tolist()
    if by == "host":
        # Threads run side by side under one step: self times fill a box exactly, totals may not.
        width, of_tops = shown["host_self_ns"], pd.Series(0, index=tops)
    else:
        width, of_tops = shown[total], shown[total].where(shown["parent_node"] < 0, 0).groupby(rank).sum()
    facts = [
        f"{count} calls<br>{host / 1e6:.6f} ms, {own / 1e6:.6f} ms itself<br>{device / 1e6:.6f} ms of kernels"
        for count, host, own, device in zip(
            shown["count"], shown["host_ns"], shown["host_self_ns"], shown["device_ns"], strict=True
        )
    ]
    figure = go.Figure(
        go.Icicle(
            ids=[*tops, *key],
            labels=[*tops, *(text.replace("<", "&lt;") for text in shown["name"])],
            parents=[*([""] * len(tops)), *caller],
            values=[*of_tops[tops], *width],
            branchvalues="remainder" if by == "host" else "total",
            maxdepth=depth,
            sort=False,
            customdata=[*([""] * len(tops)), *facts],
            hovertemplate="%{label}<br>%{customdata}<extra></extra>",
            marker_colors=[
                *([colour("idle")] * len(tops)),
                *([colour("host" if by == "host" else "compute")] * len(shown)),
            ],
        )
    )
    title = "Host time by call stack" if by == "host" else "Kernel time by call stack"
    figure.update_layout(title=title, template="plotly_white", margin={"l": 10, "r": 10, "b": 10})
    return figure


def module_stacks(frame: pd.DataFrame, by: Literal["host", "device"] = "host", depth: int = 10) -> go.Figure:
    """Draw an `analysis.module_stacks` frame, as `call_stacks` does."""
    return call_stacks(frame, by, depth).update_layout(title="Time of modules")
