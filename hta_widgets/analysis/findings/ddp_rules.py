"""DDP broadcasts the buffers of its modules before every forward pass."""

from __future__ import annotations

from typing import Final

import numpy as np

from hta_widgets.analysis.core.claim import Claim, say
from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.core.longest import longest_name
from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.findings.callers import begins_in
from hta_widgets.analysis.findings.evidence import evidence_of_loss
from hta_widgets.analysis.findings.finding import NOTE_PCT, Finding
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.rule import Change, Rule
from hta_widgets.analysis.findings.shorter import shorter
from hta_widgets.analysis.idle.causes import rows_named
from hta_widgets.analysis.replay import edits
from hta_widgets.arrays import Int64
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.rank_trace import RankTrace

_FORWARD: Final = "DistributedDataParallel.forward"
_BROADCAST: Final = "c10d::broadcast_"

_CHANGE: Final = Change(
    "without these broadcasts",
    lambda _: [edits.without(_BROADCAST), edits.communication(0, within=_BROADCAST)],
)


def buffers_broadcast(inputs: Inputs) -> Finding | None:
    """Broadcasts inside DDP's forward pass, in every step: those of the modules' buffers."""
    if not inputs.judged:  # every is a matter of steps
        return None
    found = shorter(inputs, _gone)
    if found is None or found.lost_pct < NOTE_PCT:
        return None
    rank_trace = inputs.trace.rank(found.worst)
    if not set(inputs.scope.iterations or ()) <= set(rank_trace.iteration[found.rows].tolist()):
        return None
    name = longest_name(rank_trace, found.rows)
    runs = Intervals.union(rank_trace.start[found.rows], rank_trace.end[found.rows])
    lost, alone = {found.worst: runs & inputs.judged_time(found.worst)}, found.worst if found.alone else None
    return Finding(
        found.cost_ns,
        found.lost_pct,
        say(
            "DDP broadcasts the buffers of its modules before the forward pass, in {steps} of {judged} "
            "step{s}. That takes {lost}, waiting for the rank that sends included.",
            steps=Claim("steps_with_broadcasts", inputs.judged, "count", ranks=(found.worst,)),
            judged=Claim("step_count", inputs.judged, "count"),
            s="s" * (inputs.judged > 1),
            lost=inputs.time_lost("broadcasting_buffers", found.lost_pct, found.cost_ns, found.ranks),
        ),
        "DistributedDataParallel(broadcast_buffers=False), if buffers may differ between ranks: running "
        "statistics of batch norms are then those of each rank, and a checkpoint has those of one.",
        "collectives",
        evidence_of_loss(inputs, lost, (EventClass.COMMUNICATION,), alone, name),
        lost=lost,
        change=_CHANGE if _only_there(rank_trace) else None,
    )


def _gone(rank_trace: RankTrace) -> tuple[Int64, Int64]:
    """The broadcasts, of which nothing would be left."""
    rows = _broadcasts(rank_trace)
    return rows, np.zeros_like(rows)


@memoize_per_rank()
def _broadcasts(rank_trace: RankTrace) -> Int64:
    """The communication that broadcasts inside DDP's forward pass launch."""
    calls = _named(rank_trace, _BROADCAST, EventClass.HOST_OP)
    calls = calls[begins_in(rank_trace, calls, _named(rank_trace, _FORWARD, EventClass.ANNOTATION))]
    launched = rank_trace.launched
    work: Int64 = launched[rank_trace.event_class[launched] == EventClass.COMMUNICATION]
    return work[begins_in(rank_trace, rank_trace.issuer[work].astype(np.int64), calls)]


def _only_there(rank_trace: RankTrace) -> bool:
    """Whether no other broadcasts have the same name: an edit could not tell them apart."""
    calls = _named(rank_trace, _BROADCAST, EventClass.HOST_OP)
    return bool(begins_in(rank_trace, calls, _named(rank_trace, _FORWARD, EventClass.ANNOTATION)).all())


def _named(rank_trace: RankTrace, name: str, event_class: EventClass) -> Int64:
    rows = rows_named(rank_trace, name.__eq__)
    found: Int64 = rows[(rank_trace.event_class[rows] == event_class) & rank_trace.on_host[rows]]
    return found


RULE = Rule(
    topic="buffers_broadcast",
    question="what communication costs",
    title="Broadcasting DDP's buffers",
    label="Buffer broadcasts",
    cause="broadcasts of DDP's buffers",
    lost_as="communication",
    judge=buffers_broadcast,
    no_change="other broadcasts are recorded under the same name",
    risk="Statistics of batch normalisation differ between ranks until they are synchronised.",
    needs="DistributedDataParallel(broadcast_buffers=False).",
    wrong_if="the modules rely on equal buffers on all ranks.",
)
