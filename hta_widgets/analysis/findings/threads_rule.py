"""The rule about a main thread that does nothing while other threads run operators."""

from __future__ import annotations

import numpy as np

from hta_widgets.analysis.calls.nesting import nest
from hta_widgets.analysis.core.claim import Claim
from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.findings.call_time import longest_names, own_time, spans_of
from hta_widgets.analysis.findings.finding import Finding
from hta_widgets.analysis.findings.host_loss import host_rule, lost_in_part
from hta_widgets.analysis.findings.host_time import hosts_of
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.rank_trace import RankTrace


def other_threads(inputs: Inputs) -> Finding | None:
    """Time in which the thread of the steps is in no operator, and others are."""
    hosts = hosts_of(inputs)
    found = lost_in_part(hosts, "elsewhere")
    if found is None:
        return None
    worst, host = found.worst, hosts[found.worst]
    names = _longest(inputs.trace.rank(worst), host.thread, host.spent["elsewhere"])
    name = next(iter(names), "")
    return found.finding(
        found.text(
            inputs,
            "{who} is in no operator {lost} while other threads are. They are longest in {name}.",
            name=Claim("longest_elsewhere", name, "name", ranks=(worst,)),
        ),
        "If it waits for these threads, look at what they run, and how much of it they can do at once: on "
        "few cores they take turns.",
        "operators",
        found.evidence(name),
        lost=inputs.when(found.ranks, lambda rank: hosts[rank].spent["elsewhere"]),
        explains=found.alone,
    )


def _longest(rank_trace: RankTrace, thread: int, time: Intervals) -> dict[str, int]:
    """The names of operators of other threads with most of a time, inner ones aside, the longest first."""
    rows = np.flatnonzero((rank_trace.event_class == EventClass.HOST_OP) & (rank_trace.thread != thread))
    spans = spans_of(rank_trace, rows)
    threads = rank_trace.thread[rows].astype(np.int64)
    around = nest(spans[:, 0], spans[:, 1], threads, np.zeros(len(rows), np.int8)).astype(np.int64)
    return longest_names(rank_trace, rows, own_time(time, spans, around))


RULE = host_rule(
    topic="host_elsewhere",
    title="Time in operators of other threads",
    label="Other threads",
    cause="operators of other threads",
    judge=other_threads,
    wrong_if="The main thread does something then that is not recorded.",
)
