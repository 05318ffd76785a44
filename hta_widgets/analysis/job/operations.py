"""What the devices of all ranks did in the steps that every rank recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pandas as pd

from hta_widgets.analysis.communication.collectives import recorded
from hta_widgets.engine import checkpoint
from hta_widgets.errors import RECORD_DEVICE, MissingDataError
from hta_widgets.trace.classify import EventClass

if TYPE_CHECKING:
    from hta_widgets.trace.model import Trace
    from hta_widgets.trace.rank_trace import RankTrace

__all__ = ["NOT_CALLED", "operations"]

Int64 = npt.NDArray[np.int64]

NOT_CALLED = np.iinfo(np.int64).min
"""In place of the time of a launch that was not recorded."""

_COPIES = (EventClass.MEMORY_COPY, EventClass.MEMORY_SET)
_OF_COLLECTIVE = (
    "collective",
    "process_group",
    "group_ranks",
    "group_size",
    "sender",
    "receiver",
    "seq",
    "comms_id",
    "in_elements",
)


def operations(
    trace: Trace, ranks: tuple[int, ...] | None = None, iterations: tuple[int, ...] | None = None
) -> pd.DataFrame:
    """The device work of ranks in the steps that they have in common, of all or of those given.

    Returns:
        One row per kernel, copy and fill, by step, rank, lane, start. Columns: step (int64, from 0),
        iteration, rank, event_id, lane (int64, one per device and stream), nth (int64, position in its lane
        and step), name (str), kind (str: compute, copy, collective, send or recv), start_ns, end_ns, dur_ns
        (int64 ns, of the rank's clock), called_ns (int64 ns, when the launching call began; NOT_CALLED where
        unknown), ended_before_ns (int64 ns, when the earlier steps of the rank had ended on its device;
        NOT_CALLED in the first), shape (int64, code of launch grid and block, -1 where not recorded), and
        what `collectives` reads of communication: collective, process_group, group_ranks, group_size, sender,
        receiver, seq, comms_id, in_elements (NA for other work).

    Raises:
        MissingDataError: no device work, or no step that all ranks recorded whole.
    """
    chosen = [rank for rank in trace.ranks if ranks is None or rank in ranks]
    parts = []
    for rank in chosen:
        checkpoint()
        parts.append(_of_rank(trace.rank(rank)))
    with_work = [part for part in parts if len(part)]
    if not with_work:
        raise MissingDataError("device events", RECORD_DEVICE)
    common = set.intersection(*(set(part["iteration"]) for part in with_work))
    common &= common if iterations is None else set(iterations)
    if not common:
        raise MissingDataError(
            "step that all ranks recorded",
            "Record the same steps on every rank, with one schedule for torch.profiler.profile.",
        )
    frame = pd.concat(with_work, ignore_index=True)
    frame = frame[frame["iteration"].isin(common)]
    frame["step"] = pd.factorize(frame["iteration"], sort=True)[0].astype(np.int64)
    frame = frame.merge(_communication(trace), "left", on=["rank", "event_id"])
    kinds = frame["collective"].where(frame["collective"].isin(("send", "recv")), "collective")
    frame["kind"] = frame["kind"].where(frame["kind"] != "communication", kinds)
    frame = frame.sort_values(["step", "rank", "lane", "start_ns", "end_ns", "event_id"], ignore_index=True)
    frame["nth"] = frame.groupby(["step", "rank", "lane"]).cumcount().astype(np.int64)
    frame["shape"] = pd.factorize(frame["shape"])[0].astype(np.int64)
    return frame


def _of_rank(rank_trace: RankTrace) -> pd.DataFrame:
    frame = rank_trace.iterations
    whole = frame["iteration"].to_numpy(np.int64)[~frame["partial"].to_numpy(np.bool_)]
    rows = np.flatnonzero(rank_trace.is_device & np.isin(rank_trace.iteration, whole))
    event_class = rank_trace.event_class[rows]
    copies = np.isin(event_class, _COPIES)
    kind = np.where(
        event_class == EventClass.COMMUNICATION, "communication", np.where(copies, "copy", "compute")
    )
    launch = rank_trace.launch[rows]
    called = np.where(launch >= 0, rank_trace.start[np.maximum(launch, 0)], NOT_CALLED)
    device, devices = pd.factorize(rank_trace.device[rows])
    iteration = rank_trace.iteration[rows].astype(np.int64)
    return pd.DataFrame(
        {
            "iteration": iteration,
            "rank": np.full(len(rows), rank_trace.rank, np.int64),
            "event_id": rank_trace.event_id[rows].astype(np.int64),
            "lane": rank_trace.stream[rows] * max(len(devices), 1) + device,
            "name": pd.Series(np.array(rank_trace.names, object)[rank_trace.name[rows]], dtype="str"),
            "kind": kind,
            "start_ns": rank_trace.start[rows],
            "end_ns": rank_trace.end[rows],
            "dur_ns": rank_trace.dur[rows],
            "called_ns": called,
            "shape": _shapes(rank_trace, rows),
            "ended_before_ns": _ended_before(iteration, rank_trace.end[rows], rank_trace),
        }
    )


def _ended_before(iteration: Int64, end: Int64, rank_trace: RankTrace) -> Int64:
    """When the device had ended the earlier iterations.

    Before the first it has nothing to do when the host begins, unless there is work of earlier launches.
    """
    numbers, at = np.unique(iteration, return_inverse=True)
    if not len(numbers):
        return end
    ends = np.full(len(numbers) + 1, NOT_CALLED, np.int64)
    np.maximum.at(ends, at + 1, end)
    if not len(rank_trace.earlier_work):
        frame = rank_trace.iterations
        first = int(np.flatnonzero(frame["iteration"].to_numpy(np.int64) == numbers[0])[0])
        ends[0] = frame["host_start_ns"].to_numpy(np.int64)[first]
    ended: Int64 = np.append(ends[:1], np.maximum.accumulate(ends[1:]))[at]
    return ended


def _shapes(rank_trace: RankTrace, rows: Int64) -> pd.Series:
    """Launch grid and block as text; NA where the file has none."""
    texts = [
        pd.Series(np.array([*rank_trace.table.dictionary(column), None], object)[codes], dtype="str")
        for column in ("grid", "block")
        for codes in (rank_trace.argument_codes(column)[rows],)
    ]
    return texts[0] + texts[1]


def _communication(trace: Trace) -> pd.DataFrame:
    return recorded(trace)[["rank", "event_id", *_OF_COLLECTIVE]]
