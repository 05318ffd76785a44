"""When ranks wait for each other in communication that nothing hides, and when they transfer in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

from hta_widgets.analysis.communication.waits import arrived
from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.device_time.busy import busy
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.trace.ordering import grouped

_NEARLY_ALL = 0.9


def waiting_of(inputs: Inputs, ranks: Iterable[int]) -> dict[int, Intervals]:
    """When each of these ranks waits with nothing hiding it; {} where ranks are too many to be held."""
    waits, exposed = _waits(inputs), exposed_of(inputs, ranks)
    return {rank: time & waits[rank] for rank, time in exposed.items() if rank in waits}


def transferring_of(inputs: Inputs, ranks: Iterable[int]) -> dict[int, Intervals]:
    """When each of these ranks communicates without computing or waiting; {} likewise."""
    waits, exposed = _waits(inputs), exposed_of(inputs, ranks)
    return {rank: time - waits[rank] if rank in waits else time for rank, time in exposed.items()}


def exposed_of(inputs: Inputs, ranks: Iterable[int]) -> dict[int, Intervals]:
    """When each of these ranks communicates without computing, in the judged time; {} likewise."""
    return inputs.when(ranks, lambda rank: _exposed(inputs, rank))


def exposed_runs(inputs: Inputs, kernels: pd.DataFrame) -> dict[int, Intervals]:
    """When these kernels (rank, start_ns, end_ns) run without compute, in the judged time, by rank."""
    found = {}
    for key, rows in kernels.groupby("rank"):
        rank = int(str(key))
        runs = Intervals.union(*(rows[edge].to_numpy(np.int64) for edge in ("start_ns", "end_ns")))
        found[rank] = inputs.of(rank, _exposed) & runs
    return found


def late_rounds(inputs: Inputs) -> dict[int, Intervals]:
    """What comes before exchanges at which others wait for a rank, since its last exchange; {} likewise.

    Of the waits only the longest, which make up nearly all of the waiting.
    """
    each = arrived(inputs.trace, inputs.scope)
    last = each[each["is_last"]].sort_values("caused_wait_ns", ascending=False, kind="stable")
    before = last["caused_wait_ns"].cumsum() - last["caused_wait_ns"]
    chosen = last[before < _NEARLY_ALL * last["caused_wait_ns"].sum()]
    return inputs.when(sorted(chosen["rank"].unique()), lambda rank: _rounds(inputs, each, chosen, rank))


def idle_delays(inputs: Inputs, rounds: Mapping[int, Intervals]) -> bool:
    """Whether the devices idle in these rounds for no less than half of the time that others wait then."""
    each = arrived(inputs.trace, inputs.scope)
    waited = int(each.groupby("match")["waited_ns"].max().sum())
    idle = (time - busy(inputs.trace.rank(rank), inputs.scope).any for rank, time in rounds.items())
    return 2 * sum(time.length for time in idle) > waited


def _rounds(inputs: Inputs, each: pd.DataFrame, chosen: pd.DataFrame, rank: int) -> Intervals:
    own = each[each["rank"] == rank].sort_values("start_ns", kind="stable")
    start = own["start_ns"].to_numpy(np.int64)
    end = np.maximum.accumulate(start + own["dur_ns"].to_numpy(np.int64))
    late = np.sort(chosen.loc[chosen["rank"] == rank, "start_ns"].to_numpy(np.int64))
    at = start.searchsorted(late)
    judged = inputs.judged_time(rank)
    before = np.where(at > 0, end[at - 1], judged.start.min())
    return Intervals.union(np.minimum(before, late), late) & judged


def _exposed(inputs: Inputs, rank: int) -> Intervals:
    exposed = busy(inputs.trace.rank(rank), inputs.scope).exposed_communication
    return exposed & inputs.judged_time(rank)


def _waits(inputs: Inputs) -> dict[int, Intervals]:
    """From the start of each kernel until its transfer begins, by rank."""
    found = inputs.collectives
    found = found[found["transfer_ns"].notna()]
    names = ("rank", "start_ns", "dur_ns", "transfer_ns")
    rank, start, lasting, transfer = (found[name].to_numpy(np.int64) for name in names)
    order = grouped(rank)
    ranks, first = np.unique(rank[order], return_index=True)
    rows = np.split(order, first[1:])
    transferring = start + lasting - transfer
    return {
        number: Intervals.union(start[mine], transferring[mine])
        for number, mine in zip(ranks.tolist(), rows, strict=False)
    }
