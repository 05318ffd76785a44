"""How much memory was in use, when it was highest, and which operators held it then."""

from __future__ import annotations

import numpy as np
import pandas as pd

from hta_widgets.analysis.core.entry import Analysis
from hta_widgets.analysis.core.kept import kept
from hta_widgets.analysis.memory.events import Changes, innermost, outermost
from hta_widgets.analysis.memory.peaks import inside, peak_of, recorded
from hta_widgets.arrays import Bool, Int64
from hta_widgets.charts.spec import Bars, Lines
from hta_widgets.formatting import byte_size, duration, percent
from hta_widgets.frames import TEXT
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.links import windows_of
from hta_widgets.trace.model import Trace
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.reader.schema import NULL
from hta_widgets.trace.scope import Scope

BEFORE = "(allocated before the recording)"
"""The holder of bytes whose allocation was not recorded."""
NO_OPERATOR = "(no operator)"

_PEAK = {
    "rank": "int64", "device": "str", "peak_ns": "int64", "peak_bytes": "int64", "reserved_bytes": "Int64",
    "top_operator": "str", "operator": "str", "annotation": TEXT, "iteration": "Int64", "blocks": "int64",
    "bytes": "int64", "share_pct": "float64",
}  # fmt: skip


@kept(by_rank=True)
def memory_timeline(trace: Trace, scope: Scope | None = None) -> pd.DataFrame:
    """How much memory was allocated and reserved on each device over time, by the `[memory]` events?

    Allocated is what tensors hold, reserved what PyTorch's caching allocator holds from the device; both are
    the allocator's own totals, so that memory taken before the recording counts.

    Args:
        trace: the job.
        scope: changes in its iterations or window, on its ranks; default all. Streams and names are ignored.

    Returns:
        One row per allocation or free, by rank, device, time_ns, event_id. Columns: rank, event_id int64,
        device str ("cuda:0", "cpu"), time_ns int64 (job's axis), change_bytes int64 (negative: freed),
        allocated_bytes int64 (after it; counted from 0 if the recording lacks the totals), reserved_bytes
        Int64 (after it; NA where not recorded), slack_bytes Int64 (reserved but not allocated), iteration
        Int64 (the one it lies in).

    Raises:
        MissingDataError: no selected rank has memory events.
    """
    scope = scope or Scope()
    frames = []
    for rank, rank_trace, changes in recorded(trace, scope):
        chosen = inside(rank_trace, changes.time, scope)
        order = chosen[np.argsort(changes.place[chosen], kind="stable")]
        reserved = changes.reserved[order]
        frames.append(
            pd.DataFrame(
                {
                    "rank": np.full(len(order), rank, np.int64),
                    "event_id": changes.event_id[order],
                    "device": pd.Series(np.array(changes.places, object)[changes.place[order]], dtype="str"),
                    "time_ns": changes.time[order],
                    "change_bytes": changes.change[order],
                    "allocated_bytes": changes.allocated[order],
                    "reserved_bytes": _nullable(reserved, reserved == NULL),
                    "slack_bytes": _nullable(reserved - changes.allocated[order], reserved == NULL),
                    "iteration": _iteration_at(rank_trace, changes.time[order]),
                }
            )
        )
    return pd.concat(frames, ignore_index=True)


@kept(by_rank=True)
def memory_peak(trace: Trace, scope: Scope | None = None) -> pd.DataFrame:
    """When was each device's allocated memory highest, and which operators held it then?

    The peak is the first highest level within the scope; what was allocated when the scope begins counts.
    A block is held by the operators that were running on its thread when it was allocated, until the next
    event of its address. Bytes whose allocation was not recorded are one holder of their own.

    Args:
        trace: the job.
        scope: ranks, iterations, window; streams and names are ignored.

    Returns:
        One row per holder: rank int64, device str, peak_ns int64 (job's axis), peak_bytes int64,
        reserved_bytes Int64 (at the peak), top_operator, operator str (outermost and innermost operator on
        the thread), annotation str (innermost, NA for none), iteration Int64 (of the allocation), blocks,
        bytes int64, share_pct float64 (% of peak_bytes). By rank, device, most bytes first. The bytes of a
        device add up to its peak_bytes.

    Raises:
        MissingDataError: no selected rank has memory events.
    """
    scope = scope or Scope()
    frames = [
        frame
        for rank, rank_trace, changes in recorded(trace, scope)
        for place in range(len(changes.places))
        if (frame := _peak(rank, rank_trace, changes, place, scope)) is not None
    ]
    if not frames:
        return pd.DataFrame({column: pd.Series(dtype=kind) for column, kind in _PEAK.items()})
    found = pd.concat(frames, ignore_index=True)
    found["share_pct"] = 100.0 * found["bytes"] / found["peak_bytes"].where(found["peak_bytes"] != 0)
    found = found.sort_values(
        ["rank", "device", "bytes", "top_operator", "operator", "annotation", "iteration"],
        ascending=[True, True, False, True, True, True, True], kind="stable", ignore_index=True,
    )  # fmt: skip
    return found[list(_PEAK)].astype(_PEAK)


def sentence(frame: pd.DataFrame) -> str:
    """The answer of `memory_peak` in words: the fullest device and its greatest holder."""
    frame = frame[frame["device"] != "cpu"] if (frame["device"] != "cpu").any() else frame
    if frame.empty:
        return "No memory was allocated in the selection."
    fullest = frame[frame["peak_bytes"] == frame["peak_bytes"].max()]
    rank, device = fullest.iloc[0][["rank", "device"]]
    of_device = fullest[(fullest["rank"] == rank) & (fullest["device"] == device)]
    holder = of_device.groupby("top_operator", sort=True)["bytes"].sum()
    peak = int(of_device["peak_bytes"].iloc[0])
    most = str(holder.idxmax())
    owner = "memory allocated before the recording" if most == BEFORE else most
    share = percent(100.0 * holder[most] / peak if peak else 0.0)
    return f"{who_needs_most(frame)}; {share} of it is held by {owner}."


def who_needs_most(frame: pd.DataFrame) -> str:
    """`Rank 2 needs most memory, 9.00 GiB on cuda:0`, or that all ranks need as much, and one of them.

    Args:
        frame: rank, device and peak_bytes; not empty.
    """
    first = frame.iloc[int(frame["peak_bytes"].to_numpy().argmax())]
    rank, device = first["rank"], first["device"]
    peak = byte_size(int(first["peak_bytes"]))
    of_ranks = frame.groupby("rank")["peak_bytes"].max()
    if len(of_ranks) > 1 and {byte_size(int(each)) for each in of_ranks} == {peak}:
        return f"All ranks need the same amount of memory, {peak}. Rank {rank} needs it on {device}"
    return f"Rank {rank} needs most memory, {peak} on {device}"


def _iteration_at(rank_trace: RankTrace, time: Int64) -> pd.arrays.IntegerArray:
    frame = rank_trace.iterations
    at = windows_of(time, frame["host_start_ns"].to_numpy(np.int64), frame["host_end_ns"].to_numpy(np.int64))
    number = np.append(frame["iteration"].to_numpy(np.int64), 0)[at]
    return _nullable(number, at < 0)


def _peak(
    rank: int, rank_trace: RankTrace, changes: Changes, place: int, scope: Scope
) -> pd.DataFrame | None:
    peak = peak_of(rank_trace, changes, place, scope)
    if peak is None:
        return None
    live = peak.live
    held = pd.DataFrame(
        {
            **_holders(rank_trace, changes, live),
            "iteration": _iteration_at(rank_trace, changes.time[live]),
            "bytes": changes.change[live],
        }
    )
    by = held.groupby(["top_operator", "operator", "annotation", "iteration"], dropna=False, sort=True)[
        "bytes"
    ]
    found = by.agg(blocks="size", bytes="sum").reset_index()
    unseen = peak.unseen(changes)
    if unseen:
        rest = pd.DataFrame(
            {
                "top_operator": [BEFORE],
                "operator": [BEFORE],
                "annotation": [None],
                "iteration": [pd.NA],
                "bytes": [unseen],
            }
        )
        rest = rest.assign(blocks=0).astype({"annotation": TEXT, "iteration": "Int64"})
        found = pd.concat([found, rest], ignore_index=True) if len(found) else rest
    return found.assign(
        rank=np.int64(rank),
        device=changes.places[place],
        peak_ns=np.int64(peak.time_ns),
        peak_bytes=np.int64(peak.bytes),
        reserved_bytes=pd.array([peak.reserved] * len(found), "Int64"),
    )


def _holders(rank_trace: RankTrace, changes: Changes, at: Int64) -> dict[str, pd.Series]:
    """top_operator, operator, annotation: the names of what was open on the thread of each change."""
    operator = innermost(rank_trace, EventClass.HOST_OP, changes, at)
    rows = {
        "top_operator": outermost(rank_trace, EventClass.HOST_OP, operator),
        "operator": operator,
        "annotation": innermost(rank_trace, EventClass.ANNOTATION, changes, at),
    }
    names = np.array([*rank_trace.names, None], object)
    name = np.append(rank_trace.name, -1)
    code = {column: name[row] for column, row in rows.items()}
    return {
        column: pd.Series(names[code[column]], dtype="str").fillna(
            NO_OPERATOR if column != "annotation" else np.nan
        )
        for column in rows
    }


def _nullable(values: Int64, absent: Bool) -> pd.arrays.IntegerArray:
    return pd.arrays.IntegerArray(np.where(absent, 0, values), absent)


def timeline_sentence(frame: pd.DataFrame) -> str:
    """The answer of `memory_timeline` in words."""
    frame = frame[frame["device"] != "cpu"] if (frame["device"] != "cpu").any() else frame
    if frame.empty:
        return "No memory was allocated in the selection."
    fullest = frame.iloc[int(frame["allocated_bytes"].to_numpy().argmax())]
    return (
        f"Rank {fullest['rank']} allocates most memory, {byte_size(fullest['allocated_bytes'])} on "
        f"{fullest['device']}, {duration(fullest['time_ns'])} after the start."
    )


MEMORY_TIMELINE = Analysis(
    label="Memory",
    group="Memory",
    title="How much memory is in use over time",
    function=memory_timeline,
    sentence=timeline_sentence,
    chart=Lines(
        "time_ns",
        "allocated_bytes",
        ("rank", "device"),
        "memory",
        beside="reserved_bytes",
        measure="Memory",
    ),
    requires=("memory events",),
)

MEMORY_PEAK = Analysis(
    label="Memory peak",
    group="Memory",
    title="Who holds memory at the peak",
    function=memory_peak,
    sentence=sentence,
    chart=Bars(
        "bytes",
        ("rank", "device", "top_operator"),
        "memory",
        names="top_operator",
        no_event=BEFORE,
        measure="Memory",
    ),
    requires=("memory events",),
)
