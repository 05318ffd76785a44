"""A rule about communication that starts late: what it waits for has ended, and its stream is free."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from hta_widgets.analysis.core.claim import Claim, say
from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.device_time.busy import busy
from hta_widgets.analysis.findings.finding import Evidence, Finding, severity_of
from hta_widgets.analysis.findings.in_passes import only_forward
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.rule import Change, Rule
from hta_widgets.analysis.replay import edits, kinds
from hta_widgets.analysis.replay.graph import Graph, graph_of
from hta_widgets.arrays import Bool, Int64
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.ordering import among
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.scope import Scope

LATE_NS: Final = 20_000
"""A delay of up to this long, or of the latency of a launch, is usual."""

_PRODUCERS = (kinds.COLLECTIVE, kinds.WAIT, kinds.LATE)
_MOST = 0.5


class _Late(NamedTuple):
    """Communication of a rank that starts late: rows, when it could have started, and whether its launch
    was late."""

    rows: Int64
    due: Int64
    unlaunched: Bool


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
    share = 100.0 * cost / inputs.judged_ns[rank]
    rank_trace = inputs.trace.rank(rank)
    waits = rank_trace.start[late.rows] - late.due
    by_host = float(waits[late.unlaunched].sum()) >= _MOST * float(waits.sum())
    longest = int(late.rows[int(waits.argmax())])
    if by_host:
        why = "since the host launches it late"
        advice = f"Launch it as soon as its data is computed: {_ways(inputs)}no host work between the two."
    else:
        why = "although it is launched by then, as if other kernels held the device"
        advice = (
            "Give communication a stream of high priority, so that what is launched later does not go first."
        )
    several, ranks, name = len(inputs.temporal) > 1, (rank,), rank_trace.names[rank_trace.name[longest]]
    of_rank = say(" of {rank}", rank=Claim("latest_communication", ranks, "ranks")) if several else ""
    return Finding(
        cost,
        share,
        say(
            "Communication{of_rank} starts late beside compute for {lost}, {why}. {count} sends and "
            "collectives start late, up to {longest} after their data is ready and their stream is free.",
            of_rank=of_rank,
            lost=inputs.time_lost("late_communication", share, cost, ranks),
            why=why,
            count=Claim("late_communications", len(late.rows), "count", ranks=ranks),
            longest=Claim("longest_delay", int(waits.max()), "ns", ranks=ranks),
        ),
        advice,
        "comm_comp_overlap",
        Evidence(
            rank=rank if several else None,
            name=name,
            event_rank=rank,
            event_id=int(rank_trace.event_id[longest]),
            span=(int(late.due[waits.argmax()]), int(rank_trace.start[longest])),
        ),
        change=Change("with communication as early as its data", lambda _: [edits.prompt_communication()]),
        lost={rank: delayed},
        only_if_saved=not severity_of(share),
        severity=severity_of(share) or "note",
    )


def _ways(inputs: Inputs) -> str:
    """How gradients and parameters are sent earlier, by what wraps the model."""
    if only_forward(inputs):
        return ""
    ways = ["a smaller first gradient bucket, "] if inputs.has_ddp else []
    return "".join([*ways, "prefetching of parameters, "] if inputs.has_fsdp else ways)


def _delayed(inputs: Inputs, rank: int) -> tuple[Intervals, _Late]:
    """When communication of the judged time is late while compute runs; and which is."""
    rank_trace = inputs.trace.rank(rank)
    graph = graph_of(rank_trace)
    assert graph is not None  # it communicates
    late = _late(rank_trace, graph, inputs.scope)
    delayed = Intervals.union(late.due, rank_trace.start[late.rows])
    delayed &= busy(rank_trace, inputs.scope).compute
    return delayed & inputs.judged_time(rank), late


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
    label="Late collectives",
    cause="collectives that start late",
    lost_as="communication",
    judge=late_collective,
    applies=lambda inputs: bool(inputs.temporal["communication_ns"].any()),
    risk="What starts earlier holds its memory for longer.",
    needs="Data that is ready before the launch.",
    wrong_if="it waits for work that was not recorded.",
)
