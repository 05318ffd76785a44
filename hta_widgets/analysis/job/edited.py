"""How long a step of a job takes after changes within its ranks, with some ranks repaired or as recorded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from hta_widgets.analysis.job.host import UsualDelays
from hta_widgets.analysis.job.ideal import COMMUNICATION
from hta_widgets.analysis.job.model import HOST, JobModel, Order, with_host
from hta_widgets.analysis.job.operations import NOT_CALLED
from hta_widgets.analysis.replay.edit import Edit
from hta_widgets.analysis.replay.quality import trusted_ranks
from hta_widgets.analysis.replay.replayed_events import replayed_places
from hta_widgets.arrays import Float64, Int64
from hta_widgets.engine import checkpoint
from hta_widgets.trace.model import Trace
from hta_widgets.trace.reader.schema import NULL


@dataclass(frozen=True)
class EditedJob:
    """A job whose ranks were each replayed with the same edits, put together again."""

    model: JobModel  # the job as it was recorded
    order: Order  # its operations and waits for the host after the edits

    def time(self, repaired: Sequence[int] | None, transfers: bool = False) -> float:
        """How long a step takes if these ranks do everything in its ideal time, ns: the mean.

        Args:
            repaired: these ranks; None: all of them.
            transfers: only communication takes its ideal time.
        """
        rank, kind = (self.model.ops[name].to_numpy() for name in ("rank", "kind"))
        count = len(rank) - int((kind == HOST).sum())
        rank = np.append(rank[:count], rank[self.order.late])
        ideal = np.ones(len(rank), np.bool_) if repaired is None else np.isin(rank, list(repaired))
        if transfers:
            ideal = np.append(np.isin(kind[:count], COMMUNICATION), np.zeros(len(rank) - count, np.bool_))
        taken = np.where(ideal, self.order.ideal, self.order.taken)
        return float(self.order.net.step_times(taken).mean())


def edited_job(trace: Trace, model: JobModel, edits: tuple[Edit, ...]) -> EditedJob:
    """The job after edits of every rank: each is replayed alone, then they meet again.

    What an operation takes by itself changes as its duration does in the replay of its rank; what a device
    waits for its host is read anew from the replayed times.

    Raises:
        MissingDataError: the replay of no rank can be trusted.
    """
    hosts = (model.ops["kind"] == HOST).to_numpy()
    count = len(hosts) - int(hosts.sum())
    ops = model.ops.iloc[:count]
    before, after = _between_operations(model, count)
    own, ideal = model.taken[:count], model.ideal[:count]
    if edits:
        ops, factor = _after(trace, ops, edits)
        own, ideal = (np.rint(time * factor).astype(np.int64) for time in (own, ideal))
    order = with_host(ops, before, after, model.meeting[:count], own, ideal, UsualDelays(ops))
    return EditedJob(model, order)


def _between_operations(model: JobModel, count: int) -> tuple[Int64, Int64]:
    """What waits for what, without waits for the host in between."""
    net = model.net
    precedes = np.arange(len(model.ops))
    of_host = net.before >= count
    precedes[net.before[of_host]] = net.after[of_host]
    before, after = net.before[~of_host], precedes[net.after[~of_host]]
    return before, after


def _after(trace: Trace, ops: pd.DataFrame, edits: tuple[Edit, ...]) -> tuple[pd.DataFrame, Float64]:
    """The operations at their replayed times, and the factor by which each became longer or shorter."""
    times = {name: ops[name].to_numpy(np.int64, copy=True) for name in ("start_ns", "end_ns", "called_ns")}
    ended = ops["ended_before_ns"].to_numpy(np.int64, copy=True)
    rank, step = (ops[name].to_numpy(np.int64) for name in ("rank", "step"))
    for number in trusted_ranks(trace, sorted(set(rank.tolist()))):
        checkpoint()
        rank_trace = trace.rank(number)
        found = replayed_places(rank_trace, edits)
        own = np.flatnonzero(rank == number)
        order = np.argsort(rank_trace.event_id)
        rows = order[np.searchsorted(rank_trace.event_id, ops["event_id"].to_numpy()[own], sorter=order)]
        launch = rank_trace.launch[rows]
        times["start_ns"][own], times["end_ns"][own] = found.start[rows], found.end[rows]
        called = np.where(launch != NULL, found.start[np.maximum(launch, 0)], NOT_CALLED)
        times["called_ns"][own] = called
        ended[own] = _ended_before(ended[own], step[own], times["end_ns"][own])
    dur = times["end_ns"] - times["start_ns"]
    factor = dur / np.maximum(ops["dur_ns"].to_numpy(np.int64), 1)
    return ops.assign(**times, dur_ns=dur, ended_before_ns=ended), factor


def _ended_before(recorded: Int64, step: Int64, end: Int64) -> Int64:
    """When the earlier steps of a rank have ended now; nothing is known of what preceded the first."""
    numbers, place = np.unique(step, return_inverse=True)
    ends = np.full(len(numbers), NOT_CALLED)
    np.maximum.at(ends, place, end)
    found: Int64 = np.append(NOT_CALLED, np.maximum.accumulate(ends)[:-1])[place]
    return np.where((place == 0) & (recorded != NOT_CALLED), recorded, found)
