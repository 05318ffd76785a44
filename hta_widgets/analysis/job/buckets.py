"""Fewer and larger collectives: what a step takes if those of a group are merged up to a size."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from hta_widgets.analysis.communication.alpha_beta import LEAST_SIZES, Fit, fit
from hta_widgets.analysis.job.changes import Changed, named
from hta_widgets.analysis.job.model import JobModel
from hta_widgets.analysis.job.operations import NOT_CALLED
from hta_widgets.arrays import Int64
from hta_widgets.errors import MissingDataError
from hta_widgets.formatting import byte_size, counted

# A line through the recorded sizes is not followed further than to this many times the largest.
_BEYOND = 4


def larger_buckets(model: JobModel, changed: Changed, most_bytes: int, name: str) -> Changed:
    """Collectives of a group that follow one another become one, up to a size.

    It begins when the data of the last of them is there, and takes as long as one of its size: by latency and
    bandwidth of the group, fitted to its transfers (`alpha_beta`).

    Raises:
        MissingDataError: no such collective has a known size, or there are too few sizes for a fit.
        ValueError: a bucket would be much larger than all that was recorded, or something waits for one of
            the collectives before the data of the last is there.
    """
    count = len(changed.own)
    ops = model.ops.iloc[:count].assign(meeting=model.meeting[:count], taken=model.taken[:count])
    whole = (
        (model.meeting >= 0) & ~model.incomplete & named(model, name) & (model.ops["kind"] == "collective")
    )
    some = ops[whole[:count] & (ops["bytes"] > 0).fillna(False).to_numpy()]
    if some.empty:
        raise MissingDataError(
            "collective of a known size",
            "Record all ranks with PyTorch 2.4 or later: its profiler writes the sizes of messages.",
            f"none is named {name}",
        )
    fixed, data = changed.fixed.copy(), list[Int64]()
    for _, group in some.groupby(["process_group", "group_ranks", "collective"], dropna=False, sort=True):
        last = _merge(model, group, most_bytes, fixed)
        data.append(_computed_before(ops, last))
    before, after = np.concatenate([np.stack([changed.before, changed.after]), *data], axis=1)
    return replace(changed, fixed=fixed, before=before, after=after)


def _merge(model: JobModel, group: pd.DataFrame, most_bytes: int, fixed: Int64) -> Int64:
    """Merge the collectives of one group, into what operations take from now on; the last of each bucket."""
    each = group[group["rank"] == group["rank"].min()].sort_values(["step", "start_ns"])
    size, step = each["bytes"].to_numpy(np.int64), each["step"].to_numpy(np.int64)
    bucket = _buckets(size, step, most_bytes)
    merged = np.bincount(bucket)[bucket] > 1
    if not merged.any():
        return np.empty(0, np.int64)
    whole = np.bincount(bucket, size).astype(np.int64)
    line = _line(group, int(whole[bucket[merged]].max()))
    last = np.append(bucket[1:] != bucket[:-1], True)
    takes = np.rint(line.alpha + line.slope * whole[bucket]).astype(np.int64)
    of_meeting = pd.Series(np.where(last, takes, 0)[merged], each["meeting"].to_numpy()[merged])
    rows = group[group["meeting"].isin(of_meeting.index)]
    own = rows["meeting"].map(of_meeting).to_numpy(np.int64)
    _refuse_if_awaited(model, rows.index.to_numpy(np.int64)[own == 0])
    fixed[rows.index] = own
    return rows.index.to_numpy(np.int64)[own > 0]


def _computed_before(ops: pd.DataFrame, collectives: Int64) -> Int64:
    """The work whose results each collective needs, and the collective: rows, int64[2, n].

    It is launched behind that on the host, and waits for it. Where collectives queue behind each other, their
    starts do not show this.
    """
    called = ops["called_ns"].to_numpy(np.int64)
    if (called[collectives] == NOT_CALLED).any():
        raise MissingDataError(
            "launches of collectives",
            "Record launches as well (ProfilerActivity.CPU).",
            "when the data of each is there is unknown without",
        )
    at = ops.assign(row=np.arange(len(ops))).sort_values("called_ns")
    computes = at[(at["kind"] == "compute") & (at["called_ns"] != NOT_CALLED)]
    wanted = at[at["row"].isin(collectives)]
    pairs = pd.merge_asof(wanted, computes, on="called_ns", by=["rank", "step"], suffixes=("", "_before"))
    pairs = pairs[pairs["end_ns_before"] <= pairs["start_ns"]]
    return pairs[["row_before", "row"]].to_numpy(np.int64).T


def _buckets(size: Int64, step: Int64, most_bytes: int) -> Int64:
    """The bucket of each collective, in order: as many as fit, in one step."""
    bucket = np.zeros(len(size), np.int64)
    held = int(size[0])
    for at in range(1, len(size)):
        held += int(size[at])
        new = step[at] != step[at - 1] or held > most_bytes
        held = int(size[at]) if new else held
        bucket[at] = bucket[at - 1] + new
    return bucket


def _line(group: pd.DataFrame, largest: int) -> Fit:
    """Latency and time per byte of a group."""
    times = group["taken"].groupby(group["bytes"].astype(np.int64)).median()
    known = int(times.index.max())
    if len(times) < LEAST_SIZES:
        raise MissingDataError(
            f"{LEAST_SIZES} sizes of {group['collective'].iloc[0]} in one group",
            "Record the job with another bucket size as well, to see how long larger ones take.",
            f"{counted(len(times), 'size')} of messages yield no latency",
        )
    if largest > _BEYOND * known:
        raise ValueError(
            f"a bucket of {byte_size(largest)} is more than {_BEYOND} times as large as all that was "
            f"recorded, {byte_size(known)}: how long it takes is unknown"
        )
    return fit(times.index.to_numpy(np.float64), times.to_numpy(np.float64))


def _refuse_if_awaited(model: JobModel, rows: Int64) -> None:
    """Raise if any but the next work of their streams waits for these operations."""
    early, lane = np.zeros(len(model.ops), np.bool_), model.ops["lane"].to_numpy(np.int64)
    early[rows] = True
    before, after = model.net.before, model.net.after
    awaited = early[before] & (lane[before] != lane[after])
    if awaited.any():
        waiting = model.ops["name"].iloc[int(after[awaited][0])]
        raise ValueError(
            f"{waiting} waits for a collective that would be merged with later ones: other work needs its "
            "result before the data of the bucket is there"
        )
