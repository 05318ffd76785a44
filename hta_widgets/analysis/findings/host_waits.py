"""Whom the threads of hosts wait for in collectives, before the last rank joins."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from hta_widgets.analysis.communication.standing_out import standing_out
from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.findings.host_time import HostTime, hosts_of
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.parallelism.process_groups import listed_groups
from hta_widgets.arrays import Int64

_BETWEEN_TWO: Final = re.compile(r":(?:send|recv)")


@dataclass(frozen=True)
class HostWaits:
    """How long threads wait in collectives before the last rank joins."""

    time: dict[int, Intervals]  # rank -> when it waits for another one
    late: list[int]  # the ranks that most of it is for; none where ranks are late in turn
    for_late: dict[int, Intervals]  # rank -> when it waits for these
    caused_ns: dict[int, int]  # rank -> how long all ranks wait for it


@memoize_per_rank()
def waits_of(inputs: Inputs) -> HostWaits | None:
    """Whom the ranks wait for; None where the recordings cannot tell.

    Collectives correspond by their order, in one group of all ranks of one run. A rank waits in one until the
    last rank begins it, but no later than what is left takes the rank that is in it for the shortest time:
    clocks of hosts may be apart, and ranks may leave it apart.
    """
    hosts = hosts_of(inputs)
    if len(hosts) < 2 or inputs.trace.clock.method == "start" or not _is_one_group(inputs, list(hosts)):
        return None
    names = {host.collectives for host in hosts.values()}
    if len(names) != 1:  # other collectives, or some that are not recorded
        return None
    together = np.array([not _BETWEEN_TWO.search(name) for name in names.pop()], bool)
    if not together.any():
        return None
    ranks = list(hosts)
    spans = np.stack([host.spans[together] for host in hosts.values()])
    start, end = spans[:, :, 0], spans[:, :, 1]
    last, joined, shortest = start.argmax(axis=0), start.max(axis=0), (end - start).min(axis=0)
    until = np.maximum(np.minimum(joined, end - shortest), start)
    before = dict(zip(ranks, np.stack([start, until], 2), strict=True))
    late = standing_out(_by_step(inputs, hosts, before, last))
    of_late = np.isin(last, [ranks.index(rank) for rank in late])
    caused = np.zeros(len(ranks), np.int64)
    for rank in ranks:
        np.add.at(caused, last, hosts[rank].waits.within_each(before[rank]))
    return HostWaits(
        {rank: _during(hosts[rank].waits, before[rank]) for rank in ranks},
        late,
        {rank: _during(hosts[rank].waits, before[rank][of_late]) for rank in ranks},
        dict(zip(ranks, caused.tolist(), strict=True)),
    )


def _during(time: Intervals, spans: Int64) -> Intervals:
    """What of a time lies in any of these spans; in several at once it counts once."""
    return time & Intervals.union(spans[:, 0], spans[:, 1])


def _by_step(
    inputs: Inputs, hosts: dict[int, HostTime], before: dict[int, Int64], last: npt.NDArray[np.intp]
) -> pd.DataFrame:
    """What each rank waits, and causes others to wait, in each step: a table as that of `stragglers`."""
    ranks = list(hosts)
    steps = inputs.trace.iterations
    begins = np.sort(steps.loc[steps["rank"] == ranks[0], "start_ns"].to_numpy(np.int64))
    step = np.searchsorted(begins, before[ranks[0]][:, 0], "right")
    waited = np.stack([hosts[rank].waits.within_each(before[rank]) for rank in ranks])
    caused = np.where(last == np.arange(len(ranks))[:, None], waited.sum(axis=0), 0)
    found = pd.DataFrame(
        {
            "rank": np.repeat(ranks, len(step)),
            "iteration": np.tile(step, len(ranks)),
            "waited_ns": waited.ravel(),
            "blamed_ns": caused.ravel(),
        }
    )
    return found.groupby(["rank", "iteration"], as_index=False).sum()


def _is_one_group(inputs: Inputs, ranks: list[int]) -> bool:
    """Whether the recorded ranks are all of the job, and it has no groups of fewer."""
    size = inputs.trace.summary["world_size"]
    groups = {members for rank in ranks for _, _, members in listed_groups(inputs.trace, rank)}
    return size in (None, len(ranks)) and all(len(members) == len(ranks) for members in groups)
