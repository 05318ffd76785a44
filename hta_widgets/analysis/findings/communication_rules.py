"""A rule about communication that starts late: what it waits for has ended, and its stream is free."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.device_time.busy import busy
from hta_widgets.analysis.findings.finding import Evidence, Finding, severity_of
from hta_widgets.analysis.findings.in_passes import only_forward
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.rule import Change, Rule
from hta_widgets.analysis.replay import edits, kinds
from hta_widgets.analysis.replay.graph import Graph, graph_of
from hta_widgets.formatting import duration, percent
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.ordering import among

if TYPE_CHECKING:
    from hta_widgets.trace.rank_trace import RankTrace
    from hta_widgets.trace.scope import Scope

__all__ = ["RULE", "late_collective"]

Int64 = npt.NDArray[np.int64]

LATE_NS: Final = 20_000
"""A delay of up to this long, or of the latency of a launch, is usual."""

_PRODUCERS = (kinds.COLLECTIVE, kinds.WAIT, kinds.LATE)
_MOST = 0.5


class _Late(NamedTuple):
    """Communication of a rank that starts late: rows, when it could have started, and whether its launch
    was late."""

    rows: Int64
    due: Int64
    unlaunched: npt.NDArray[np.bool_]


def late_collective(inputs: Inputs) -> Finding | None:
    """Communication that could run beside compute, but starts later than what it waits for has ended.

    While the device is idle, the host is late for all work alike: that is another finding. The delay counts
    where compute runs.
    """
    frame = inputs.temporal[inputs.temporal["communication_ns"] > 0]
    costs = {rank: inputs.of(rank, _delayed) for rank in frame["rank"].tolist()}
    if not any(delayed.length for delayed, _ in costs.values()):
        return None
    rank = max(sorted(costs), key=lambda rank: costs[rank][0].length)
    delayed, late = costs[rank]
    cost = delayed.length
    share = 100.0 * cost / int(frame.set_index("rank")["window_ns"][rank])
    rank_trace = inputs.trace.rank(rank)
    waits = rank_trace.start[late.rows] - late.due
    by_host = float(waits[late.unlaunched].sum()) >= _MOST * float(waits.sum())
    longest = int(late.rows[int(waits.argmax())])
    if by_host:
        why = "since the host launches it late"
        ways = "" if only_forward(inputs) else "a smaller first gradient bucket, prefetching of parameters, "
        advice = f"Launch it as soon as its data is computed: {ways}no host work between the two."
    else:
        why = "although it is launched by then, as if other kernels held the device"
        advice = (
            "Give communication a stream of high priority, so that what is launched later does not go first."
        )
    who = f" of rank {rank}" if len(inputs.temporal) > 1 else ""
    return Finding(
        cost,
        share,
        f"{len(late.rows):,} of the sends and collectives{who} start late, {why}: up to "
        f"{duration(int(waits.max()))} after what they wait for has ended and their stream is free; "
        f"beside compute this is {percent(share)} of the time{inputs.per_step(cost)}.",
        advice,
        "comm_comp_overlap",
        Evidence(
            rank=rank if who else None,
            name=rank_trace.names[rank_trace.name[longest]],
            event_rank=rank,
            event_id=int(rank_trace.event_id[longest]),
        ),
        change=Change("with communication as early as its data", lambda _: [edits.prompt_communication()]),
        only_if_saved=not severity_of(share),
        severity=severity_of(share) or "note",
    )


def _delayed(inputs: Inputs, rank: int) -> tuple[Intervals, _Late]:
    """When communication of the judged time is late while compute runs; and which is."""
    rank_trace = inputs.trace.rank(rank)
    graph = graph_of(rank_trace)
    assert graph is not None  # it communicates
    late = _late(rank_trace, graph, inputs.scope)
    windows = rank_trace.windows(inputs.scope)
    delayed = Intervals.union(late.due, rank_trace.start[late.rows])
    delayed &= busy(rank_trace, inputs.scope).compute
    return delayed & Intervals.union(windows[:, 0], windows[:, 1]), late


def _late(rank_trace: RankTrace, graph: Graph, scope: Scope) -> _Late:
    """The late communication of a scope, by the dependencies of the rank."""
    starts = np.flatnonzero(graph.node_kind == kinds.EVENT_STARTS)
    starts = starts[rank_trace.event_class[graph.row[starts]] == EventClass.COMMUNICATION]
    starts = starts[rank_trace.overlap(graph.row[starts], scope)]
    # only the edges into these, and for each which of them it leads to
    first, count = graph.first[starts], graph.first[starts + 1] - graph.first[starts]
    into = np.repeat(np.arange(len(starts)), count)
    edges = np.arange(len(into)) + np.repeat(first - np.cumsum(count) + count, count)
    kind, arrives = graph.kind[edges], graph.time[graph.source[edges]] + graph.weight[edges]
    due, launched = np.full((2, len(starts)), -1, np.int64)
    for latest, chosen in ((due, (*_PRODUCERS, kinds.STREAM)), (launched, (kinds.LAUNCH,))):
        these = among(kind, chosen)
        np.maximum.at(latest, into[these], arrives[these])
    known = np.zeros(len(starts), np.bool_)
    known[into[among(kind, _PRODUCERS)]] = True
    delay = graph.time[starts] - due
    late = known & (launched >= 0) & (delay > max(graph.latency, LATE_NS))
    rows, due, delay = graph.row[starts[late]].astype(np.int64), due[late], delay[late]
    return _Late(rows, graph.origin_ns + due, launched[late] > due + delay * _MOST)


RULE = Rule(
    topic="late_collective",
    question="what communication costs",
    title="Communication that starts late",
    judge=late_collective,
    applies=lambda inputs: bool(inputs.temporal["communication_ns"].any()),
    risk="What starts earlier holds its memory for longer.",
    needs="Data that is ready before the launch.",
)
