"""The rule about a server's pipeline in which one stage works at a time, as there is no second batch."""

from __future__ import annotations

import re
from functools import reduce
from itertools import combinations
from typing import Final

from hta_widgets.analysis.core.claim import Claim, say
from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.device_time.busy import computing
from hta_widgets.analysis.findings.finding import Evidence, Finding, severity_of
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.loss import lost_on_ranks
from hta_widgets.analysis.findings.rule import Rule, several_ranks
from hta_widgets.analysis.findings.serving_advice import option
from hta_widgets.analysis.findings.serving_ranks import of_ranks

_PASSES_ON: Final = re.compile(r"SendRecv|send_recv|isend|irecv", re.IGNORECASE)
# Ranks of one stage compute at the same time, those of two stages hardly ever.
_TOGETHER: Final = 0.5
_FEWEST_STAGES: Final = 2
_APART: Final = 0.1


def one_batch_in_flight(inputs: Inputs) -> Finding | None:
    """Stages of a pipeline that work in turn, each while all others wait."""
    if inputs.trace.exceeds_memory or inputs.trace.clock.method == "start" or not inputs.any_name(_PASSES_ON):
        return None
    computes = {rank: time for rank, time in of_ranks(inputs, _computes).items() if time.length}
    stages = _stages(computes)
    pairs = combinations(stages, 2)
    if len(stages) < _FEWEST_STAGES or any(_overlap(*pair) > _APART for pair in pairs):
        return None
    anywhere = reduce(Intervals.__or__, stages)
    lost = {rank: (anywhere - own) & inputs.judged_time(rank) for rank, own in computes.items()}
    ranks, share, cost, most = lost_on_ranks(inputs, lost)
    if not severity_of(share):
        return None
    return Finding(
        cost,
        share,
        say(
            "One stage of the pipeline works at a time: each waits for the others {lost}. Only one batch is "
            "on its way through {stages} stages.",
            lost=inputs.time_lost("stages_in_turn", share, cost, ranks),
            stages=Claim("stages_of_server", len(stages), "count", ranks=tuple(ranks)),
        ),
        f"Keep as many batches on their way as there are stages{option(inputs, 'batches')}: send more "
        "requests at once. Where there are no more, tensor parallelism makes a token faster.",
        "serving_steps",
        Evidence(event_rank=most, span=lost[most].longest),
        lost=lost,
        # whatever else a stage waits for, more batches would hide it
        delays={rank: inputs.judged_time(rank) - own for rank, own in computes.items()},
        saves_at_most="with a batch for each stage, all work at the same time",
    )


def _overlap(one: Intervals, other: Intervals) -> float:
    return (one & other).length / min(one.length, other.length)


def _computes(inputs: Inputs, rank: int) -> Intervals:
    """When a rank computes in the judged time."""
    return computing(inputs.trace.rank(rank)) & inputs.judged_time(rank)


def _stages(computes: dict[int, Intervals]) -> list[Intervals]:
    """When each stage computes: ranks that do so at the same time are of one."""
    stages: list[Intervals] = []
    for _, own in sorted(computes.items()):
        same = (at for at, each in enumerate(stages) if (each & own).length >= _TOGETHER * own.length)
        if (at := next(same, -1)) >= 0:
            stages[at] |= own
        else:
            stages.append(own)
    return stages


RULE = Rule(
    topic="one_batch_in_flight",
    question="whether stages of a pipeline work at the same time",
    title="A pipeline with one batch in it",
    label="One batch in flight",
    cause="a pipeline with one batch in it",
    lost_as="idle",
    judge=one_batch_in_flight,
    applies=several_ranks,
    risk="Smaller batches read the weights more often per token.",
    wrong_if="Clocks of the ranks differ, so that they only seem to work in turn.",
)
