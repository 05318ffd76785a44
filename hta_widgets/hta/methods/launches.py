"""`get_cuda_kernel_launch_stats` and `get_aten_op_kernels_and_delay`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from hta_widgets.analysis.launches.delays import launch_stats
from hta_widgets.analysis.launches.op_kernels import op_kernels
from hta_widgets.errors import MissingDataError
from hta_widgets.hta.methods.conventions import chosen_ranks, microseconds, show, warn
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope

if TYPE_CHECKING:
    import plotly.graph_objects as go

_LAUNCH_COLUMNS = ["correlation", "cpu_duration", "gpu_duration", "launch_delay"]
_OPERATOR_COLUMNS = {
    "aten_op_name": "str",
    "kernel_sequence": "str",
    "occurrence_count": "int64",
    "avg_aten_op_launch_delay": "float64",
    "avg_runtime_delay": "float64",
}
_TABLE_HEADER = [
    "ATen Operation",
    "Kernel Sequence",
    "Occurrence Count",
    "Average ATen Op Launch Delay (us)",
    "Average Runtime Delay (us)",
]
_CLASSES_OF_MEMORY = ("memory_copy", "memory_set")


def cuda_kernel_launch_stats(
    job: Trace,
    ranks: Iterable[int] | None = None,
    runtime_cutoff: float = 50,
    launch_delay_cutoff: float = 100,
    include_memory_events: bool = True,
    visualize: bool = True,
) -> dict[int, pd.DataFrame]:
    """How long do launches take, and how long until their kernels start?

    Args:
        runtime_cutoff: us; calls above it are drawn as outliers.
        launch_delay_cutoff: us; delays above it are drawn as outliers.
        include_memory_events: copies and fills count too.

    Returns:
        {rank: frame} with one row per launched device event, in the order of the calls in the file:
        correlation, cpu_duration, gpu_duration, launch_delay (us from the end of the call to the start on the
        device, at least 0). Launches of graphs, of AMD and of Triton count too. Defined in
        `analysis.launch_stats`.
    """
    result = {}
    for rank in chosen_ranks(job, ranks):
        try:
            frame = _launches(launch_stats(job, Scope(ranks=(rank,))), include_memory_events)
        except MissingDataError as missing:
            warn(missing)
            kinds = {**dict.fromkeys(_LAUNCH_COLUMNS, "float64"), "correlation": "int64"}
            result[rank] = pd.DataFrame(columns=_LAUNCH_COLUMNS).astype(kinds)
            continue
        if visualize:
            show(launch_figures(frame, rank, runtime_cutoff, launch_delay_cutoff))
        result[rank] = frame
    return result


def aten_op_kernels_and_delay(
    job: Trace, ranks: Iterable[int] | None = None, sort_by: Sequence[str] | None = None
) -> dict[int, pd.DataFrame]:
    """Which kernels does each aten operator launch, and how long until they start?

    Returns:
        {rank: frame} with aten_op_name, kernel_sequence (names parted by " -> "), occurrence_count,
        avg_aten_op_launch_delay (us from the operator's start to its first launch), avg_runtime_delay (us
        from that launch to the kernel), sorted by `sort_by` (default occurrence_count), descending. Each is
        also shown as a table, as HTA does. Defined in `analysis.op_kernels`.
    """
    by = [sort_by] if isinstance(sort_by, str) else list(sort_by or ["occurrence_count"])
    result = {}
    for rank in chosen_ranks(job, ranks):
        try:
            frame = _operators(
                op_kernels(job, Scope(ranks=(rank,)), prefix="aten::", include_memory=False), by
            )
        except MissingDataError as missing:
            warn(missing)
            result[rank] = pd.DataFrame(columns=list(_OPERATOR_COLUMNS)).astype(_OPERATOR_COLUMNS)
            continue
        show([operator_table(frame, rank)])
        result[rank] = frame
    return result


def launch_figures(
    frame: pd.DataFrame, rank: int, runtime_cutoff: float, launch_delay_cutoff: float
) -> list[go.Figure]:
    """HTA's three histograms: short kernels, slow calls, delayed starts."""
    cpu, delay = frame["cpu_duration"], frame["launch_delay"]
    short = (cpu <= runtime_cutoff) & (frame["gpu_duration"] < cpu)
    duration, launch_delay = "Cuda Runtime Event Duration (us)", "Launch Delay Duration (us)"
    return [
        _histogram(
            cpu[short], None, duration,
            f"Short GPU kernels (gpu op duration < cpu op duration) on rank {rank}",
        ),
        _histogram(
            cpu[cpu > runtime_cutoff], 300, duration,
            f"Runtime Event Duration Outliers (duration > {runtime_cutoff} us)  on rank {rank}",
        ),
        _histogram(
            delay[delay > launch_delay_cutoff], 300, launch_delay,
            f"Launch Delay Outliers (duration > {launch_delay_cutoff} us) on rank {rank}",
        ),
    ]  # fmt: skip


def operator_table(frame: pd.DataFrame, rank: int) -> go.Figure:
    """HTA's table of operators and their kernels."""
    import plotly.graph_objects as go

    # Plotly reads cells as HTML: the `<` of a template must not open a tag.
    cells = [
        frame[column].str.replace("<", "&lt;", regex=False) if kind == "str" else frame[column]
        for column, kind in _OPERATOR_COLUMNS.items()
    ]
    table = go.Table(header={"values": _TABLE_HEADER}, cells={"values": cells, "height": 30, "align": "left"})
    figure = go.Figure(data=[table])
    figure.update_layout(
        title=f"ATen Operations, Associated Kernels, ATen and Runtime Delays for Rank {rank}",
        width=1500,
        height=1500,
        autosize=True,
        margin={"l": 10, "r": 10, "t": 40, "b": 10},
    )
    return figure


def _histogram(values: pd.Series, bins: int | None, label: str, title: str) -> go.Figure:
    import plotly.graph_objects as go

    figure = go.Figure(go.Histogram(x=values, nbinsx=bins))
    figure.update_layout(title=title, xaxis_title=label, yaxis_title="count", barmode="relative")
    return figure


def _launches(events: pd.DataFrame, include_memory_events: bool) -> pd.DataFrame:
    if not include_memory_events:
        events = events[~events["device_class"].isin(_CLASSES_OF_MEMORY)]
    order = np.lexsort((events["event_id"].to_numpy(), events["launch_id"].to_numpy()))
    ns = ("cpu_dur_ns", "gpu_dur_ns", "launch_delay_ns")
    times = (microseconds(np.maximum(events[column].to_numpy()[order], 0)) for column in ns)
    columns = (events["correlation"].to_numpy()[order], *times)
    return pd.DataFrame(dict(zip(_LAUNCH_COLUMNS, columns, strict=True)), copy=False)


def _operators(sequences: pd.DataFrame, sort_by: list[str]) -> pd.DataFrame:
    sequences = sequences.sort_values(["op", "kernel_sequence"], ignore_index=True)
    frame = pd.DataFrame(
        {
            "aten_op_name": sequences["op"],
            "kernel_sequence": sequences["kernel_sequence"],
            "occurrence_count": sequences["count"],
            "avg_aten_op_launch_delay": microseconds(sequences["mean_op_delay_ns"]),
            "avg_runtime_delay": microseconds(sequences["mean_launch_latency_ns"]),
        }
    )
    frame = frame.sort_values(sort_by, ascending=False, kind="stable")
    delays = ["avg_aten_op_launch_delay", "avg_runtime_delay"]
    frame[delays] = frame[delays].round(3)
    return frame
