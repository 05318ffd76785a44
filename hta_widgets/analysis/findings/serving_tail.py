"""The rule about a batch whose requests end one by one, so that most steps decode the few longest ones."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from hta_widgets.analysis.core.claim import Claim, say
from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.findings.finding import Evidence, Finding, severity_of
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.loss import lost_on_ranks
from hta_widgets.analysis.findings.rule import Rule
from hta_widgets.analysis.findings.serving_ranks import DECODING, is_serving, of_ranks
from hta_widgets.analysis.serving.table import steps_of

_FEW: Final = 8
"""A step of less than one in so many of the requests that there were has few."""


class _Tail(NamedTuple):
    """The requests at first, and the steps that decode few of them: how many, and when."""

    first: int
    steps: int
    time: Intervals


def few_requests(inputs: Inputs) -> Finding | None:
    """Steps that decode the last requests of a batch whose others have ended."""
    found = {rank: tail for rank, tail in of_ranks(inputs, _tail).items() if tail}
    if not found:
        return None
    ranks, share, cost, most = lost_on_ranks(inputs, {rank: tail.time for rank, tail in found.items()})
    if not severity_of(share):
        return None
    tail, rank = found[most], (most,)
    return Finding(
        cost,
        share,
        say(
            "Steps that decode few requests take {lost}. There are {steps} of them, with less than an eighth "
            "of the {first} requests that there were: no others take the place of those that end.",
            lost=inputs.time_lost("few_requests", share, cost, ranks),
            steps=Claim("steps_of_few_requests", tail.steps, "count", ranks=rank),
            first=Claim("requests_at_first", tail.first, "count", ranks=rank),
        ),
        "A step of few requests takes about as long as one of many. Let others take the place of those that "
        "end, go on with what is done while the longest still run (partial or asynchronous rollouts), or "
        "limit the length of answers.",
        "serving_steps",
        Evidence(event_rank=most, span=tail.time.longest),
    )


def _tail(inputs: Inputs, rank: int) -> _Tail | None:
    """Where only requests that were there from the largest batch on are decoded."""
    steps = steps_of(inputs.trace.rank(rank))
    steps = steps[steps["start_ns"].notna() & steps["requests"].notna()]
    if len(steps) < _FEW:
        return None
    requests = steps["requests"].to_numpy(np.int64)
    begin = steps["start_ns"].to_numpy(np.int64)
    peak = int(requests.argmax())
    after = requests[peak:]
    joins = (np.diff(after) > 0).any() or not steps["phase"].iloc[peak + 1 :].isin(DECODING).all()
    few = np.flatnonzero(_FEW * after < after[0]) + peak
    if joins or not len(few):
        return None
    end = np.append(begin[1:], begin[-1] + int(steps["device_ns"].iloc[-1]))
    time = Intervals.union(begin[few], end[few]) & inputs.judged_time(rank)
    return _Tail(int(after[0]), len(few), time)


RULE = Rule(
    topic="few_requests",
    question="which part of the model takes the time of steps",
    title="Decoding the last requests of a batch",
    label="Few requests",
    cause="steps that decode the last few requests",
    lost_as="compute",
    judge=few_requests,
    applies=is_serving,
    no_change="what else there is to decode is not known",
    wrong_if="These are all requests that there are, and none waits for their end.",
)
