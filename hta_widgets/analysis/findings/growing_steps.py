"""The rule about steps that get longer since each does more: more kernels or operators, or larger kernels."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
import pandas as pd

from hta_widgets.analysis.core.claim import Claim, say
from hta_widgets.analysis.device_time.step_times import LEAST_EXCESS
from hta_widgets.analysis.findings.configurations import configured
from hta_widgets.analysis.findings.drift_rules import CERTAIN, LEAST_STEPS
from hta_widgets.analysis.findings.finding import Evidence, Finding
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.loss import lost_on
from hta_widgets.analysis.findings.rule import Rule, never
from hta_widgets.analysis.findings.unusual_steps import WORK, begin_of_work, spent_in_steps
from hta_widgets.analysis.kernels.residency import product_of
from hta_widgets.analysis.memory.growth import chance_of, slope_of
from hta_widgets.analysis.operators.inputs import elements
from hta_widgets.arrays import Float64, Int64
from hta_widgets.formatting import counted

_MOST: Final = 0.5
"""So much of what steps get longer must be work."""
_EXPLAINED: Final = 0.25
"""Work must grow by so much of what its time grows: what is added may be larger than the rest."""

_ELEMENT: Final = "input element"
"""Counted for each kernel of its operator: what is larger may run in as many blocks."""


class _Grown(NamedTuple):
    """What the steps of a rank come to do."""

    cost_ns: int  # what they take beyond the first, along their slope
    window_ns: int  # all judged time
    rise_pct: float  # how much longer the last is than the first, along the slope
    steps: dict[int, int]  # iteration -> how long it takes along the slope, ns
    unit: str  # what grows; first, last: how many the first step and the last one have
    first: int
    last: int


def growing_steps(inputs: Inputs) -> Finding | None:
    """Steps that take longer and longer, and do more and more."""
    ranks = inputs.trace.ranks_of(inputs.scope)
    found = {rank: grown for rank in ranks if (grown := does_more(inputs, rank))}
    frame = pd.DataFrame([{"rank": rank, "window_ns": grown.window_ns} for rank, grown in found.items()])
    loss = lost_on(frame, {rank: grown.cost_ns for rank, grown in found.items()})
    if loss is None:
        return None
    rank, grown = loss.worst, found[loss.worst]
    one, about = (rank,), {"steps": list(grown.steps), "unit": grown.unit}
    some = len(found) < len(ranks)
    start, end = inputs.trace.rank(rank).windows(inputs.scope)[-1].tolist()
    text = say(
        "Over {steps} steps a step comes to take {rise} longer{who} (Theil-Sen slope; p < 0.01 that it is "
        "chance). Beyond the first step, that costs {cost}. Each does more: the first runs {first}, the last "
        "{last}.",
        steps=Claim("growing_step_count", len(grown.steps), "count", ranks=one, about=about),
        rise=Claim("growing_step_time", grown.rise_pct, "%", "first step", one, about),
        who=say(" on {ranks}", ranks=Claim("growing_on", tuple(found), "ranks")) if some else "",
        cost=inputs.time_lost("beyond_first_step", loss.share_pct, loss.cost_ns, loss.ranks, **about),
        first=_work("work_of_first_step", grown.first, grown, one),
        last=_work("work_of_last_step", grown.last, grown, one),
    )
    return loss.finding(
        text,
        "Look at what grows from step to step: lists of tensors, hooks that add up, graphs that are not "
        "freed, longer inputs. What is meant to grow is no loss.",
        "step_times",
        Evidence(rank=loss.alone, iteration=max(grown.steps), event_rank=rank, span=(start, end)),
        share_of=loss.shares,
    )


def _work(measure: str, count: int, grown: _Grown, ranks: tuple[int, ...]) -> Claim:
    about = {"steps": list(grown.steps), "unit": grown.unit}
    shown = f"{'kernels on ' * (grown.unit == _ELEMENT)}{counted(count, grown.unit)}"
    return Claim(measure, count, "count", "", ranks, about, shown)


def without_growth(inputs: Inputs, late: pd.DataFrame) -> pd.DataFrame:
    """Unusual steps without those that are as long as is expected, up to a tenth, where each does more.

    Of the others what is expected is no part of the excess.
    """
    grown = {rank: does_more(inputs, rank) for rank in late["rank"].unique().tolist()}
    expected = np.array(
        [
            each.steps.get(step, 0) if (each := grown[rank]) else 0
            for rank, step in zip(late["rank"], late["iteration"], strict=True)
        ],
        np.int64,
    )
    dur, excess = (late[name].to_numpy(np.int64) for name in ("dur_ns", "excess_ns"))
    found: pd.DataFrame = late.assign(excess_ns=np.minimum(excess, dur - expected))
    return found[dur > (1 + LEAST_EXCESS) * expected]


def does_more(inputs: Inputs, rank: int) -> _Grown | None:
    """What the steps of a rank come to do, if they get longer since they do more."""
    return inputs.of(rank, _grown)


def _grown(inputs: Inputs, rank: int) -> _Grown | None:
    if inputs.judged_steps.get(rank, 0) < LEAST_STEPS:
        return None
    steps, windows, spent = spent_in_steps(inputs, rank)
    if len(steps) < LEAST_STEPS or steps["open"].any() or len(steps["kind"].unique()) > 1:
        return None
    times = windows[:, 1] - windows[:, 0]
    work = next((part for part in WORK if part in spent), None)
    if work is None or chance_of(times) >= CERTAIN or (slope := slope_of(times)) <= 0:
        return None
    worked = spent[work].within_each(windows)
    if slope_of(worked) < _MOST * slope:
        return None
    for unit, amounts in _amounts(inputs, rank, windows, WORK[work]).items():
        certain = chance_of(amounts) < CERTAIN and slope_of(amounts) > 0
        if certain and _rise(amounts) >= _EXPLAINED * _rise(worked):
            return _Grown(
                round(slope * len(times) * (len(times) - 1) / 2),
                inputs.judged_time(rank).length,
                100.0 * _rise(times),
                dict(
                    zip(
                        steps["iteration"].tolist(),
                        _line(times).round().astype(np.int64).tolist(),
                        strict=True,
                    )
                ),
                unit,
                int(amounts[0]),
                int(amounts[-1]),
            )
    return None


def _line(levels: Int64) -> Float64:
    """What each of them would be if they grew evenly."""
    along = slope_of(levels) * np.arange(len(levels), dtype=np.float64)
    return np.asarray(along + np.median(levels - along), np.float64)


def _rise(levels: Int64) -> float:
    """How much larger the last is than the first, along the slope, in parts of the first."""
    first, *_, last = _line(levels).tolist()
    return float(last / first) - 1 if first > 0 else math.inf


def _amounts(inputs: Inputs, rank: int, windows: Int64, unit: str) -> dict[str, Int64]:
    """By what is counted: how many of them begin in each of these windows."""
    begins = begin_of_work(inputs, rank)
    found = {unit: np.diff(begins.searchsorted(windows), axis=1)[:, 0]}
    if unit != "kernel":
        return found
    rank_trace = inputs.trace.rank(rank)
    rows, known, number = configured(rank_trace)
    order = np.argsort(rank_trace.start[rows], kind="stable")
    at = rank_trace.start[rows][order].searchsorted(windows)
    for each, sizes in (
        ("thread block", [product_of(launch.grid) for launch in known]),
        (_ELEMENT, [elements(launch.inputs) for launch in known]),
    ):
        before = np.concatenate([[0], np.cumsum(np.array(sizes or [0], np.int64)[number[order]])])
        found[each] = np.diff(before[at], axis=1)[:, 0]
    return found


RULE = Rule(
    topic="growing_steps",
    question="which steps are unusual",
    title="Doing more in each step",
    label="Growing steps",
    cause="steps that do more and more",
    judge=growing_steps,
    applies=never,
    no_change="how much a step must do is not known",
    wrong_if="Steps are meant to do more and more, as with sequences that get longer.",
)
