"""Time by combination of kinds of device work that run at once."""

from __future__ import annotations

from dataclasses import replace
from math import nan
from typing import Literal

import numpy as np
import pandas as pd

from hta_widgets.analysis.core.entry import ONE_BAR_PER, Analysis
from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.core.kept import kept
from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.device_time.busy import Busy, busy_ranks, iterations_in
from hta_widgets.charts.spec import Series, Stack
from hta_widgets.formatting import duration, percent
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope

KINDS = ("compute", "communication", "memory")
IDLE = "idle"
_COLUMNS = {
    "rank": "int64",
    "iteration": "int64",
    "kernel_type": "str",
    "dur_ns": "int64",
    "busy_pct": "float64",
    "window_pct": "float64",
}
# Bit i of a combination stands for KINDS[i]; combination 0 is idle.
_BITS = tuple(tuple(kind for bit, kind in enumerate(KINDS) if mask >> bit & 1) for mask in range(8))
LABELS = (
    *(" + ".join(kinds) for kinds in sorted(_BITS[1:], key=lambda kinds: (len(kinds), _BITS.index(kinds)))),
    IDLE,
)


@kept(by_rank=True)
def kernel_type_breakdown(
    trace: Trace, scope: Scope | None = None, by: Literal["rank", "iteration"] = "rank"
) -> pd.DataFrame:
    """How much time does each device spend with which combination of compute, communication and memory work?

    At each instant exactly one combination holds over all streams of a rank, so the rows of a rank never
    overlap. This is the first table of `get_gpu_kernel_breakdown` of Holistic Trace Analysis per rank, on
    unrounded times, with the idle time that completes it. Events are clipped to the windows of the scope;
    with neither iterations nor a time window, to the span from the rank's first device event to its last.

    Args:
        trace: the job.
        scope: ranks, iterations, time window, streams, names to look at; default everything.
        by: one group of rows per rank, or per rank and iteration that lies in the scope.

    Returns:
        One row per rank (and iteration) and combination that occurs, those of one kind first, then of two, of
        three, then "idle"; ranks without device events are left out. Columns: rank int64, [iteration int64],
        kernel_type (str: "compute", "communication", "memory", "compute + communication", ..., "idle"),
        dur_ns int64 (ns, never 0), busy_pct (float64, % of the time that anything runs; NaN for idle),
        window_pct (float64, % of the window). The dur_ns of a rank add up to its window, to the nanosecond.

    Raises:
        MissingDataError: no selected rank has device events.
        ValueError: `by` is neither "rank" nor "iteration".
    """
    if by not in ("rank", "iteration"):
        raise ValueError(f'by must be "rank" or "iteration", not {by!r}')
    scope = scope or Scope()
    parts: list[tuple[int, int, str, int, float, float]] = []
    for rank, rank_trace, work in busy_ranks(trace, scope):
        shared = _shared(work)
        for iteration in iterations_in(rank_trace, scope) if by == "iteration" else (-1,):
            bar_scope = scope if by == "rank" else replace(scope, iterations=(iteration,))
            windows = rank_trace.windows(bar_scope)
            alone = _alone(work, shared, windows)
            busy, window = sum(alone.values()), int((windows[:, 1] - windows[:, 0]).sum())
            alone[IDLE] = window - busy
            parts += [
                (rank, iteration, label, ns, 100.0 * ns / busy if label != IDLE else nan, 100.0 * ns / window)
                for label in LABELS
                if (ns := alone[label])
            ]
    frame = pd.DataFrame(parts, columns=list(_COLUMNS)).astype(_COLUMNS)
    return frame.drop(columns="iteration") if by == "rank" else frame


def sentence(frame: pd.DataFrame) -> str:
    """The answer of a kernel type breakdown in words."""
    busy = frame[frame["kernel_type"] != IDLE]
    if busy.empty:
        return "No device work runs in the selection."
    spent = busy.groupby("kernel_type")["dur_ns"].sum().reindex(LABELS[:-1]).dropna()
    whole, most = int(spent.sum()), str(spent.idxmax())
    at_once = int(spent[[" + " in str(label) for label in spent.index]].sum())
    what = f"{most} at once" if " + " in most else f"{most} alone"
    return (
        f"Of {duration(whole)} of busy time, {percent(100.0 * spent.max() / whole)} is {what}. "
        f"Different kinds of work overlap for {percent(100.0 * at_once / whole)}."
    )


_Shared = tuple[Intervals, Intervals, Intervals]


@memoize_per_rank()
def _shared(work: Busy) -> _Shared:
    """Times of compute with memory, of communication with memory, and of all three."""
    return work.compute & work.memory, work.communication & work.memory, work.overlapped & work.memory


def _alone(
    work: Busy, shared: _Shared, windows: np.ndarray[tuple[int, ...], np.dtype[np.int64]]
) -> dict[str, int]:
    """ns of each combination without the others, by inclusion and exclusion: exact on integers."""
    compute_memory, communication_memory, all_three = shared
    sets = (
        work.compute, work.communication, work.overlapped, work.memory,
        compute_memory, communication_memory, all_three,
    )  # fmt: skip
    c, m, cm, y, cy, my, cmy = (piece.within(windows) for piece in sets)
    alone = (c - cm - cy + cmy, m - cm - my + cmy, cm - cmy, y - cy - my + cmy, cy - cmy, my - cmy, cmy)
    return {" + ".join(_BITS[mask]): ns for mask, ns in enumerate(alone, start=1)}


def _kind_of_work(label: str) -> Series:
    first, *others = label.split(" + ")
    pattern = ("", "/", "x")[len(others)]
    return Series(label, label.capitalize(), first, pattern, others[0] if others else "")


ANALYSIS = Analysis(
    label="Kernel types",
    group="Kernels",
    title="What runs on each device, alone and at once",
    function=kernel_type_breakdown,
    sentence=sentence,
    chart=Stack(
        tuple(_kind_of_work(label) for label in LABELS),
        "window_ns",
        part="kernel_type",
        value="dur_ns",
    ),
    requires=("device events",),
    options=(ONE_BAR_PER,),
)
