"""`get_idle_time_breakdown`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pandas as pd

from hta_widgets.analysis.idle.streams import CATEGORIES, interval_statistics, stream_idle_intervals
from hta_widgets.hta.methods.conventions import chosen_ranks, microseconds, or_else, show
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.model import Trace
from hta_widgets.trace.reader.schema import NULL
from hta_widgets.trace.scope import Scope

if TYPE_CHECKING:
    import plotly.graph_objects as go

_COLUMNS = ["rank", "stream", "idle_category", "idle_time", "idle_time_ratio"]
_STATISTICS = ["rank", "stream", "count", "mean", "std", "min", "25%", "50%", "75%", "max"]

_Lengths = dict[tuple[int, str], npt.NDArray[np.int64]]


def _nothing() -> tuple[pd.DataFrame, pd.DataFrame | None]:
    return _typed([]), None


@or_else(_nothing)
def idle_time_breakdown(
    job: Trace,
    ranks: Iterable[int] | None = None,
    streams: Iterable[int] | None = None,
    visualize: bool = True,
    visualize_pctg: bool = True,
    show_idle_interval_stats: bool = False,
    consecutive_kernel_delay: float = 30,
) -> tuple[pd.DataFrame, pd.DataFrame | None]:
    """What does each stream wait for between its kernels?

    Args:
        streams: streams to look at, by default all.
        visualize_pctg: draw shares instead of times.
        show_idle_interval_stats: return statistics of the pauses too.
        consecutive_kernel_delay: us; shorter pauses are `kernel_wait` unless the host was late.

    Returns:
        Per rank, stream and idle_category (host_wait, kernel_wait, other): rank, stream, idle_category,
        idle_time (us), idle_time_ratio; and the statistics or None. Streams come in the order given, else in
        that of their first event in the file; as in HTA, streams of several devices with one number share a
        row. Defined in `analysis.stream_idle_breakdown`; `analysis.idle_breakdown` says why the device as a
        whole is idle.
    """
    wanted = list(dict.fromkeys(int(stream) for stream in streams or ()))
    delay_ns = round(consecutive_kernel_delay * 1000)
    tables, statistics = [], []
    for rank in chosen_ranks(job, ranks):
        scope = Scope(ranks=(rank,), streams=tuple(wanted) or None)
        pauses = stream_idle_intervals(job, scope, consecutive_kernel_delay_ns=delay_ns)
        lengths = _by_stream(pauses, wanted, _streams(job, rank))
        table = _table(rank, lengths)
        if visualize:
            show([idle_figure(table, rank, visualize_pctg)])
        tables.append(table.round(2))
        if show_idle_interval_stats:
            statistics.append(_statistics(rank, lengths))
    return pd.concat(tables), pd.concat(statistics) if show_idle_interval_stats else None


def idle_figure(table: pd.DataFrame, rank: int, as_ratio: bool) -> go.Figure:
    """HTA's stacked bars of one rank: a bar per stream, a colour per category."""
    import plotly.graph_objects as go

    figure = go.Figure()
    for category in CATEGORIES:
        part = table[table["idle_category"] == category]
        if part.empty:
            continue
        figure.add_bar(
            name=category,
            x=part["stream"].astype(str),
            y=part["idle_time_ratio" if as_ratio else "idle_time"],
            customdata=part[["idle_time", "idle_time_ratio"]],
            hovertemplate="stream=%{x}<br>idle_time=%{customdata[0]}<br>idle_time_ratio=%{customdata[1]}",
        )
    figure.update_layout(
        barmode="stack",
        title=f"Idle time breakdown on rank {rank} per CUDA stream",
        xaxis={"title": "stream", "type": "category"},
        yaxis_title="Percentage" if as_ratio else "Idle time (us)",
        yaxis_tickformat=".2%" if as_ratio else None,
        legend_title="Idle Time Breakdown",
    )
    return figure


def _streams(job: Trace, rank: int) -> list[int]:
    """The streams with device work, in the order of their first event in the file."""
    rank_trace = job.rank(rank)
    rows = np.flatnonzero(rank_trace.is_device & (rank_trace.event_class != EventClass.SYNC))
    return [int(stream) for stream in pd.unique(rank_trace.stream[rows]) if stream != NULL]


def _by_stream(pauses: pd.DataFrame, wanted: list[int], present: list[int]) -> _Lengths:
    """The lengths in ns of the pauses of each stream and category, in the order of HTA's table."""
    of_stream, length = pauses["stream"].to_numpy(), pauses["dur_ns"].to_numpy()
    category = pauses["category"].cat.codes.to_numpy()
    lengths: _Lengths = {}
    for stream in wanted or present:
        if stream not in present:
            continue
        rows = np.flatnonzero(of_stream == stream)
        for code, name in enumerate(CATEGORIES):
            found = length[rows[category[rows] == code]]
            # HTA always lists "other": it holds the first event of the stream, which has no pause.
            if len(found) or name == "other":
                lengths[stream, name] = found
    return lengths


def _table(rank: int, lengths: _Lengths) -> pd.DataFrame:
    idle = {place: int(found.sum()) for place, found in lengths.items()}
    total: dict[int, int] = {}
    for (stream, _), ns in idle.items():
        total[stream] = total.get(stream, 0) + ns
    return _typed(
        [
            (rank, stream, category, ns / 1000.0, ns / total[stream] if total[stream] else np.nan)
            for (stream, category), ns in idle.items()
        ]
    )


def _statistics(rank: int, lengths: _Lengths) -> pd.DataFrame:
    rows = []
    for (stream, _), found in lengths.items():
        count, *moments = interval_statistics(found)
        rows.append((rank, stream, count, *microseconds(moments)))
    index = pd.Index([category for _, category in lengths], dtype="str", name="idle_category")
    frame = pd.DataFrame(rows, columns=_STATISTICS, index=index).astype(np.float64)
    return frame.astype({"rank": np.int64, "stream": np.int64}).round(2)


def _typed(rows: list[tuple[int, int, str, float, float]]) -> pd.DataFrame:
    frame = pd.DataFrame(rows, columns=_COLUMNS)
    return frame.astype(
        {"rank": "int64", "stream": "int64", "idle_category": "str", "idle_time": "float64"}
        | {"idle_time_ratio": "float64"}
    )
