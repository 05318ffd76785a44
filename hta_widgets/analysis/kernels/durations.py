"""How much the durations of one kernel vary, on a rank and between ranks."""

from __future__ import annotations

import numpy as np
import pandas as pd

from hta_widgets.analysis.core.entry import Analysis
from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.kernels.breakdown import DeviceWork, device_work, device_work_of
from hta_widgets.analysis.kernels.moments import STATISTICS, described, moments
from hta_widgets.arrays import Float64, Int64
from hta_widgets.charts.spec import Spread
from hta_widgets.formatting import duration
from hta_widgets.kernel_names import short_kernel_name
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.model import Trace
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.scope import Scope

QUANTILES = {"p25_ns": 0.25, "median_ns": 0.5, "p75_ns": 0.75, "p99_ns": 0.99}
_COLUMNS = ["event_class", "name", "rank", *STATISTICS, *QUANTILES]


def kernel_durations(trace: Trace, scope: Scope | None = None) -> pd.DataFrame:
    """How are the durations of each kernel distributed, and which rank is slow at it?

    Counts what `kernel_breakdown` counts: launches that belong to the scope, with their whole duration.

    Args:
        trace: the job.
        scope: ranks, iterations, time window, streams, names to look at; default everything. Ask for one
            kernel with ``Scope(names=(name,))``.

    Returns:
        One row per kernel and rank, the kernel that takes most time on all ranks first. Columns: event_class,
        name (str), rank, count, sum_ns, min_ns, max_ns (int64, ns), mean_ns, std_ns (float64, ns; sample
        standard deviation, NaN for a single launch), p25_ns, median_ns, p75_ns, p99_ns (float64, ns,
        interpolated between the two nearest launches), rank_ratio (float64: the mean of the slowest rank over
        that of the fastest that runs this kernel; 1 if one rank does; NaN if the fastest mean is 0).

    Raises:
        MissingDataError: no selected rank has device events.
    """
    scope = scope or Scope()
    frames = [_of_rank(rank_trace, work, scope) for _, rank_trace, work in device_work(trace, scope)]
    empty = pd.DataFrame(columns=_COLUMNS)
    frame = pd.concat([frame for frame in frames if len(frame)] or [empty], ignore_index=True)[_COLUMNS]
    integers = ["rank", *STATISTICS[:4]]
    kinds = dict.fromkeys(["event_class", "name"], "str") | dict.fromkeys(_COLUMNS[2:], np.float64)
    frame = frame.astype(kinds | dict.fromkeys(integers, np.int64))
    kernels = frame.groupby(["event_class", "name"], sort=False)
    means = kernels["mean_ns"]
    fastest = means.transform("min")
    frame["rank_ratio"] = means.transform("max") / fastest.where(fastest > 0)
    order = frame.assign(whole=kernels["sum_ns"].transform("sum"))
    by = ["whole", "name", "event_class", "rank"]
    order = order.sort_values(by, ascending=[name != "whole" for name in by], ignore_index=True)
    return order.drop(columns="whole")


def sentence(frame: pd.DataFrame) -> str:
    """The answer of a kernel duration frame in words: about the kernel that takes most time."""
    if frame.empty:
        return "No device work belongs to the selection."
    first = frame.iloc[0]
    name = short_kernel_name(first["name"])
    kernel = frame[(frame["name"] == first["name"]) & (frame["event_class"] == first["event_class"])]
    if len(kernel) == 1:
        span = f" All take {duration(first['min_ns'])} to {duration(first['max_ns'])}."
        return (
            f"A launch of {name} on rank {first['rank']} takes {duration(first['median_ns'])} at the median."
            + span * bool(first["min_ns"] < first["max_ns"])
        )
    means = kernel["mean_ns"].to_numpy()
    slow, fast = kernel.iloc[means.argmax()], kernel.iloc[means.argmin()]
    if duration(slow["mean_ns"]) == duration(fast["mean_ns"]):
        return f"A launch of {name} takes {duration(slow['mean_ns'])} on each of {len(kernel):,} ranks."
    return (
        f"{name} is slowest on rank {slow['rank']}, {duration(slow['mean_ns'])} a launch, "
        f"and fastest on rank {fast['rank']}, {duration(fast['mean_ns'])}."
    )


@memoize_per_rank()
def _by_duration(rank_trace: RankTrace) -> Int64:
    """Rows of device work by group, then duration: what quantiles need, whatever the scope."""
    work = device_work_of(rank_trace)
    rows = np.sort(work.rows)
    return rows[np.lexsort((rank_trace.dur[rows], work.group[rows]))]


def _of_rank(rank_trace: RankTrace, work: DeviceWork, scope: Scope) -> pd.DataFrame:
    order = _by_duration(rank_trace)
    rows = order[rank_trace.belong(order, scope)]
    dur = rank_trace.dur[rows]
    frame = moments(work.group[rows], dur, work.size)
    kind = frame.index.to_numpy()
    frame["rank"] = rank_trace.rank
    frame["event_class"] = [EventClass(code).label for code in work.event_class[kind].tolist()]
    frame["name"] = [rank_trace.names[code] for code in work.name[kind].tolist()]
    frame = described(frame)
    count = frame["count"].to_numpy()
    first = np.cumsum(count) - count
    for column, share in QUANTILES.items():
        frame[column] = _quantile(dur, first, count, share)
    return frame


def _quantile(dur: Int64, first: Int64, count: Int64, share: float) -> Float64:
    """Quantile of each run of `count` sorted durations from `first` on."""
    position = share * (count - 1)
    below = np.floor(position).astype(np.int64)
    low = dur[first + below] if len(dur) else dur
    high = dur[first + np.minimum(below + 1, count - 1)] if len(dur) else dur
    return low + (position - below) * (high - low)


ANALYSIS = Analysis(
    label="Kernel durations",
    group="Kernels",
    title="How evenly kernels run on the ranks",
    function=kernel_durations,
    sentence=sentence,
    chart=Spread(
        "name",
        "min_ns",
        "mean_ns",
        "max_ns",
        "sum_ns",
        "event_class",
        item="launch",
        quartiles=("p25_ns", "median_ns", "p75_ns"),
        measure="Duration",
    ),
    requires=("device events",),
    ignores=("ranks",),
)
