"""A rule about devices that slow down: the same kernels take longer from step to step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from hta_widgets.analysis.core.claim import Claim, say
from hta_widgets.analysis.findings.configurations import launched
from hta_widgets.analysis.findings.finding import Evidence, Finding
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.rule import Change, Rule
from hta_widgets.analysis.memory.growth import chance_of, slope_of
from hta_widgets.analysis.replay import edits
from hta_widgets.trace.scope import Scope

LEAST_STEPS: Final = 6
"""Of fewer steps, no order is rarer than one in a hundred."""

CERTAIN: Final = 0.01
_SAME: Final = 0.5
"""So much of the compute time must be of kernels that every step launches as often, and as large."""
_ALL_KINDS: Final = 0.75
"""A clock slows down nearly all kernels, data only those that read it."""


@dataclass(frozen=True)
class _Drift:
    """Compute kernels of a rank over its judged steps."""

    rank: int
    slope: float  # ns that a step's kernels take longer than those of the step before
    first: float  # ns of the first
    cost_ns: int  # beyond the first step, over all
    time: int  # ns of all of them
    steps: int  # how many
    name: str  # of the kernel with most time
    rising_pct: float  # how much of that time is of kernels that take longer and longer themselves


def clock_drift(inputs: Inputs) -> Finding | None:
    """Steps whose kernels, the same in each, take longer and longer: clocks fall, as devices heat up."""
    found = [drift for rank in inputs.temporal["rank"].tolist() if (drift := inputs.of(rank, _drift))]
    if not found:
        return None
    most = max(found, key=lambda drift: drift.cost_ns)
    share = 100.0 * most.cost_ns / inputs.judged_ns[most.rank]
    ranks, alone = (most.rank,), len(inputs.temporal) > 1
    start, end = inputs.trace.rank(most.rank).windows(inputs.scope)[-1].tolist()
    text = say(
        "Over {steps} steps the same kernels come to take {rise} longer{who} (Theil-Sen slope; p < 0.01 that "
        "it is chance). Beyond the first step, that costs {cost}. Kernels with {rising} of the time "
        "get slower themselves, as they do if clocks fall.",
        cost=inputs.time_lost("drift", share, most.cost_ns, ranks),
        who=say(" on {rank}", rank=Claim("drifting_rank", ranks, "ranks")) if alone else "",
        steps=Claim("judged_steps", most.steps, "count"),
        rise=Claim("rise", 100.0 * most.slope * (most.steps - 1) / most.first, "%", "first step", ranks),
        rising=Claim("rising_kernels", most.rising_pct, "%", "time of equal kernels", ranks),
    )
    watch = f" ({inputs.accelerator.monitor})" if inputs.accelerator.monitor else ""
    return Finding(
        most.cost_ns,
        share,
        text,
        f"Watch clocks, power and temperature{watch} over more steps; better cooling or a lower, locked "
        "clock keeps them even.",
        "kernel_durations",
        Evidence(rank=most.rank if alone else None, name=most.name, event_rank=most.rank, span=(start, end)),
        change=Change(
            "with kernels as fast as in the first step",
            lambda _: [edits.kernels(most.time / (most.time - most.cost_ns))],
        ),
    )


def _drift(inputs: Inputs, rank: int) -> _Drift | None:
    """The slowing of a rank's kernels, if there is one."""
    steps = inputs.scope.iterations or ()
    if not inputs.judged or len(steps) < LEAST_STEPS:
        return None
    ran = launched(inputs.trace.rank(rank), Scope())
    chosen = np.isin(ran.iteration, steps)
    if not chosen.any():
        return None
    known = ran.known
    count, time = np.zeros((2, len(known), len(steps)), np.int64)
    at = ran.number[chosen], np.searchsorted(steps, ran.iteration[chosen])
    count[at], time[at] = ran.count[chosen], ran.dur_ns[chosen]
    same = (count == count[:, :1]).all(axis=1) & (count[:, 0] > 0)
    if time[same].sum() < _SAME * time.sum():
        return None
    whole = time[same].sum(axis=0)
    if 2 * chance_of(whole) >= CERTAIN or (slope := slope_of(whole)) <= 0:  # of either direction
        return None
    rising = np.array([slope_of(each) > 0 for each in time[same]])
    if time[same][rising].sum() < _ALL_KINDS * time[same].sum():
        return None
    rising_pct = 100.0 * float(time[same][rising].sum()) / int(time[same].sum())
    name = known[int(np.flatnonzero(same)[int(time[same].sum(axis=1).argmax())])].name
    return _Drift(
        rank,
        slope,
        float(np.median(whole - slope * np.arange(len(steps)))),
        round(slope * len(steps) * (len(steps) - 1) / 2),
        int(time[same].sum()),
        len(steps),
        name,
        rising_pct,
    )


RULE = Rule(
    topic="clock_drift",
    question="whether devices slow down",
    title="Slowing down from step to step",
    label="Slowing down",
    cause="steps that get slower",
    judge=clock_drift,
    applies=lambda inputs: inputs.judged >= LEAST_STEPS,
    wrong_if="Inputs grow from step to step, as with longer sequences.",
)
