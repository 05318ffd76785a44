"""The model of a job: its operations and waits for the host, their order, and what they take ideally."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pandas as pd

from hta_widgets.analysis.job.host import UsualDelays, host_delays
from hta_widgets.analysis.job.ideal import COMMUNICATION, ideal_times
from hta_widgets.analysis.job.meetings import joined_up, matched, paired, transfers
from hta_widgets.analysis.job.network import Network, network
from hta_widgets.analysis.job.order import Occurrences
from hta_widgets.analysis.job.roles import Places, places
from hta_widgets.analysis.job.unnamed import unnamed_meetings
from hta_widgets.analysis.job.unrecorded import as_peers_wait, incomplete, work_of_all
from hta_widgets.analysis.parallelism.coordinates import Coordinates
from hta_widgets.arrays import Bool, Float64, Int64
from hta_widgets.engine import checkpoint
from hta_widgets.trace.ordering import distinct

HOST = "host"
"""Kind and name of the time that a device waits for its host."""

# ns: an end may lie this far behind the start that waited for it, since clocks and the profiler are not
# exact.
_TOLERANCES = (1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20)
# Orders that leave at most this much more of the recording unexplained than the best are as good.
_AS_GOOD = 1.25
_PERMILLE = 0.001


class Order(NamedTuple):
    """Another order that explains as much."""

    net: Network  # what waits for what
    # int64 ns, of the operations and then of the waits for the host
    taken: Int64
    ideal: Int64
    late: Int64  # the operation that each wait for the host precedes


@dataclass(frozen=True, eq=False)
class JobModel:
    """All operations of a job, in an order that explains the recording."""

    ops: pd.DataFrame  # `operations`, with one row more for each wait for the host (kind and name `HOST`)
    meeting: Int64  # int64[n], number of the meeting of each operation, or -1
    incomplete: Bool  # bool[n], communication with ranks that were not recorded: it may hold waiting for them
    # int64[n] ns, what each takes by itself, and if no rank were slow
    taken: Int64
    ideal: Int64
    net: Network  # what waits for what
    others: tuple[Order, ...]  # orders of other tolerances that explain as much
    places: Places  # where each rank stands in the job
    unnamed: list[str]  # kernels in which ranks meet though nothing says so
    doubt: float  # of the pairs of sends and receives (`meetings.paired`)
    # bool[n], sends and receives whose partner was not recorded, nor any rank that does the same with one
    # that was
    open_ended: Bool
    missing: int  # how many ranks of the job were not recorded

    @cached_property
    def total(self) -> float:
        """How long a step takes in the replay, ns: the mean."""
        return self.time(self.taken)

    @cached_property
    def least(self) -> float:
        """How long a step would take if no rank were slow, ns."""
        return self.time(self.ideal)

    def time(self, taken: Int64) -> float:
        """How long a step takes if the operations take this, ns."""
        return float(self.net.step_times(taken).mean())

    def won(self, rows: Bool) -> float:
        """What a step gains if these operations take their ideal time, ns."""
        return self.total - self.time(np.where(rows, self.ideal, self.taken))

    @cached_property
    def measured(self) -> float:
        """How long a step took, ns: the longest of its ranks, each by its own clock."""
        return _measured(self.ops)

    @cached_property
    def between(self) -> tuple[float, float]:
        """The least and the largest slowdown of the orders that explain the recording as well.

        And of what ranks may do that were not recorded: communication with them is as usual, or all of it is
        waiting for them; and they compute as little as any other rank, or as much, or for as long as they are
        waited for. Where nobody tells how long a neighbour in a pipeline ideally waits for one of them, it
        may be as long as it did.
        """
        found = [self.total / self.least]
        found += [
            float(other.net.step_times(other.taken).mean() / other.net.step_times(other.ideal).mean())
            for other in self.others
        ]
        if self.incomplete.any() or self.missing:
            found += [self.total / self.time(ideal) for ideal in self._other_ideals()]
        return max(min(found), min(found[0], 1.0)), max(found)

    def _other_ideals(self) -> Iterator[Int64]:
        """What the ideal times may be, for all that is known of ranks that were not recorded."""
        works = ~self.ops["kind"].isin((*COMMUNICATION, HOST)).to_numpy()
        pairs = self.ops["kind"].isin(("send", "recv")).to_numpy()
        of_devices = (self.ops["kind"] != HOST).to_numpy()
        patient = self.ideal.copy()
        patient[of_devices] = ideal_times(self.ops[of_devices], self.taken[of_devices], self.places.alike)
        waits = (
            self.ideal,
            np.where(self.incomplete, patient, self.ideal),
            np.where(self.incomplete & ~pairs, 0, self.ideal),
            np.where(self.open_ended, self.taken, self.ideal),
        )
        factors = [np.ones(len(works))]
        if self.missing:
            factors += work_of_all(self.ops, self.taken, works, self.missing, self.in_doubt)
        for ideal in waits:
            for factor in factors:
                yield np.rint(ideal * factor).astype(np.int64)

    @cached_property
    def in_doubt(self) -> float:
        """What a step would gain if communication with ranks that were not recorded took no time, ns."""
        return self.total - self.time(np.where(self.incomplete, 0, self.taken))

    @cached_property
    def model_error(self) -> dict[int, float]:
        """By how much the replay of each rank's steps is longer than they were: a share."""
        ends = self.net.ends(self.taken)
        ranks, replayed = _spans(self.ops, ends - self.taken, ends)
        error = np.nanmean(replayed, axis=1) / np.nanmean(_recorded(self.ops)[1], axis=1) - 1
        return dict(zip(ranks, error.tolist(), strict=True))


def job_model(ops: pd.DataFrame, job_size: int, known: Coordinates | None = None) -> JobModel:
    """Find out who meets whom and what waits for what.

    The tolerance is the recording's. Ranks contradict each other on the order least, and then the replay is
    as long as the recording (within a quarter of what the best leaves unexplained, or a permille); of those
    the smallest.

    Args:
        job_size: how many ranks the job has.
        known: where the ranks stand, if their process groups tell it.
    """
    collective = matched(ops)
    pairs, doubt = paired(ops)
    where = places(ops, collective, pairs, known)
    meeting, unnamed = unnamed_meetings(ops, joined_up(collective, pairs))
    hidden = (ops["kind"] == "compute") & (meeting >= 0)
    ops = ops.assign(
        kind=ops["kind"].where(~hidden, "collective"),
        collective=ops["collective"].where(~hidden, ops["name"]),
    )
    own = transfers(ops, meeting)
    partial = incomplete(ops, meeting)
    best = ideal_times(ops, own, where.alike, ~partial)
    measured = _measured(ops)
    occurrences, usual = Occurrences(ops, where.alike), UsualDelays(ops)
    fits = []
    for tolerance in _TOLERANCES:
        checkpoint()
        before, after = occurrences.dependencies(tolerance)
        found = with_host(ops, before, after, meeting, own, best, usual)
        unexplained = abs(1 - float(found.net.step_times(found.taken).mean()) / measured)
        fits.append((found.net.forced + found.net.unreached, unexplained, found))
    contradictions, least, _ = min(fits, key=lambda fit: fit[:2])
    chosen, *others = [
        found
        for count, unexplained, found in fits
        if count == contradictions and unexplained <= max(_AS_GOOD * least, least + _PERMILLE)
    ]
    chosen, *others = (
        order._replace(ideal=as_peers_wait(ops, where.alike, partial, order.net, order.ideal)[0])
        for order in (chosen, *others)
    )
    _, alone = as_peers_wait(ops, where.alike, partial, chosen.net, chosen.ideal)
    hosts = np.zeros(len(chosen.late), np.bool_)
    return JobModel(
        ops=_with_waits(ops, chosen),
        meeting=np.append(meeting, np.full(len(hosts), -1)),
        incomplete=np.append(partial, hosts),
        taken=chosen.taken,
        ideal=chosen.ideal,
        net=chosen.net,
        others=tuple(others),
        places=where,
        unnamed=unnamed,
        doubt=doubt,
        open_ended=np.append(alone, hosts),
        missing=max(job_size - ops["rank"].nunique(), 0),
    )


def _with_waits(ops: pd.DataFrame, order: Order) -> pd.DataFrame:
    """The operations, with one row more for each wait for the host."""
    if not len(order.late):
        return ops
    ends, waited = ops["start_ns"].to_numpy(np.int64)[order.late], order.taken[len(ops) :]
    waits = ops.iloc[order.late].assign(
        kind=HOST, name=HOST, start_ns=ends - waited, end_ns=ends, dur_ns=waited
    )
    return pd.concat([ops, waits], ignore_index=True)


def with_host(
    ops: pd.DataFrame,
    before: Int64,
    after: Int64,
    meeting: Int64,
    own: Int64,
    best: Int64,
    usual_delays: UsualDelays,
) -> Order:
    """The order, with waits for the host as operations of their own."""
    delay = host_delays(ops, before, after)
    usual = usual_delays.of(delay)
    late = np.flatnonzero((delay > 0) | (usual > 0))
    start, step = (ops[column].to_numpy(np.int64) for column in ("start_ns", "step"))
    entry = np.arange(len(ops))
    entry[late] = len(ops) + np.arange(len(late))
    net = network(
        np.concatenate([before, entry[late]]),
        np.concatenate([entry[after], late]),
        np.append(meeting, np.full(len(late), -1)),
        np.append(start, start[late] - delay[late]),
        np.append(step, step[late]),
    )
    return Order(net, np.append(own, delay[late]), np.append(best, usual[late]), late)


def _recorded(ops: pd.DataFrame) -> tuple[list[int], Float64]:
    return _spans(ops, *(ops[column].to_numpy(np.int64) for column in ("start_ns", "end_ns")))


def _spans(ops: pd.DataFrame, begin: Int64, end: Int64) -> tuple[list[int], Float64]:
    """The ranks, and how long each step takes on each, float64[ranks, steps] ns; NaN where nothing runs."""
    ranks, of = distinct(ops["rank"].to_numpy(np.int64))
    step = ops["step"].to_numpy(np.int64)
    shape = len(ranks), int(step.max(initial=-1)) + 1
    first, last = np.full(shape, np.iinfo(np.int64).max), np.full(shape, np.iinfo(np.int64).min)
    np.minimum.at(first, (of, step), begin)
    np.maximum.at(last, (of, step), end)
    return ranks.tolist(), np.where(first <= last, last - first, np.nan)


def _measured(ops: pd.DataFrame) -> float:
    return float(np.nanmax(_recorded(ops)[1], axis=0).mean())
