"""How busy each device is over time, as shares of equal bins."""

from __future__ import annotations

import numpy as np
import pandas as pd

from hta_widgets.analysis.core.entry import Analysis
from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.core.kept import kept
from hta_widgets.analysis.core.shares import with_shares
from hta_widgets.analysis.device_time.busy import busy_ranks
from hta_widgets.arrays import Int64
from hta_widgets.charts.spec import Lines
from hta_widgets.formatting import duration, percent
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope

_COLUMNS = ("rank", "start_ns", "end_ns", "window_ns", "busy_ns")
_MOST_BINS = 400


@kept(by_rank=True)
def gpu_utilization(trace: Trace, scope: Scope | None = None) -> pd.DataFrame:
    """How busy is each rank's device over time?

    The time is cut into bins of 1, 2 or 5 times a power of ten of ns, at most 400 from the first to the last.
    A bin's value is the share of it in which at least one kernel, copy or fill runs on any stream: what
    nvidia-smi calls GPU utilization. How much of the device these fill is another question: see `occupancy`.

    Only the windows of the scope count, as in `temporal_breakdown`: their parts in a bin are its `window_ns`,
    and bins outside have no row. Over the bins of a rank, `busy_ns` and `window_ns` add up to those of
    `temporal_breakdown`, to the nanosecond, so the mean of the line, each bin weighted by its `window_ns`, is
    the busy share there.

    Args:
        trace: the job.
        scope: ranks, iterations, time window, streams, names to look at; default everything.

    Returns:
        One row per rank and bin, in order of time; ranks without device events are left out. Columns: rank,
        start_ns, end_ns (of the bin, on the job's axis; cut at the first and last window), window_ns (of it
        in the scope), busy_ns (of that with device work) (int64, ns), busy_pct (float64, % of window_ns).

    Raises:
        MissingDataError: no selected rank has device events.
    """
    scope = scope or Scope()
    parts = []
    for rank, rank_trace, work in busy_ranks(trace, scope):
        windows = Intervals.union(*rank_trace.windows(scope).T)
        bins = _bins(windows)
        within = windows.within_each(bins)
        columns = (np.full(len(bins), rank), *bins.T, within, (work.any & windows).within_each(bins))
        parts.append(np.column_stack(columns)[within > 0])
    rows = np.concatenate([np.empty((0, len(_COLUMNS)), np.int64), *parts])
    return with_shares(pd.DataFrame(rows, columns=list(_COLUMNS)), ("busy",), "window")


def _bins(windows: Intervals) -> Int64:
    """int64[k, 2]: start and end of the bins that windows lie in."""
    if not len(windows):
        return np.empty((0, 2), np.int64)
    first, last = int(windows.start[0]), int(windows.end[-1])
    least = max(1, -((first - last) // (_MOST_BINS - 2)))  # the first and the last are cut
    power = 10 ** (len(str(least)) - 1)
    width = next(step * power for step in (1, 2, 5, 10) if step * power >= least)
    inner = np.arange(first // width + 1, -(-last // width), dtype=np.int64) * width
    edges = np.concatenate(([first], inner, [last]))
    return np.column_stack((edges[:-1], edges[1:]))


def sentence(frame: pd.DataFrame) -> str:
    """The answer of `gpu_utilization` in one sentence."""
    if frame.empty:
        return "No device time lies in the selection."
    sums = frame.groupby("rank")[["busy_ns", "window_ns"]].sum()
    busy = 100.0 * sums["busy_ns"] / sums["window_ns"]
    if len(sums) == 1:
        (rank,) = sums.index
        return f"Rank {rank} is busy {percent(busy.iloc[0])} of {duration(sums['window_ns'].iloc[0])}."
    whole = percent(100.0 * sums["busy_ns"].sum() / sums["window_ns"].sum())
    if percent(busy.min()) == percent(busy.max()):
        return f"All ranks are busy equally, {whole} of the time."
    least = percent(busy.min())
    return f"Rank {busy.idxmin()} is busy least, {least} of the time; all together are busy {whole}."


ANALYSIS = Analysis(
    label="GPU utilization",
    group="Time",
    title="How busy each device is over time",
    function=gpu_utilization,
    sentence=sentence,
    chart=Lines(
        "start_ns",
        "busy_pct",
        ("rank",),
        "compute",
        measure="Time with device work",
        end="end_ns",
        weight="window_ns",
        limit=100.0,
    ),
    requires=("device events",),
)
