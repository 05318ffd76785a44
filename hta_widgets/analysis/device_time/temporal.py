"""Where the time of each device goes: compute, exposed communication, moving memory, or idle."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from hta_widgets.analysis.core.entry import ONE_BAR_PER, Analysis
from hta_widgets.analysis.core.kept import kept
from hta_widgets.analysis.core.shares import with_shares
from hta_widgets.analysis.device_time.busy import Busy, busy_ranks, iterations_in
from hta_widgets.charts.spec import Series, Stack
from hta_widgets.formatting import duration, percent
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope

_PARTS = ("compute", "exposed_communication", "exposed_memory", "idle")
_DURATIONS = ("window_ns", *(f"{part}_ns" for part in _PARTS), "communication_ns", "memory_ns", "busy_ns")


@kept(by_rank=True)
def temporal_breakdown(
    trace: Trace, scope: Scope | None = None, by: Literal["rank", "iteration"] = "rank"
) -> pd.DataFrame:
    """Split the time of each rank's device into compute, exposed communication, exposed memory and idle.

    At each instant the device counts as computing if any compute kernel runs; else as communicating if any
    collective runs (communication that computation does not hide); else as moving memory if a copy or fill
    runs; else as idle. All streams of a rank count as one device side. This is the temporal breakdown of
    Holistic Trace Analysis with its `non_compute_time` split, on unrounded times and without its sync events:
    `window_ns`, `idle_ns`, `compute_ns` are its `kernel_time`, `idle_time`, `compute_time`.

    Events are clipped to the windows of the scope (its iterations, within its time window); with neither, to
    the span from the rank's first device event to its last.

    Args:
        trace: the job.
        scope: ranks, iterations, time window, streams, names to look at; default everything.
        by: one row per rank, or one row per rank and iteration that lies in the scope.

    Returns:
        One row per rank (and iteration), ascending; ranks without device events are left out. Columns:
        rank int64, [iteration int64], window_ns, compute_ns, exposed_communication_ns, exposed_memory_ns,
        idle_ns, communication_ns, memory_ns, busy_ns (int64, ns), compute_pct, exposed_communication_pct,
        exposed_memory_pct, idle_pct (float64, % of window_ns; NaN where the window is empty).
        compute + exposed_communication + exposed_memory + idle == window, to the nanosecond.
        communication_ns and memory_ns are totals, hidden or not.

    Raises:
        MissingDataError: no selected rank has device events.
        ValueError: `by` is neither "rank" nor "iteration".
    """
    if by not in ("rank", "iteration"):
        raise ValueError(f'by must be "rank" or "iteration", not {by!r}')
    scope = scope or Scope()
    rows: list[dict[str, int]] = []
    for rank, rank_trace, work in busy_ranks(trace, scope):
        if by == "rank":
            rows.append({"rank": rank, **_measure(work, rank_trace.windows(scope))})
            continue
        for iteration in iterations_in(rank_trace, scope):
            measured = _measure(work, rank_trace.windows(replace(scope, iterations=(iteration,))))
            if measured["window_ns"]:
                rows.append({"rank": rank, "iteration": iteration, **measured})
    keys = ["rank"] if by == "rank" else ["rank", "iteration"]
    frame = pd.DataFrame(rows, columns=[*keys, *_DURATIONS]).astype(np.int64)
    return with_shares(frame, _PARTS, "window")


def sentence(frame: pd.DataFrame) -> str:
    """The answer of a temporal breakdown in words."""
    frame = frame[frame["window_ns"] > 0]
    if frame.empty:
        return "No device time lies in the selection."
    if len(frame) == 1:
        row = frame.iloc[0]
        return (
            f"{place_of(row)} computes for {percent(row['compute_pct'])} of {duration(row['window_ns'])}. "
            f"It is idle for {percent(row['idle_pct'])}. It waits for communication for "
            f"{percent(row['exposed_communication_pct'])} and only moves memory for "
            f"{percent(row['exposed_memory_pct'])}."
        )
    idle = frame["idle_pct"].to_numpy()
    most, least = frame.iloc[idle.argmax()], frame.iloc[idle.argmin()]
    compute = 100.0 * frame["compute_ns"].sum() / frame["window_ns"].sum()
    if percent(most["idle_pct"]) == percent(least["idle_pct"]):
        return (
            f"{everyone(frame)} are idle equally, {percent(most['idle_pct'])} of the time. "
            f"On average, they compute for {percent(compute)} of it."
        )
    return (
        f"{place_of(most)} is idle most, {percent(most['idle_pct'])} of {duration(most['window_ns'])}. "
        f"{place_of(least)} is idle least, {percent(least['idle_pct'])}. "
        f"On average, ranks compute for {percent(compute)} of the time."
    )


def _measure(work: Busy, windows: npt.NDArray[np.int64]) -> dict[str, int]:
    window = int((windows[:, 1] - windows[:, 0]).sum())
    busy = work.any.within(windows)
    return {
        "window_ns": window,
        "compute_ns": work.compute.within(windows),
        "exposed_communication_ns": work.exposed_communication.within(windows),
        "exposed_memory_ns": work.exposed_memory.within(windows),
        "idle_ns": window - busy,
        "communication_ns": work.communication.within(windows),
        "memory_ns": work.memory.within(windows),
        "busy_ns": busy,
    }


def place_of(row: pd.Series) -> str:
    place = f"Rank {row['rank']:.0f}"
    return f"{place} (iteration {row['iteration']:.0f})" if "iteration" in row else place


def everyone(frame: pd.DataFrame) -> str:
    """Who all rows of a frame are about, of which `place_of` names one."""
    return "All iterations of all ranks" if "iteration" in frame else "All ranks"


ANALYSIS = Analysis(
    label="Time split",
    group="Time",
    title="Where the time of each device goes",
    function=temporal_breakdown,
    sentence=sentence,
    chart=Stack(
        (
            Series("compute_ns", "Compute", "compute"),
            Series("exposed_communication_ns", "Exposed communication", "communication"),
            Series("exposed_memory_ns", "Exposed memory", "memory"),
            Series("idle_ns", "Idle", "idle"),
        ),
        "window_ns",
    ),
    requires=("device events",),
    options=(ONE_BAR_PER,),
)
