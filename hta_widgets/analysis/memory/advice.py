"""How full each device's memory gets, whether it leaks, and how much larger a micro-batch would still fit."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pandas as pd

from hta_widgets.analysis.calls.phases import PHASES, phases
from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.memory.events import Changes
from hta_widgets.analysis.memory.growth import LEAST_STEPS, chance_of, slope_of
from hta_widgets.analysis.memory.lifetimes import LIFETIMES, Lifetimes, lifetimes_of
from hta_widgets.analysis.memory.peaks import Peak, inside, levels_of, peak_of, recorded
from hta_widgets.formatting import counted
from hta_widgets.trace.links import windows_of
from hta_widgets.trace.model import Trace
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.reader.schema import NULL
from hta_widgets.trace.scope import Scope

LIKELY: Final = 0.05
"""Growth that chance reaches this often is not called a leak."""

_STEPS = ("ProfilerStep", "serving step")
_LEVELS: Final = {
    "rank": "int64", "device": "str", "device_bytes": "Int64", "peak_ns": "int64", "allocated_bytes": "int64",
    "reserved_bytes": "Int64", "slack_bytes": "Int64", "most_reserved_bytes": "Int64",
    "most_slack_bytes": "Int64", "most_slack_ns": "Int64", "steps": "int64", "leak_bytes_per_step": "Int64",
    "leak_p": "float64", "leak_basis": "str",
}  # fmt: skip
_COLUMNS: Final = {
    **_LEVELS, "training_peak_bytes": "Int64", "optimizer_peak_bytes": "Int64",
    "optimizer_temporary_bytes": "Int64", "activation_bytes": "int64", "headroom_low": "float64",
    "headroom_high": "float64", "headroom_basis": "str",
}  # fmt: skip


def memory_advice(trace: Trace, scope: Scope | None = None) -> pd.DataFrame:
    """Is memory short, wasted or leaking, and how much larger could a micro-batch be?

    Args:
        trace: the job.
        scope: ranks, iterations, window; streams and names are ignored.

    Returns:
        One row per rank and device, in this order. Columns: rank int64, device (str), device_bytes (Int64,
        memory of the device as `deviceProperties` has it), peak_ns int64 (job's axis), allocated_bytes
        int64, reserved_bytes Int64 (both at the peak of `memory_peak`), slack_bytes (Int64, reserved but not
        allocated at the peak), most_reserved_bytes, most_slack_bytes, most_slack_ns (Int64; the highest of
        the scope, and when);

        steps (int64, complete steps in the scope), leak_bytes_per_step (Int64, the slope of the lowest level
        of each step, by Theil and Sen), leak_p (float64, how likely chance rises as steadily, by Mann and
        Kendall), leak_basis (str, how they were found, or why they are NA);

        training_peak_bytes, optimizer_peak_bytes (Int64, highest level outside and inside calls of the
        optimizer, NA without such calls), optimizer_temporary_bytes (Int64, how much of what is allocated at
        the optimizer's peak is its own and freed before it ends: where its peak is the higher one,
        an update of fewer tensors at a time lowers the peak by up to the smaller of that and the difference);

        activation_bytes (int64, activations at the peak), headroom_low, headroom_high (float64, the
        micro-batch could be so many times as large; NA if unknown), headroom_basis (str, how they were
        found, or why they are NA). For the high figure only activations grow, into all that is not
        allocated; for the low one temporaries and what is of unknown use grow as well, and the slack stays
        as it is in proportion. What other libraries and the driver take is not recorded, so the
        low figure is no guarantee.

    Raises:
        MissingDataError: no selected rank has memory events.
    """
    scope, rows = scope or Scope(), []
    for rank_trace, changes, place, peak in _devices(trace, scope):
        lifetimes = lifetimes_of(rank_trace, trace.clock.offset_ns.get(rank_trace.rank, 0))
        held = {
            name: int(changes.change[peak.live[lifetimes.lifetime[peak.live] == at]].sum())
            for at, name in enumerate(LIFETIMES)
        }
        row = _levels(rank_trace, changes, place, peak, scope) | {"activation_bytes": held["activation"]}
        row |= _optimizer(rank_trace, changes, place, lifetimes, scope)
        rows.append(row | _headroom(row, held))
    return _frame(rows, _COLUMNS)


def memory_levels(trace: Trace, scope: Scope) -> pd.DataFrame:
    """The columns of `memory_advice` up to leak_basis, for which nobody has to know what blocks are for."""
    return _frame([_levels(*device, scope) for device in _devices(trace, scope)], _LEVELS)


def _devices(trace: Trace, scope: Scope) -> Iterator[tuple[RankTrace, Changes, int, Peak]]:
    """The devices whose memory was recorded, as places in the changes of their rank, with their peaks."""
    for _, rank_trace, changes in recorded(trace, scope):
        for place in range(len(changes.places)):
            peak = peak_of(rank_trace, changes, place, scope)
            if peak is not None:
                yield rank_trace, changes, place, peak


def _frame(rows: list[dict[str, Any]], columns: dict[str, str]) -> pd.DataFrame:
    frame = pd.DataFrame(rows, columns=list(columns)).astype(columns)
    return frame.sort_values(["rank", "device"], kind="stable", ignore_index=True)


def _levels(rank_trace: RankTrace, changes: Changes, place: int, peak: Peak, scope: Scope) -> dict[str, Any]:
    here = np.flatnonzero(changes.place == place)
    seen = here[inside(rank_trace, changes.time[here], scope)]
    seen = seen[changes.reserved[seen] != NULL]
    slack = changes.reserved[seen] - changes.allocated[seen]
    row: dict[str, Any] = {
        "rank": rank_trace.rank,
        "device": changes.places[place],
        "device_bytes": _device_bytes(rank_trace, changes.places[place]),
        "peak_ns": peak.time_ns,
        "allocated_bytes": peak.bytes,
        "reserved_bytes": peak.reserved,
        "slack_bytes": None if peak.reserved is None else peak.reserved - peak.bytes,
        "most_reserved_bytes": int(changes.reserved[seen].max()) if len(seen) else None,
        "most_slack_bytes": int(slack.max()) if len(seen) else None,
        "most_slack_ns": int(changes.time[seen[slack.argmax()]]) if len(seen) else None,
    }
    return row | _leak(rank_trace, changes, place, scope)


def _device_bytes(rank_trace: RankTrace, device: str) -> int | None:
    """The memory of an accelerator, if the file tells it."""
    number = re.search(r":(\d+)$", device)
    listed = rank_trace.metadata.get("deviceProperties")
    if number is None or not isinstance(listed, list):
        return None
    for each in listed:
        if isinstance(each, dict) and each.get("id") == int(number[1]):
            total = each.get("totalGlobalMem")
            return total if isinstance(total, int) and 0 < total < 2**63 else None
    return None


# -- a leak ------------------------------------------------------------------------------------------------


def _leak(rank_trace: RankTrace, changes: Changes, place: int, scope: Scope) -> dict[str, Any]:
    """The slope of the lowest level of each step."""
    steps = rank_trace.iterations
    chosen = steps["source"].isin(_STEPS) & ~steps["partial"]
    if scope.iterations is not None:
        chosen &= steps["iteration"].isin(scope.iterations)
    windows = steps.loc[chosen, ["host_start_ns", "host_end_ns"]].to_numpy(np.int64)
    if scope.window_ns is not None:
        windows = windows[(windows[:, 0] >= scope.window_ns[0]) & (windows[:, 1] <= scope.window_ns[1])]
    unknown = {"steps": len(windows), "leak_bytes_per_step": None, "leak_p": np.nan}
    if len(windows) < LEAST_STEPS:
        steps_text = counted(len(windows), "complete step")
        return unknown | {"leak_basis": f"unknown: {steps_text}, {LEAST_STEPS} are needed"}
    levels = levels_of(changes, place, windows[:, 0])
    here = np.flatnonzero(changes.place == place)
    step = windows_of(changes.time[here], windows[:, 0], windows[:, 1])
    np.minimum.at(levels, step[step >= 0], changes.allocated[here[step >= 0]])
    return {
        "steps": len(windows),
        "leak_bytes_per_step": round(slope_of(levels)),
        "leak_p": chance_of(levels),
        "leak_basis": f"lowest level of each of {len(windows)} steps",
    }


# -- the optimizer's peak ----------------------------------------------------------------------------------


def _optimizer(
    rank_trace: RankTrace, changes: Changes, place: int, lifetimes: Lifetimes, scope: Scope
) -> dict[str, Any]:
    """The peaks inside and outside calls of the optimizer."""
    found = phases(rank_trace)
    calls = found.outermost[found.of[found.outermost] == PHASES.index("optimizer")]
    spans = Intervals.union(rank_trace.start[calls], rank_trace.end[calls])
    if scope.iterations is not None or scope.window_ns is not None:
        windows = rank_trace.windows(scope, "host")
        spans = spans & Intervals.union(windows[:, 0], windows[:, 1])
    columns = ("training_peak_bytes", "optimizer_peak_bytes", "optimizer_temporary_bytes")
    if not len(spans):
        return dict.fromkeys(columns)
    here = np.flatnonzero(changes.place == place)
    chosen = here[inside(rank_trace, changes.time[here], scope)]
    call = windows_of(changes.time[chosen], spans.start, spans.end)
    highest = levels_of(changes, place, spans.start)
    np.maximum.at(highest, call[call >= 0], changes.allocated[chosen[call >= 0]])
    best = int(highest.argmax())
    window = (int(spans.start[best]), int(spans.end[best]))
    inner = peak_of(rank_trace, changes, place, Scope(window_ns=window))
    assert inner is not None  # a window has the level that it begins with
    outside = chosen[call < 0]
    own = inner.live[
        (lifetimes.phase[inner.live] == PHASES.index("optimizer"))
        & (lifetimes.lifetime[inner.live] == LIFETIMES.index("temporary"))
    ]
    other = int(changes.allocated[outside].max()) if len(outside) else None
    return dict(zip(columns, (other, inner.bytes, int(changes.change[own].sum())), strict=True))


# -- a larger micro-batch ----------------------------------------------------------------------------------


def _headroom(row: dict[str, Any], held: dict[str, int]) -> dict[str, Any]:
    """How many times as large the micro-batch could be."""
    total, peak, reserved = row["device_bytes"], row["allocated_bytes"], row["most_reserved_bytes"]
    reason = ""
    if total is None:
        reason = "the recording does not state the memory of the device"
    elif not held["activation"]:
        reason = "no activations are known at the peak"
    elif peak > total:
        reason = "more is allocated than the device has"
    if reason:
        return {"headroom_low": np.nan, "headroom_high": np.nan, "headroom_basis": f"unknown: {reason}"}
    growing = held["activation"] + held["temporary"] + held["unknown"]
    high = 1 + (total - peak) / held["activation"]
    waste = max(1.0, (peak if reserved is None else reserved) / peak)
    low = max(1.0, 1 + (total / waste - peak) / growing)
    return {
        "headroom_low": low,
        "headroom_high": high,
        "headroom_basis": "activations grow with the micro-batch, nothing else does"
        if growing == held["activation"]
        else "activations grow with the micro-batch, temporaries and unknown blocks may",
    }
