"""`get_temporal_breakdown`, `get_comm_comp_overlap` and `get_profiler_steps`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from hta_widgets import analysis
from hta_widgets.errors import MissingDataError
from hta_widgets.hta.methods.conventions import microseconds, or_else, show, warn
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.model import Trace
from hta_widgets.trace.step_names import profiler_step

if TYPE_CHECKING:
    import plotly.graph_objects as go

_PARTS = ("idle_time", "compute_time", "non_compute_time")
_COLUMNS = (
    "rank",
    *(f"{part}(us)" for part in (*_PARTS, "kernel_time")),
    *(f"{part}_pctg" for part in _PARTS),
)


def _no_breakdown() -> pd.DataFrame:
    return pd.DataFrame(columns=list(_COLUMNS), dtype=np.float64).astype({"rank": np.int64})


@or_else(_no_breakdown)
def temporal_breakdown(job: Trace, visualize: bool = True) -> pd.DataFrame:
    """Is each rank's device idle, computing, or busy with something else?

    Returns:
        One row per rank with device events: rank, idle_time(us), compute_time(us), non_compute_time(us),
        kernel_time(us), and idle_time_pctg, compute_time_pctg, non_compute_time_pctg of kernel_time, the
        span from the first device event to the last. Defined in `analysis.temporal_breakdown`.
    """
    frame = analysis.temporal_breakdown(job)
    # Added up in ns: the parts then add up to the kernel time as they do in the analysis.
    times_ns = {
        "idle_time": frame["idle_ns"],
        "compute_time": frame["compute_ns"],
        "non_compute_time": frame["exposed_communication_ns"] + frame["exposed_memory_ns"],
        "kernel_time": frame["window_ns"],
    }
    shares = pd.DataFrame({part: times_ns[part] / times_ns["kernel_time"] for part in _PARTS})
    shares.insert(0, "rank", frame["rank"])
    if visualize:
        show([temporal_figure(shares)])
    result = frame[["rank"]].copy()
    for name, ns in times_ns.items():
        result[f"{name}(us)"] = microseconds(ns)
    for part in _PARTS:
        result[f"{part}_pctg"] = (100 * shares[part]).round(2)
    return result[list(_COLUMNS)]


def temporal_figure(shares: pd.DataFrame) -> go.Figure:
    """HTA's stacked bars: columns rank, and idle, compute and non-compute time as fractions."""
    import plotly.graph_objects as go

    figure = go.Figure([go.Bar(name=part, x=shares["rank"], y=shares[part]) for part in _PARTS])
    figure.update_layout(
        barmode="stack",
        title="Temporal breakdown across ranks",
        xaxis_title="Rank",
        yaxis_title="Percentage",
        yaxis_tickformat=".2%",
        legend_title="Time Breakdown",
    )
    return figure


def comm_comp_overlap(job: Trace, visualize: bool = True) -> pd.DataFrame:
    """How much of each rank's communication is hidden behind computation?

    Returns:
        One row per rank: rank int64, comp_comm_overlap_pctg float64 (% of communication time in which the
        device also computes, two decimals; NaN without communication). Defined in
        `analysis.comm_comp_overlap`.
    """
    result = pd.DataFrame({"rank": np.array(job.ranks, np.int64)})
    try:
        frame = analysis.comm_comp_overlap(job)
        ratio = frame["overlapped_ns"] / frame["communication_ns"].where(frame["communication_ns"] > 0)
        measured = dict(zip(frame["rank"], ratio, strict=True))
    except MissingDataError as missing:
        warn(missing)
        measured = {}
    ratios = pd.Series([measured.get(rank, np.nan) for rank in job.ranks], dtype=np.float64)
    if visualize:
        show([overlap_figure(result.assign(comp_comm_overlap_ratio=ratios))])
    result["comp_comm_overlap_pctg"] = (100 * ratios).round(2)
    return result


def overlap_figure(ratios: pd.DataFrame) -> go.Figure:
    """HTA's bars: columns rank and comp_comm_overlap_ratio, a fraction."""
    import plotly.graph_objects as go

    figure = go.Figure(go.Bar(x=ratios["rank"], y=ratios["comp_comm_overlap_ratio"]))
    figure.update_layout(
        title="Computation-Communication Overlap",
        xaxis_title="Rank",
        yaxis_title="Computation-Communication Overlap Percentage",
        yaxis_tickformat=".2%",
    )
    return figure


def profiler_steps(job: Trace) -> list[int]:
    """Numbers of the profiler steps on any rank, ascending; the last one only if it was included."""
    found: set[int] = set()
    for rank in job.ranks:
        rank_trace = job.rank(rank)
        rows = np.flatnonzero(rank_trace.event_class == EventClass.ANNOTATION)
        on_host = np.array([not category.startswith("gpu_") for category in rank_trace.categories], np.bool_)
        names = np.unique(rank_trace.name[rows[on_host[rank_trace.category[rows]]]])
        numbers = (profiler_step(rank_trace.names[code]) for code in names.tolist())
        found.update(number for number in numbers if number is not None)
    return sorted(found)
