"""A snapshot beside a recording of the same run: what ran when most was allocated."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pandas as pd

from hta_widgets.arrays import Int64
from hta_widgets.errors import MissingDataError
from hta_widgets.formatting import duration
from hta_widgets.memory_snapshot.history import History
from hta_widgets.memory_snapshot.tables import NULL
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.model import Trace
from hta_widgets.trace.rank_trace import RankTrace

_REMEDY: Final = (
    "Call torch.cuda.memory._record_memory_history before torch.profiler.profile records, and _dump_snapshot "
    "after it, in the same process."
)
COLUMNS: Final = {
    "rank": "int64", "device": "int64", "peak_ns": "int64", "peak_bytes": "int64", "overall_bytes": "int64",
    "iteration": "Int64", "operator": "str", "device_work": "str",
}  # fmt: skip


def peak_in(trace: Trace, histories: dict[int, History], rank: int | None) -> pd.DataFrame:
    """The rows of `MemorySnapshot.peak_in`, for the histories of the devices that have one."""
    rows = []
    for device, history in histories.items():
        rank_trace = trace.rank(_rank_of(trace, device) if rank is None else rank)
        rows.append(_peak(trace, rank_trace, device, history))
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype(COLUMNS)


def _peak(trace: Trace, rank_trace: RankTrace, device: int, history: History) -> dict[str, Any]:
    """The highest level while the rank was recorded, and what ran then."""
    time = _on_axis(trace, rank_trace, history.events["time_us"].to_numpy())
    first, last = rank_trace.extent
    inside = np.flatnonzero((time >= first) & (time <= last))
    if not len(inside):
        raise _apart(_distance(time, first, last))
    # what is allocated when the recording begins counts, and what each event then makes of it
    begin, end = int(inside[0]), int(inside[-1]) + 1
    after = begin + int(history.allocated[begin : end + 1].argmax())
    at = first if after == begin else int(time[after - 1])
    return {
        "rank": rank_trace.rank,
        "device": device,
        "peak_ns": at,
        "peak_bytes": int(history.allocated[after]),
        "overall_bytes": int(history.allocated[history.peak]),
        "iteration": _iteration(rank_trace, at),
        "operator": _running(rank_trace, at, rank_trace.event_class == EventClass.HOST_OP),
        "device_work": _running(rank_trace, at, rank_trace.is_device & (rank_trace.device == device)),
    }


def _on_axis(trace: Trace, rank_trace: RankTrace, time_us: Int64) -> Int64:
    """The times of a snapshot's events, which are since the epoch, on the trace's axis (ns).

    Raises:
        MissingDataError: the file or the snapshot does not say when it was.
    """
    base = rank_trace.metadata.get("baseTimeNanoseconds")
    if not isinstance(base, int):
        raise _apart("the trace does not state when it began (baseTimeNanoseconds)")
    if not len(time_us) or (time_us == NULL).any():
        raise _apart("the snapshot's events have no times")
    zero = base + trace.clock.offset_ns.get(rank_trace.rank, 0)
    return time_us * 1000 - zero


def _distance(time: Int64, first: int, last: int) -> str:
    """In words how far the snapshot's events are from the recording, which has none of them."""
    if time[0] > last:
        return f"its history begins {duration(int(time[0]) - last)} after the recording ends"
    if time[-1] < first:
        return f"its history ends {duration(first - int(time[-1]))} before the recording begins"
    return "nothing was allocated or freed while the recording ran"


def _apart(why: str) -> MissingDataError:
    return MissingDataError("time in common with the snapshot", _REMEDY, why)


def _rank_of(trace: Trace, device: int) -> int:
    """The only rank that works on a device.

    Raises:
        MissingDataError: none or several do.
    """
    found = []
    for rank in trace.ranks:
        rank_trace = trace.rank(rank)
        if (rank_trace.is_device & (rank_trace.device == device)).any():
            found.append(rank)
    if len(found) != 1:
        several = f"ranks {', '.join(map(str, found))} work on device {device}: name one with rank="
        raise _apart(several if found else f"no rank works on device {device}")
    return found[0]


def _iteration(rank_trace: RankTrace, at: int) -> int | None:
    frame = rank_trace.iterations
    inside = frame[(frame["host_start_ns"] <= at) & (frame["host_end_ns"] > at)]
    return int(inside["iteration"].iloc[0]) if len(inside) else None


def _running(rank_trace: RankTrace, at: int, chosen: Any) -> str:
    """The name of the event that is open at a moment, of several the last to begin; "" for none."""
    opened = np.flatnonzero(chosen & (rank_trace.start <= at) & (rank_trace.end > at))
    if not len(opened):
        return ""
    last = opened[np.argmax(rank_trace.start[opened])]
    return rank_trace.names[rank_trace.name[last]]
