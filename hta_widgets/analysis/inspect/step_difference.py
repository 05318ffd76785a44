"""Two steps of a run: how much longer the second takes, and in what; to the nanosecond."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd

from hta_widgets.analysis.compare.parts import evenly
from hta_widgets.analysis.device_time.busy import busy_ranks
from hta_widgets.analysis.device_time.step_parts import cause_of_change
from hta_widgets.analysis.idle.split import BUSY, PARTS, split
from hta_widgets.analysis.inspect.window import inspect_window
from hta_widgets.errors import MissingDataError
from hta_widgets.formatting import capitalised, counted, duration
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope

_NAMES: Final = 5
STEP: Final = "step"
Step = int | tuple[int, int]

_WORK: Final = [kind.label for kind in EventClass if kind < EventClass.SYNC]
_COLUMNS: Final = {
    "part": "str",
    "kind": "str",
    "first_ns": "int64",
    "second_ns": "int64",
    "change_ns": "int64",
}


@dataclass(frozen=True)
class StepDifference:
    """Two steps beside each other."""

    # what they are called: "step 3", or "step 3, rank 1"
    first: str
    second: str
    ranks: int  # how many ranks the times are the mean of
    parts: pd.DataFrame  # as `step_difference` returns it
    title: str  # which is longer, and by how much
    sentence: str  # why
    # kernels and copies whose time changed most: name, event_class (str), change_ns (int64, ns, mean of the
    # ranks), by the greatest change
    names: pd.DataFrame


def step_difference(trace: Trace, first: Step, second: Step, scope: Scope | None = None) -> pd.DataFrame:
    """Why does one step take longer than another?

    Args:
        trace: the job.
        first, second: the number of an iteration, of which the mean of the selected ranks that recorded both
            counts; or (rank, iteration).
        scope: ranks and streams to look at; default everything. Its iterations and window do not count.

    Returns:
        One row per part, as `step_parts` splits a step, and a last one for the step. Columns: part (str,
        "step" in the last row), kind (str, "busy", "idle" or "step"), first_ns, second_ns, change_ns (int64,
        ns; the second's less the first's). The parts add up to the step, to the nanosecond.

    Raises:
        MissingDataError: no rank recorded both with device work.
    """
    return _difference(trace, first, second, scope or Scope())[0]


def difference_of(trace: Trace, first: Step, second: Step, scope: Scope | None = None) -> StepDifference:
    """`step_difference` in words, with a few names whose device time changed most.

    Raises:
        MissingDataError: no rank recorded both with device work.
    """
    scope = scope or Scope()
    parts, pairs = _difference(trace, first, second, scope)
    one, other = _called(trace, first), _called(trace, second)
    changes = dict(zip(parts["part"].tolist(), parts["change_ns"].tolist(), strict=True))
    change = changes.pop(STEP)
    title = f"{capitalised(other)} "
    if change:
        title += f"is {duration(abs(change))} {'longer' if change > 0 else 'shorter'} than {one}"
    else:
        title += f"takes as long as {one}"
    mean = f" Times are the mean of {counted(len(pairs), 'rank')}." if len(pairs) > 1 else ""
    cause = cause_of_change(changes)
    names = _by_name(trace, pairs, scope).head(_NAMES)
    return StepDifference(one, other, len(pairs), parts, title, f"{cause}{mean}", names)


Pairs = list[tuple[tuple[int, int], tuple[int, int]]]


def _difference(trace: Trace, first: Step, second: Step, scope: Scope) -> tuple[pd.DataFrame, Pairs]:
    """The parts of both, and the pairs of (rank, iteration) that were compared."""
    pairs = _pairs(trace, first, second, scope)
    sides = [_mean_parts(trace, [pair[side] for pair in pairs], scope) for side in (0, 1)]
    one, other = (np.append(side, side.sum()) for side in sides)
    kinds = ["busy" if part in BUSY else "idle" for part in PARTS]
    frame = pd.DataFrame(
        {"part": [*PARTS, STEP], "kind": [*kinds, STEP], "first_ns": one, "second_ns": other}
    )
    return frame.assign(change_ns=other - one).astype(_COLUMNS), pairs


def _pairs(trace: Trace, first: Step, second: Step, scope: Scope) -> Pairs:
    """Each (rank, iteration) of the first step with that of the second, of ranks with device work."""
    ranks = trace.ranks_of(Scope(ranks=scope.ranks))
    pairs = []
    alone = isinstance(first, tuple) and isinstance(second, tuple)
    for rank in ranks[:1] if alone else ranks:
        pair = tuple(step if isinstance(step, tuple) else (rank, step) for step in (first, second))
        if all(_recorded(trace, *step) for step in pair):
            pairs.append((pair[0], pair[1]))
    if not pairs:
        raise MissingDataError(
            "device work of both steps on one rank",
            "Select iterations and ranks that were recorded with device events.",
            f"{_called(trace, first)} and {_called(trace, second)}",
        )
    return pairs


def _recorded(trace: Trace, rank: int, iteration: int) -> bool:
    if rank not in trace.ranks:
        return False
    rank_trace = trace.rank(rank)
    return rank_trace.device_span is not None and iteration in set(rank_trace.iterations["iteration"])


def _mean_parts(
    trace: Trace, steps: list[tuple[int, int]], scope: Scope
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The parts of the mean of some steps, in whole ns that add up."""
    total = np.zeros(len(PARTS), np.int64)
    for rank, iteration in steps:
        filters = Scope(ranks=(rank,), streams=scope.streams, names=scope.names)
        for _, rank_trace, work in busy_ranks(trace, filters):
            windows = rank_trace.windows(Scope(iterations=(iteration,)))
            total += split(rank_trace, work, filters, windows).sum(axis=0)
    return evenly(total, len(steps))


def _by_name(trace: Trace, pairs: Pairs, scope: Scope) -> pd.DataFrame:
    """name, event_class, change_ns of what ran on the devices, by the greatest change."""
    sides = []
    for pair in pairs:
        for sign, (rank, iteration) in zip((-1, 1), pair, strict=True):
            own = Scope(ranks=(rank,), streams=scope.streams, iterations=(iteration,))
            frame = inspect_window(trace, own, "name")
            frame = frame[frame["event_class"].isin(_WORK)]
            sides.append(frame[["name", "event_class"]].assign(change_ns=sign * frame["covered_ns"]))
    every = pd.concat(sides, ignore_index=True)
    changes = every.groupby(["name", "event_class"], sort=True)[["change_ns"]].sum().reset_index()
    changes["change_ns"] //= len(pairs)
    changes = changes[changes["change_ns"] != 0]
    return changes.sort_values("change_ns", key=lambda ns: -ns.abs(), kind="stable", ignore_index=True)


def _called(trace: Trace, step: Step) -> str:
    """`step 3`, `step 3, rank 1` in a job of several; `iteration 3` where steps are guessed."""
    rank, iteration = step if isinstance(step, tuple) else (None, step)
    guessed = not any(trace.rank(number).is_marked for number in trace.ranks[:1])
    name = f"{'iteration' if guessed else 'step'} {iteration}"
    return name if rank is None or len(trace.ranks) == 1 else f"{name}, rank {rank}"
