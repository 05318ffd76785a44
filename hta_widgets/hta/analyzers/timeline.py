"""HTA's `hta.analyzers.timeline`: device events of several ranks as bars on one picture.

For whole recordings use `TimelineScrubber`: a picture of plotly holds every bar and gets slow at tens of
thousands.
"""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import plotly.express as px
import plotly.graph_objects as go

from hta_widgets.hta.common.trace import Trace
from hta_widgets.hta.common.trace_symbol_table import TraceSymbolTable, texts
from hta_widgets.hta.methods.conventions import show

_NEEDED = ("iteration", "name", "cat", "rank", "stream", "ts")
_PLOTTED = ("calibrated_start_global", "calibrated_end_global", "task", "label")
_HOVER = ("cat", "dur", "iteration", "name", "rank", "s_cat", "s_name", "stream")
_LONGEST = 45
_LEFT_OUT = (r"\(.+\)", r"<[^<]+>?", r"^void\s+", r"\s+", r"autograd::engine::evaluate_function")


def plot_timeline(title: str, events: pd.DataFrame, ranks: list[int] | None = None) -> None:
    """Show events as bars.

    Args:
        title: of the picture.
        events: columns calibrated_start_global, calibrated_end_global (datetime), task, label.
        ranks: how many ranks the height is for, by default those in the column `rank`.

    Raises:
        ValueError: a column is missing.
    """
    show([timeline_figure(title, events, ranks)])


def timeline_figure(title: str, events: pd.DataFrame, ranks: list[int] | None = None) -> go.Figure:
    """The picture that `plot_timeline` shows."""
    _check(events, _PLOTTED)
    if ranks is None:
        ranks = sorted(events["rank"].unique().tolist()) if "rank" in events else []
    return px.timeline(
        events,
        x_start="calibrated_start_global",
        x_end="calibrated_end_global",
        y="task",
        hover_data=[column for column in _HOVER if column in events],
        category_orders={"task": sorted(events["task"].unique())},
        color="label",
        color_discrete_sequence=px.colors.qualitative.D3,
        width=1600,
        height=200 + 120 * len(ranks),
        title=title,
    )


def prepare_timeline_gpu_events(
    df: pd.DataFrame,
    symbol_table: TraceSymbolTable,
    ranks: list[int] | None = None,
    iterations: list[int] | None = None,
    streams: list[int] | None = None,
    duration_threshold: int = 1000,
) -> pd.DataFrame:
    """The events of some ranks, steps and streams, ready to plot.

    Args:
        df: frames of several ranks with a column `rank`.
        ranks, iterations, streams: None: all; all steps without -1, all streams without -1 (the host).
        duration_threshold: us that a bar is long at least, to be seen.

    Returns:
        The events with s_name, s_cat, calibrated_start_global, calibrated_end_global, label, task; by rank,
        stream and time.

    Raises:
        ValueError: a column is missing.
    """
    _check(df, _NEEDED)
    kept = np.ones(len(df), np.bool_)
    for column, wanted in (("rank", ranks), ("iteration", iterations), ("stream", streams)):
        kept &= (df[column].ne(-1) if wanted is None else df[column].isin(wanted)).to_numpy()
    events = df[kept].copy()
    symbols = symbol_table.get_sym_table()
    events["s_name"] = texts([_simplified(symbol) for symbol in symbols], events["name"].to_numpy())
    events["s_cat"] = texts([symbol.replace("<", "&lt;") for symbol in symbols], events["cat"].to_numpy())
    end = events["ts"] + events["dur"].clip(lower=duration_threshold)
    events["calibrated_start_global"] = pd.to_datetime(events["ts"], unit="us")
    events["calibrated_end_global"] = pd.to_datetime(end, unit="us")
    events["label"] = events["s_name"]
    events["task"] = "rank " + events["rank"].astype(str) + " stream " + events["stream"].astype(str)
    return events.sort_values(["rank", "stream", "ts"], kind="stable")


def plot_timeline_gpu_kernels(
    title: str,
    df: pd.DataFrame,
    symbol_table: TraceSymbolTable,
    ranks: list[int] | None = None,
    iterations: list[int] | None = None,
    streams: list[int] | None = None,
    duration_threshold: int = 1000,
) -> None:
    """`prepare_timeline_gpu_events`, then `plot_timeline`."""
    plot_timeline(
        title, prepare_timeline_gpu_events(df, symbol_table, ranks, iterations, streams, duration_threshold)
    )


def plot_timeline_gpu_kernels_from_trace(
    title: str,
    trace_data: Trace,
    ranks: list[int] | None = None,
    iterations: list[int] | None = None,
    streams: list[int] | None = None,
    duration_threshold: int = 1000,
) -> None:
    """`plot_timeline_gpu_kernels` for the frames of a trace."""
    chosen = [rank for rank in trace_data.get_ranks() if ranks is None or rank in ranks]
    frames = [trace_data.get_trace(rank) for rank in chosen]
    df = pd.concat(frames, keys=chosen, names=["rank", "idx"]).reset_index()
    plot_timeline_gpu_kernels(
        title, df, trace_data.symbol_table, chosen, iterations, streams, duration_threshold
    )


def _check(frame: pd.DataFrame, columns: tuple[str, ...]) -> None:
    missing = [column for column in columns if column not in frame.columns]
    if missing:
        raise ValueError(f"the frame has no column {', '.join(missing)}")


def _simplified(name: str) -> str:
    """The name without arguments, return type and blanks, at most 45 characters long."""
    for pattern in _LEFT_OUT:
        name = re.sub(pattern, "", name)
    name = name if len(name) < _LONGEST else name[: _LONGEST - 3] + "..."
    return name.replace("<", "&lt;")
