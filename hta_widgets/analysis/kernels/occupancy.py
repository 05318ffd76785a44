"""How much of a device do its kernels fill, and what keeps them from filling more?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import orjson
import pandas as pd

from hta_widgets.analysis.core.entry import Analysis
from hta_widgets.analysis.device_time.busy import device_ranks
from hta_widgets.charts.spec import Bars
from hta_widgets.errors import MissingDataError
from hta_widgets.formatting import duration, percent
from hta_widgets.kernel_names import short_kernel_name
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.reader.schema import NULL
from hta_widgets.trace.scope import Scope

if TYPE_CHECKING:
    from hta_widgets.trace.model import Trace
    from hta_widgets.trace.rank_trace import RankTrace

__all__ = ["ANALYSIS", "occupancy", "sentence"]

Int64 = npt.NDArray[np.int64]
Float64 = npt.NDArray[np.float64]

_LIMITERS = np.array(["none", "grid", "registers", "shared memory", "block size", "unknown"])
_NONE, _GRID, _RESOURCES, _UNKNOWN = 0, 1, 2, 5
_SOURCES = np.array(["recorded", "computed", "unknown"])
_RECORDED, _COMPUTED, _NO_SOURCE = 0, 1, 2
_PROPERTIES = (
    "numSms",
    "warpSize",
    "maxThreadsPerMultiprocessor",
    "regsPerMultiprocessor",
    "sharedMemPerMultiprocessor",
    "computeMajor",
)
# Of CUDA devices since compute capability 3: a warp gets registers by 256, from one of four parts of a
# multiprocessor. Since 8.0 the system keeps 1 KiB of shared memory of each block.
_REGISTER_UNIT, _PARTS, _RESERVED_SHARED, _RESERVING_MAJOR = 256, 4, 1024, 8
_DEFAULT_SHARED = 48 * 1024  # of a block on every CUDA device, unless its kernel opts in to more
_ROUNDING_PCT = 1.0  # the profiler writes whole percents
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
            "Record on a CUDA device with torch.profiler.profile(activities=[ProfilerActivity.CUDA, ...]): "
            "Kineto estimates the occupancy of kernels there, and on no other device.",
            "no kernel has the argument est. achieved occupancy %",
        )
    empty = pd.DataFrame({name: [] for name in _COLUMNS})
    frame = pd.concat([part for part in parts if len(part)] or [empty], ignore_index=True).astype(_COLUMNS)
    by = ["time_ns", "name", "event_class", "rank", "limiter", "source"]
    return frame.sort_values(by, ascending=[name != "time_ns" for name in by], ignore_index=True)


def sentence(frame: pd.DataFrame) -> str:
    """The answer of an `occupancy` frame in one sentence: the mean, and where most is left unused.

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
        f"{text}; most is left unused by {short_kernel_name(worst['name'])}, which fills "
        f"{percent(worst['used'] / worst['time_ns'])} for {duration(worst['time_ns'])}, {why}."
    )


def _of_rank(rank_trace: RankTrace, scope: Scope) -> pd.DataFrame:
    members = rank_trace.members(scope)
    estimate = rank_trace.argument("occupancy_pct")[members]
    rows = members[rank_trace.is_device[members] & (estimate >= 0)]  # Kineto writes less where it fails
    value, limiter, source = _explained(rank_trace, rows)
    dur = rank_trace.dur[rows]
    frame = pd.DataFrame(
        {
            "rank": rank_trace.rank,
            "event_class": rank_trace.event_class[rows],
            "name": rank_trace.name[rows],
            "limiter": limiter,
            "source": source,
            "time_ns": dur,
            "occupancy_pct": value,
            "weighed": value * dur,
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
    groups["limiter"], groups["source"] = _LIMITERS[groups["limiter"]], _SOURCES[groups["source"]]
    return groups[list(_COLUMNS)]


def _explained(rank_trace: RankTrace, rows: Int64) -> tuple[Float64, Int64, Int64]:
    """Occupancy (%), limiter and source of each launch; the latter two as places in their names."""
    recorded = rank_trace.argument("occupancy_pct")[rows]
    threads, blocks = (_products(rank_trace, column)[rows] for column in ("block", "grid"))
    registers, shared = (
        rank_trace.argument(name)[rows] for name in ("registers_per_thread", "shared_memory")
    )
    device = rank_trace.device[rows]
    complete = (threads > 0) & (blocks > 0) & (registers != NULL) & (shared != NULL)
    opted_in = (recorded == 0) & (shared > _DEFAULT_SHARED)
    value = np.where(opted_in, np.nan, recorded)
    source = np.where(opted_in, _NO_SOURCE, _RECORDED)
    limiter = np.full(len(rows), _UNKNOWN, np.int64)
    for number, limits in _devices(rank_trace).items():
        own = np.flatnonzero((device == number) & complete)
        computed, bound = _calculated(limits, threads[own], blocks[own], registers[own], shared[own])
        zeroed = opted_in[own]
        value[own[zeroed]], source[own[zeroed]] = computed[zeroed], _COMPUTED
        explained = zeroed | (np.abs(computed - recorded[own]) <= _ROUNDING_PCT)
        limiter[own[explained]] = bound[explained]
    return value, limiter, source


def _calculated(
    limits: dict[str, int], threads: Int64, blocks: Int64, registers: Int64, shared: Int64
) -> tuple[Float64, Int64]:
    """The occupancy of launches (%), and what bounds it, as a place in `_LIMITERS`."""
    warp, held = limits["warpSize"], limits["maxThreadsPerMultiprocessor"]
    warps = -(-threads // warp)
    per_warp = np.maximum(-(-registers * warp // _REGISTER_UNIT), 1) * _REGISTER_UNIT
    per_block = shared + (_RESERVED_SHARED if limits["computeMajor"] >= _RESERVING_MAJOR else 0)
    room = np.stack(
        [
            limits["regsPerMultiprocessor"] // _PARTS // per_warp * _PARTS // warps,
            limits["sharedMemPerMultiprocessor"] // np.maximum(per_block, 1),
            held // (warps * warp),
        ]
    )
    given = blocks / limits["numSms"]
    fits = room.min(axis=0)
    filled: Float64 = 100.0 * np.minimum(given, fits) * threads / held
    bound = np.where(given < fits, _GRID, _RESOURCES + room.argmin(axis=0))
    return filled, np.where(filled >= 100.0 - _ROUNDING_PCT / 2, _NONE, bound)


def _products(rank_trace: RankTrace, column: str) -> Int64:
    """How many threads or blocks ``[x, y, z]`` are, for each row; 0 where absent or malformed."""
    texts = rank_trace.table.dictionary(column)
    product = np.array([*map(_product, texts), 0], np.int64)
    return product[rank_trace.argument_codes(column)]  # -1, absent, is the last


def _product(text: str) -> int:
    try:
        sides = orjson.loads(text)
    except orjson.JSONDecodeError:
        return 0
    if not isinstance(sides, list) or not all(type(side) is int and 0 < side < 2**31 for side in sides):
        return 0
    x, y, z = (*sides, 1, 1, 1)[:3]
    return min(int(x * y * z), 2**62)


def _devices(rank_trace: RankTrace) -> dict[int, dict[str, int]]:
    """The limits of each device whose properties the file has, all of them, by its number."""
    recorded: Any = rank_trace.metadata.get("deviceProperties")
    known = [device for device in recorded if isinstance(device, dict)] if isinstance(recorded, list) else []
    return {
        device["id"]: {name: device[name] for name in _PROPERTIES}
        for device in known
        if type(device.get("id")) is int
        and all(type(device.get(name)) is int and 0 < device[name] < 2**40 for name in _PROPERTIES)
    }


ANALYSIS = Analysis(
    kind="occupancy",
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
