"""A pipeline with another number of microbatches: its passes replayed in the order of its schedule."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

import numpy as np
import pandas as pd

from hta_widgets.analysis.communication.collectives import collectives
from hta_widgets.analysis.parallelism.bubbles import ends_of
from hta_widgets.analysis.parallelism.microbatches import BACKWARD, FORWARD, Passes
from hta_widgets.analysis.parallelism.pipeline import pipeline, pipelines, steps_of
from hta_widgets.analysis.parallelism.schedules import INTERLEAVED, Schedule, order_of, schedule_of
from hta_widgets.arrays import Float64
from hta_widgets.errors import RECORD_DEVICE, MissingDataError
from hta_widgets.trace.model import Trace

_TRUSTED: Final = 0.05
"""A replay that is further from the recorded time of the pipeline explains nothing."""
_RECORD_PAIRS: Final = (
    "Record every stage with a PyTorch that writes the group of each send and receive (2.4 or newer)."
)


def rescheduled(trace: Trace, microbatches: int, same_size: bool) -> pd.DataFrame:
    """What the stages of pipelines gain or lose if a step has another number of microbatches.

    The passes follow the recorded schedule. Each takes the mean of those of its stage, chunk and direction;
    of smaller microbatches its kernels compute as much less, and what else it takes, such as collectives of
    the stage, stays. A result takes the median transfer to the next stage. Whether a stage has to be free to
    receive it is what explains the recorded time better.

    Returns:
        One row per step and rank of a pipeline. Columns: iteration, rank (int64), shift_ns (int64 ns, by how
        much later its last pass ends, or below 0 earlier), shift_low_ns, shift_high_ns (int64 ns, the least
        and the most of that for receives of both kinds, and communication as long as recorded, or as much
        less as microbatches are smaller), computing_ns (int64 ns, by how much longer its kernels compute).

    Raises:
        MissingDataError: as `pipeline`; or a schedule whose passes cannot be ordered anew, or a replay of the
            recorded number that does not explain the recording.
        ValueError: interleaved stages need a multiple of the number of stages.
    """
    recorded = pipeline(trace).set_index(["iteration", "rank"])
    rows = []
    for purpose, stages in pipelines(trace):
        transfer = _transfer(trace, purpose.group.name)
        for step in steps_of(stages):
            if (step, purpose.order[0]) not in recorded.index:
                continue
            told = recorded.loc[[(step, rank) for rank in purpose.order]]
            rows += _of_step(told, [each[step] for each in stages], transfer, microbatches, same_size)
    frame = pd.DataFrame(rows)
    return frame.astype(dict.fromkeys(frame, "int64"))


def _of_step(
    told: pd.DataFrame, stages: Sequence[Passes], transfer: float, microbatches: int, same_size: bool
) -> list[dict[str, float]]:
    schedule = schedule_of(stages)
    orders = [order_of(schedule, at, len(stages), microbatches) for at in range(len(stages))]
    if any(order is None for order in orders):
        raise MissingDataError(
            "schedule that orders another number of microbatches",
            "Of GPipe, 1F1B and interleaved 1F1B the order is known.",
            f"that of this one is not: {schedule.name}",
        )
    if schedule.name == INTERLEAVED and microbatches % len(stages):
        raise ValueError(
            f"interleaved stages run microbatches in rounds of {len(stages)}, not {microbatches} of them"
        )
    size = 1.0 if same_size else schedule.microbatches / microbatches
    before = [passes.order for passes in stages]
    after = [str(order) for order in orders]
    keys = partial(_keys, schedule=schedule, stages=len(stages))
    means = [_means(passes, keys(passes.order)) for passes in stages]

    def ends(orders: Sequence[str], beside: bool, compute: float, other: float) -> Float64:
        """When each stage ends if kernels that compute, and all else, take these shares of their time."""
        lasting = [
            np.array([compute * mean[key][0] + other * mean[key][1] for key in keys(of)])
            for of, mean in zip(orders, means, strict=True)
        ]
        return np.array(ends_of(orders, lasting, schedule.chunks, other * transfer, beside))

    whole = float((told["step_ns"] - told["before_ns"] - told["after_ns"]).mean())
    recorded = [ends(before, beside, 1.0, 1.0) for beside in (True, False)]
    errors = [abs(float(each.max()) / whole - 1) for each in recorded]
    if min(errors) > _TRUSTED:
        raise MissingDataError(
            "passes that explain the time of the pipeline",
            RECORD_DEVICE,
            f"a replay of them takes {100 * min(errors):.0f} % more or less",
        )
    both = [ends(after, beside, size, 1.0) - recorded[not beside] for beside in (True, False)]
    smaller = [ends(after, beside, size, size) - recorded[not beside] for beside in (True, False)]
    every = np.array([*both, *smaller])
    chosen = both[int(np.argmin(errors))]
    change = microbatches * size / schedule.microbatches - 1
    return [
        {
            "iteration": step, "rank": rank, "shift_ns": round(chosen[at]),
            "shift_low_ns": round(every[:, at].min()), "shift_high_ns": round(every[:, at].max()),
            "computing_ns": round(change * told["compute_ns"].iloc[at]),
        }
        for at, (step, rank) in enumerate(told.index)
    ]  # fmt: skip


def _means(passes: Passes, keys: list[tuple[str, int]]) -> dict[tuple[str, int], tuple[float, float]]:
    """Of the passes of each direction and chunk, the mean time that they compute, and do not, ns."""
    frame = pd.DataFrame({"key": keys})
    frame["compute"] = passes.computing.within_each(np.stack([passes.start, passes.end], axis=1))
    frame["other"] = passes.end - passes.start - frame["compute"]
    means = frame.groupby("key")[["compute", "other"]].mean()
    return dict(zip(means.index.tolist(), means.itertuples(index=False, name=None), strict=True))


def _keys(order: str, schedule: Schedule, stages: int) -> list[tuple[str, int]]:
    """Direction and chunk of each pass: in rounds of as many as there are stages, one chunk after another."""
    number = {FORWARD: 0, BACKWARD: 0}
    found = []
    for kind in order:
        found.append((kind, number[kind] % (stages * schedule.chunks) // stages))
        number[kind] += 1
    return found


def _transfer(trace: Trace, group: str) -> float:
    """How long a result takes to the next stage once both are there: the median, ns."""
    found = collectives(trace)
    own = found[(found["process_group"] == group) & found["collective"].isin(("send", "recv"))]
    own = own[own["match"].notna()]
    if own.empty:
        raise MissingDataError("sends and receives that meet", _RECORD_PAIRS)
    return float(own["transfer_ns"].median())
