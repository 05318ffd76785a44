"""How much of a device do its kernels fill, and what keeps them from filling more?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from hta_widgets.analysis.core.entry import Analysis
from hta_widgets.analysis.device_time.busy import device_ranks
from hta_widgets.analysis.kernels.residency import LIMITERS, OCCUPANCY_REMEDY, residency
from hta_widgets.charts.spec import Bars
from hta_widgets.errors import MissingDataError
from hta_widgets.formatting import duration, percent
from hta_widgets.kernel_names import short_kernel_name
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.model import Trace
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.scope import Scope

_SOURCES = np.array(["recorded", "computed", "unknown"])
_COLUMNS: dict[str, Any] = {
    "rank": np.int64,
    "event_class": "str",
    "name": "str",
    "limiter": "str",
    "source": "str",
    "count": np.int64,
    "time_ns": np.int64,
    "occupancy_pct": np.float64,
}


def occupancy(trace: Trace, scope: Scope | None = None) -> pd.DataFrame:
    """How many of the warps that a device can hold do its kernels keep there, and what limits them?

    Kineto estimates the occupancy of each kernel on CUDA devices from its launch, by NVIDIA's occupancy
    calculator: the blocks that a multiprocessor gets, but not more than it has room for. Here the launches of
    a name are averaged, each weighed by its duration. Kineto does not know that a kernel may opt in to more
    than 48 KiB of shared memory for a block, and writes 0 for those that do; for them the same arithmetic is
    done here, with all the shared memory that a multiprocessor has.

    The limiter is what the arithmetic is bound by: ``"grid"`` (fewer blocks than there is room for),
    ``"registers"``, ``"shared memory"``, ``"block size"`` (whole blocks do not fill the threads that a
    multiprocessor holds) or ``"none"`` (it is full). It is ``"unknown"`` without the limits of the device
    (``deviceProperties``), and where they do not explain what Kineto wrote.

    Args:
        trace: the job.
        scope: ranks, iterations, time window, streams, names to look at; default everything. Launches count
            with their whole duration, as in `kernel_breakdown`.

    Returns:
        One row per rank, kernel, limiter and source, those with most time first. Columns: rank (int64),
        event_class, name, limiter (str), source (str: ``"recorded"`` by Kineto, ``"computed"`` here, or
        ``"unknown"``), count (int64, launches), time_ns (int64, ns), occupancy_pct (float64, % of the warps
        that a multiprocessor can hold, mean by duration, or of launches without duration by count; NaN where
        the source is unknown).

    Raises:
        MissingDataError: no selected rank has device events, or none has the occupancy of kernels.
    """
    scope = scope or Scope()
    parts, estimated = [], False
    for _, rank_trace in device_ranks(trace, scope):
        if rank_trace.table.has("occupancy_pct"):
            estimated = True
            parts.append(_of_rank(rank_trace, scope))
    if not estimated and trace.ranks_of(scope):
        raise MissingDataError(
            "occupancy of kernels",
            OCCUPANCY_REMEDY,
            "no kernel has the argument est. achieved occupancy %",
        )
    empty = pd.DataFrame({name: [] for name in _COLUMNS})
    frame = pd.concat([part for part in parts if len(part)] or [empty], ignore_index=True).astype(_COLUMNS)
    by = ["time_ns", "name", "event_class", "rank", "limiter", "source"]
    return frame.sort_values(by, ascending=[name != "time_ns" for name in by], ignore_index=True)


def sentence(frame: pd.DataFrame) -> str:
    """The answer of an `occupancy` frame in words: the mean, and where most is left unused.

    It is about compute kernels, where there are any: those that communicate are made to leave room for them.
    """
    known = frame[frame["occupancy_pct"].notna() & (frame["time_ns"] > 0)]
    if known.empty:
        return "No kernel with an occupancy belongs to the selection."
    compute = known[known["event_class"] == EventClass.COMPUTE.label]
    who, known = ("Compute kernels", compute) if len(compute) else ("Kernels", known)
    used = known["occupancy_pct"] * known["time_ns"]
    unused = 100.0 * known["time_ns"] - used
    mean = used.sum() / known["time_ns"].sum()
    text = f"{who} fill {percent(mean)} of the device, on average over their time"
    kernels = known.assign(used=used, unused=unused).groupby(["name", "limiter"], sort=True)
    sums = kernels[["used", "unused", "time_ns"]].sum()
    if not sums["unused"].max() > 0:
        return f"{text}."
    worst = sums.reset_index().iloc[int(sums["unused"].to_numpy().argmax())]
    limiter = worst["limiter"]
    why = "for an unknown reason" if limiter == "unknown" else f"limited by {limiter}"
    return (
        f"{text}. The most is left unused by {short_kernel_name(worst['name'])}, which fills "
        f"{percent(worst['used'] / worst['time_ns'])} for {duration(worst['time_ns'])}, {why}."
    )


def _of_rank(rank_trace: RankTrace, scope: Scope) -> pd.DataFrame:
    members = rank_trace.members(scope)
    estimate = rank_trace.argument("occupancy_pct")[members]
    rows = members[rank_trace.is_device[members] & (estimate >= 0)]  # Kineto writes less where it fails
    found = residency(rank_trace, rows)
    dur = rank_trace.dur[rows]
    frame = pd.DataFrame(
        {
            "rank": rank_trace.rank,
            "event_class": rank_trace.event_class[rows],
            "name": rank_trace.name[rows],
            "limiter": found.limiter,
            "source": found.source,
            "time_ns": dur,
            "occupancy_pct": found.occupancy_pct,
            "weighed": found.occupancy_pct * dur,
        }
    )
    keys = ["rank", "event_class", "name", "limiter", "source"]
    groups = frame.groupby(keys, sort=False, as_index=False).agg(
        count=("time_ns", "size"),
        time_ns=("time_ns", "sum"),
        occupancy_pct=("occupancy_pct", "mean"),
        weighed=("weighed", "sum"),
    )
    timed = groups["time_ns"] > 0
    mean = groups["weighed"] / groups["time_ns"].where(timed)
    groups["occupancy_pct"] = mean.where(timed & groups["occupancy_pct"].notna(), groups["occupancy_pct"])
    groups["event_class"] = [EventClass(code).label for code in groups["event_class"].tolist()]
    groups["name"] = [rank_trace.names[code] for code in groups["name"].tolist()]
    groups["limiter"], groups["source"] = LIMITERS[groups["limiter"]], _SOURCES[groups["source"]]
    return groups[list(_COLUMNS)]


ANALYSIS = Analysis(
    label="Occupancy",
    group="Kernels",
    title="How much of the device kernels fill",
    function=occupancy,
    sentence=sentence,
    chart=Bars(
        "occupancy_pct",
        ("name",),
        "event_class",
        names="name",
        note="limiter",
        combine="mean",
        weight="time_ns",
        ascending=True,
        limit=100.0,
        measure="Achieved occupancy",
    ),
    requires=("device events", "occupancy of kernels"),
)
