"""The picture of operators and their kernels: device time of the longest sequences."""

from __future__ import annotations

import html

import pandas as pd
import plotly.graph_objects as go

from hta_widgets.palette import colour

__all__ = ["op_kernels"]

_SHOWN = 20
_LONGEST_TEXT = 200


def op_kernels(frame: pd.DataFrame) -> go.Figure:
    """Bars of an `analysis.op_kernels` frame by sequence: those whose kernels take most device time."""
    shown = frame.sort_values("device_ns", ascending=False, kind="stable").head(_SHOWN).iloc[::-1]
    labels = [
        f"{html.escape(op)} ({kernels} {'kernel' if kernels == 1 else 'kernels'}, rank {rank})"
        for op, kernels, rank in zip(shown["op"], shown["kernels"], shown["rank"], strict=True)
    ]
    figure = go.Figure(
        go.Bar(
            x=shown["device_ns"] / 1e6,
            y=list(range(len(shown))),
            orientation="h",
            marker_color=colour("compute"),
            customdata=list(
                zip(
                    [html.escape(text[:_LONGEST_TEXT]) for text in shown["kernel_sequence"]],
                    shown["count"],
                    shown["mean_op_delay_ns"] / 1e3,
                    shown["mean_launch_latency_ns"] / 1e3,
                    strict=True,
                )
            ),
            hovertemplate="%{x:.6f} ms in %{customdata[1]} calls<br>to launch %{customdata[2]:.1f} µs, "
            "to start %{customdata[3]:.1f} µs<br>%{customdata[0]}<extra></extra>",
        )
    )
    figure.update_layout(
        title="Device time by operator and kernel sequence",
        xaxis={"title": "Device time (ms)"},
        yaxis={"tickvals": list(range(len(shown))), "ticktext": labels, "automargin": True},
        template="plotly_white",
    )
    return figure
