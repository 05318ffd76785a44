"""How the time of a pipeline divides into work and bubble, and what bubble its schedule has at best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.parallelism.microbatches import BACKWARD, FORWARD, WEIGHTS, Passes
from hta_widgets.analysis.parallelism.schedules import DUALPIPE, UNKNOWN, ZB_H1, Schedule
from hta_widgets.arrays import Float64

_NOT_MODELLED = (UNKNOWN, DUALPIPE)
"""The bubble of DualPipe depends on how well its forward and backward passes overlap."""


@dataclass(frozen=True)
class Parts:
    """The parts of one rank's step, ns: together they are the step.

    Attributes:
        before, after: outside the pipeline, which all stages enter and leave together.
        compute: kernels of passes. stalled: within passes, but none of them computes.
        warm_up, steady, drain: bubbles: no pass runs, before the first backward, after the last forward, and
            between these.
    """

    before: int
    compute: int
    stalled: int
    warm_up: int
    steady: int
    drain: int
    after: int

    @property
    def bubble(self) -> int:
        return self.warm_up + self.steady + self.drain

    @property
    def pipeline(self) -> int:
        return self.compute + self.stalled + self.bubble


def parts(passes: Passes, step: tuple[int, int], pipeline: tuple[int, int]) -> Parts:
    """The parts of a step of one rank, given when the step and the pipeline begin and end, by its clock."""
    begin, end = pipeline
    first, last = min(step[0], begin), max(step[1], end)
    running = Intervals.union(passes.start, passes.end)
    computing = passes.computing.clip(begin, end)
    forward = int(passes.end[passes.kind == FORWARD].max(initial=begin))
    backward = int(passes.start[passes.kind != FORWARD].min(initial=end))
    turn = min(max(backward, begin), end) if backward < forward else forward
    edges = np.array([[begin, turn], [turn, max(turn, forward)], [max(turn, forward), end]], np.int64)
    warm_up, steady, drain = (edges[:, 1] - edges[:, 0] - running.within_each(edges)).tolist()
    compute = (computing & running).length
    return Parts(
        begin - first, compute, running.length - compute, warm_up, steady, drain, last - end,
    )  # fmt: skip


def ideal_bubble(schedule: Schedule, stages: Sequence[Passes]) -> float:
    """The bubble of a rank if all stages were equal and nothing else delayed them, ns.

    NaN if the schedule is unknown, and in DualPipe, where it depends on how well passes overlap.

    (p - 1) (f + b) of GPipe, 1F1B and its interleaved form, where f and b are the mean passes of a chunk
    (Narayanan et al., SC 2021, section 2.2); (p - 1) (f + b - w) of ZB-H1, with the gradients of inputs b and
    of weights w (Qi et al., ICLR 2024, table 2).
    """
    if schedule.name in _NOT_MODELLED:
        return float("nan")
    passes = schedule.microbatches * schedule.chunks
    forward, backward = (_work(stages, kinds) / (passes * len(stages)) for kinds in _DIRECTIONS)
    if schedule.name == ZB_H1:
        weights = _work(stages[1:], (WEIGHTS,)) / (passes * (len(stages) - 1))
        return (len(stages) - 1) * (forward + backward - 2 * weights)
    return (len(stages) - 1) * (forward + backward)


_DIRECTIONS = ((FORWARD,), (BACKWARD, WEIGHTS))


def _work(stages: Sequence[Passes], kinds: tuple[str, ...]) -> int:
    """How long the passes of these kinds take, on all stages together."""
    return sum(int((each.end - each.start)[np.isin(each.kind, kinds)].sum()) for each in stages)


def imbalance(schedule: Schedule, stages: Sequence[Passes]) -> float:
    """What the pipeline would gain if its stages shared the work equally, ns; NaN as of the ideal bubble.

    The passes are replayed in their order, each as soon as its input is there, with the durations that they
    had, and with those scaled so that all stages take equally long forward, and equally long backward.
    """
    if schedule.name in _NOT_MODELLED:
        return float("nan")
    own = [(each.end - each.start).astype(np.float64) for each in stages]
    level = [duration.copy() for duration in own]
    for kinds in _DIRECTIONS:
        chosen = [np.isin(each.kind, kinds) for each in stages]
        of_stage = [float(duration[at].sum()) for duration, at in zip(own, chosen, strict=True)]
        mean = sum(of_stage) / len(stages)
        for duration, at, total in zip(level, chosen, of_stage, strict=True):
            duration[at] *= mean / max(total, 1.0)
    orders = [each.kind.tolist() for each in stages]
    return max(ends_of(orders, own, schedule.chunks)) - max(ends_of(orders, level, schedule.chunks))


def ends_of(
    orders: Sequence[Sequence[str]],
    durations: Sequence[Float64],
    chunks: int,
    transfer: float = 0.0,
    beside: bool = True,
) -> list[float]:
    """When each stage ends its passes, run in their order, each as soon as its input is there.

    Args:
        orders: "F", "B" or "W" of each pass of a stage, by stage. durations: of these, ns.
        chunks: parts of the model per rank.
        transfer: how long a stage's result takes to the next one, ns.
        beside: the receiving stage runs other passes meanwhile; else it has to be free to receive.
    """
    count, round_ = len(orders), len(orders) * chunks
    ends: dict[tuple[str, int, int], float] = {}
    free = [0.0] * count
    at, number = [0] * count, [{FORWARD: 0, BACKWARD: 0, WEIGHTS: 0} for _ in orders]
    moved = True
    while moved:
        moved = False
        for stage, order in enumerate(orders):
            while at[stage] < len(order):
                kind = order[at[stage]]
                nth = number[stage][kind]
                needed = _input(kind, stage, nth, count, round_)
                if needed is not None and needed not in ends:
                    break
                begin = free[stage]
                if needed is not None:
                    arrived = ends[needed] + transfer
                    begin = max(begin, arrived) if beside else max(begin + transfer, arrived)
                free[stage] = ends[kind, stage, nth] = begin + float(durations[stage][at[stage]])
                number[stage][kind] += 1
                at[stage] += 1
                moved = True
    return free


def _input(kind: str, stage: int, nth: int, stages: int, round_: int) -> tuple[str, int, int] | None:
    """The pass that another stage must have ended.

    Microbatches come in rounds of as many as there are stages, through one chunk after the other. Within a
    round a rank runs them all through a chunk before the next, so that their next pass comes that much
    later.
    """
    if kind == WEIGHTS:
        return None
    way, last = (-1, 0) if kind == FORWARD else (1, stages - 1)
    if stage != last:
        return kind, stage + way, nth
    return (kind, stages - 1 - last, nth - stages) if nth % round_ >= stages else None
