"""The bandwidth of copies and fills, over time and in total, by kind of copy."""

from __future__ import annotations

import numpy as np
import pandas as pd

from hta_widgets.analysis.copies.flows import BYTES_PER_S, Flow, copy_flows
from hta_widgets.analysis.core.entry import Analysis
from hta_widgets.analysis.core.kept import kept
from hta_widgets.analysis.core.step_function import quantile
from hta_widgets.arrays import Int64
from hta_widgets.charts.spec import Bars, Lines
from hta_widgets.formatting import bandwidth, duration
from hta_widgets.trace.model import Trace
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.reader.schema import NULL
from hta_widgets.trace.scope import Scope

_POINTS = ("rank", "device", "kind", "time_ns", "gbps", "event_id")
_COUNTS = (
    "copies",
    "copies_without_bandwidth",
    "copies_without_bytes",
    "bytes",
    "gpu_ns",
    "window_ns",
    "busy_ns",
)
_RATES = ("mean_gbps", "mean_busy_gbps", "max_gbps", "p50_gbps", "effective_gbps")


@kept(by_rank=True)
def memory_bandwidth(trace: Trace, scope: Scope | None = None) -> pd.DataFrame:
    """The bandwidth of copies and fills over time, for each kind of copy on each device.

    Each copy moves memory at the bandwidth that the profiler recorded for it, from its start to its end;
    copies of one kind that run at once add up. The sums are exact: when nothing runs the bandwidth is 0, not
    a remainder. Where no bandwidth was recorded it is bytes by time; copies with neither, and copies of no
    length, are left out.

    With iterations or a time window, the points inside, each window beginning with the bandwidth at its
    start.

    Args:
        trace: the job.
        scope: ranks, iterations, time window, streams, names to look at; default everything.

    Returns:
        One row per start and end of a copy, by rank, device, kind, time; the bandwidth holds until the next
        row. At equal times ends come first. Columns: rank, device int64, kind (str, e.g. "Memcpy DtoH",
        "Memset"), time_ns int64 (ns), gbps float64 (1e9 bytes per s), event_id int64 (-1 at the start of a
        window).

    Raises:
        MissingDataError: no selected rank has a copy with a recorded bandwidth or size.
    """
    scope = scope or Scope()
    timed = scope.iterations is not None or scope.window_ns is not None
    frames = []
    for rank_trace, flow in copy_flows(trace, scope):
        for first, last in rank_trace.windows(scope).tolist() if timed else [(None, None)]:
            frames.append(_points(rank_trace, flow, first, last))
    if not frames:
        kinds = {"kind": "str", "gbps": "float64"}
        return pd.DataFrame(columns=list(_POINTS)).astype({**dict.fromkeys(_POINTS, "int64"), **kinds})
    return pd.concat(frames, ignore_index=True)


@kept(by_rank=True)
def bandwidth_summary(trace: Trace, scope: Scope | None = None) -> pd.DataFrame:
    """How much memory was moved, and at which bandwidth?

    Statistics of `memory_bandwidth`, each value weighted by how long it lasted.

    Times are clipped to the windows of the scope (without iterations and window: the rank's device span).
    Copies and bytes are those of the copies that belong to the scope: to an iteration through their launch,
    to a window if they start in it.

    Args:
        trace, scope: as for `memory_bandwidth`.

    Returns:
        One row per rank, device and kind. Columns: rank, device int64, kind (str), copies,
        copies_without_bandwidth (left out of the rates), copies_without_bytes (left out of bytes), bytes,
        gpu_ns (their length added up, ns), window_ns, busy_ns (time with such a copy running, ns) (int64),
        mean_gbps (over window_ns), mean_busy_gbps (over busy_ns), max_gbps, p50_gbps (while busy),
        effective_gbps (bytes by the length of their copies) (float64, 1e9 bytes per s; NaN without any time).

    Raises:
        MissingDataError: no selected rank has a copy with a recorded bandwidth or size.
    """
    scope = scope or Scope()
    rows = []
    for rank_trace, flow in copy_flows(trace, scope):
        belongs = rank_trace.belong(flow.copies, scope)
        copies, size = flow.copies[belongs], flow.size[belongs]
        sized = size != NULL
        value, held = flow.rate.within(rank_trace.windows(scope))
        moving = value > 0
        window, busy = int(held.sum()), int(held[moving].sum())
        moved = _integral(value[moving], held[moving])
        length = int(rank_trace.dur[copies[sized]].sum())
        counts = (
            len(copies), int(np.isin(copies, flow.copies_without_rate).sum()), int((~sized).sum()),
            int(size[sized].sum()), int(rank_trace.dur[copies].sum()), window, busy,
        )  # fmt: skip
        rates = (
            _ratio(moved, window * BYTES_PER_S), _ratio(moved, busy * BYTES_PER_S),
            int(value[held > 0].max(initial=0)) / BYTES_PER_S,
            quantile(value[moving], held[moving], 0.5) / BYTES_PER_S,
            _ratio(int(size[sized].sum()), length),
        )  # fmt: skip
        rows.append((rank_trace.rank, flow.device, flow.kind, *counts, *rates))
    columns = ["rank", "device", "kind", *_COUNTS, *_RATES]
    kinds = dict.fromkeys(("rank", "device", *_COUNTS), "int64") | dict.fromkeys(_RATES, "float64")
    return pd.DataFrame(rows, columns=columns).astype({**kinds, "kind": "str"})


def sentence(frame: pd.DataFrame) -> str:
    """The answer of `bandwidth_summary` in words."""
    frame = frame[frame["busy_ns"] > 0]
    if frame.empty:
        return "No memory is moved in the selection."
    kinds = frame.groupby("kind", sort=True).agg({"busy_ns": "sum", "max_gbps": "max"})
    most = kinds.iloc[int(kinds["busy_ns"].to_numpy().argmax())]
    return (
        f"{most.name} takes most time, {duration(most['busy_ns'])} in all, "
        f"at up to {bandwidth(most['max_gbps'])}."
    )


def _points(rank_trace: RankTrace, flow: Flow, first: int | None, last: int | None) -> pd.DataFrame:
    rate = flow.rate
    time, value, event = rate.time, rate.value, rank_trace.event_id[flow.row].astype(np.int64)
    if first is not None and last is not None:
        low, high = np.searchsorted(time, (first, last), side="left")
        before = value[low - 1] if low else 0
        time, value, event = (
            np.concatenate([[at_start], part[low:high]])
            for at_start, part in ((first, time), (before, value), (-1, event))
        )
    same = {"rank": np.int64(rank_trace.rank), "device": np.int64(flow.device), "kind": flow.kind}
    frame = pd.DataFrame({**same, "time_ns": time, "gbps": value / BYTES_PER_S, "event_id": event})
    return frame.astype({"kind": "str"})


def _integral(value: Int64, held: Int64) -> int:
    """The sum of value * held: bytes/s * ns leave int64 after an hour of copying, so 16 bits at a time."""
    return sum(int((((value >> shift) & 0xFFFF) * held).sum()) << shift for shift in (0, 16, 32))


def _ratio(part: int, whole: int) -> float:
    return part / whole if whole else float("nan")


def bandwidth_sentence(frame: pd.DataFrame) -> str:
    """The answer of `memory_bandwidth` in words."""
    if frame.empty or not frame["gbps"].max() > 0:
        return "No memory is moved in the selection."
    fastest = frame.iloc[int(frame["gbps"].to_numpy().argmax())]
    return (
        f"{fastest['kind']} on rank {fastest['rank']} is fastest, {bandwidth(fastest['gbps'])}, "
        f"{duration(fastest['time_ns'])} after the start."
    )


MEMORY_BANDWIDTH = Analysis(
    label="Bandwidth",
    group="Memory",
    title="How fast memory is copied and set over time",
    function=memory_bandwidth,
    sentence=bandwidth_sentence,
    chart=Lines("time_ns", "gbps", ("rank", "device", "kind"), "memory", measure="Bandwidth"),
    requires=("memory bandwidth (GB/s)",),
)

BANDWIDTH_SUMMARY = Analysis(
    label="Copies",
    group="Memory",
    title="Which copies take how long",
    function=bandwidth_summary,
    sentence=sentence,
    chart=Bars("gpu_ns", ("kind",), "memory", measure="Device time"),
    requires=("memory bandwidth (GB/s)",),
)
