"""What a rank's file records: which kind of run, and whether what happened can be told from it.

A verdict about idle time or slow ranks presumes a program that runs, and a file that holds what ran. A graph
that is being captured launches work that does not run; a file whose events were filtered shows gaps that
never were. Both are recognised by their events, not by their names.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.graph_replays import Replays, replays_of
from hta_widgets.trace.ordering import among

if TYPE_CHECKING:
    from hta_widgets.trace.rank_trace import RankTrace
    from hta_widgets.trace.records.losses import Losses

Kind = Literal["training", "serving", "forward", "graph capture", "unknown"]

# Backward operators and optimizers on the host; where only kernels are recorded, those of a backward pass.
_TRAINING_CALL = re.compile(r"Backward\d*$|^autograd::engine::|^Optimizer\.(?:step|zero_grad)#")
_TRAINING_KERNEL = re.compile(r"[Bb]ackward|bwd|dgrad|wgrad|_bw_")
# Of a graph that is replayed no operator tells; a transposed convolution has kernels of some of these names.
_TRAINING_REPLAYED = re.compile(r"[Bb]ackward|Adam|SGD")
# Fewer operators and kernels than these show no pass through a model.
_LEAST_WORK = 10
# PyTorch numbers operators as they begin. Where fewer than half of those in a file follow each other by one,
# others in between were removed; complete recordings have 70 % or more.
_CONSECUTIVE_SHARE = 0.5
_LEAST_NUMBERED = 5
# From this share of launches on whose work was not recorded, idle time says more about the file than about
# the device.
_UNANSWERED_SHARE = 0.5
# From this share (%) of the device's time on, what replays of graphs lack would pass for idle time that is
# worth telling.
_MISSING_PCT = 3.0


@dataclass(frozen=True)
class Recording:
    """What a file records."""

    # "training" (it holds a backward pass or an optimizer), "serving" (steps of a server), "graph capture"
    # (most launches are recorded into a graph and do not run), "forward" (operators or kernels, none of a
    # backward pass), or "unknown" (too little to tell)
    kind: Kind
    # how many numbered operators the file holds, and the share (%) of the numbers between the first and the
    # last that they are; 0 and 100.0 without numbers
    operators: int
    kept_pct: float
    filtered: bool  # operators in between were removed from the file
    # calls that put work on a device, and those whose work is not recorded
    launches: int
    unanswered: int
    captured: int  # the unanswered ones that were captured into a graph
    replays: Replays  # launches of graphs, and those whose device work is recorded in part
    # the device work that these lack, in % of the time from the first to the last device work
    missing_pct: float

    @property
    def cuts_replays(self) -> bool:
        """Whether replays of graphs lack so much of their device work that it may pass for idle time."""
        return self.missing_pct >= _MISSING_PCT

    @property
    def lacks_device_work(self) -> bool:
        """Whether the device work of most launches is missing: captured into a graph, or not recorded."""
        return self.unanswered > 0 and self.unanswered >= _UNANSWERED_SHARE * self.launches


def recording_of(rank_trace: RankTrace) -> Recording:
    """What the file of a rank records."""
    losses = rank_trace.losses
    rows, numbers = rank_trace.recorded("external_id")
    numbers = numbers[(rank_trace.event_class[rows] == EventClass.HOST_OP) & (numbers > 0)]
    # nearly in order already, which a stable sort makes use of and np.unique does not
    numbers = np.sort(numbers, kind="stable")
    numbers = numbers[np.diff(numbers, prepend=0) > 0]
    kept, filtered = 100.0, False
    if len(numbers) >= _LEAST_NUMBERED:
        kept = 100.0 * len(numbers) / int(numbers[-1] - numbers[0] + 1)
        filtered = bool((np.diff(numbers) == 1).mean() < _CONSECUTIVE_SHARE)
    replays, span = replays_of(rank_trace), rank_trace.device_span
    kind = _kind(rank_trace, losses, replays)
    if filtered and kind == "forward":  # what shows no backward pass may have lost it
        kind = "unknown"
    missing = 100.0 * replays.missing_ns / (span[1] - span[0]) if replays.missing_ns and span else 0.0
    unanswered = len(losses.lost) + len(losses.captured)
    return Recording(
        kind, len(numbers), kept, filtered, len(losses.launches), unanswered, len(losses.captured), replays,
        missing,
    )  # fmt: skip


def _kind(rank_trace: RankTrace, losses: Losses, replays: Replays) -> Kind:
    if len(losses.captured) and len(losses.captured) >= 0.5 * len(losses.launches):
        return "graph capture"
    steps = rank_trace.iterations
    if len(steps) and steps["source"].iloc[0] == "serving step":
        return "serving"
    on_host = among(rank_trace.event_class, (EventClass.HOST_OP, EventClass.ANNOTATION))
    operators = on_host & (rank_trace.event_class == EventClass.HOST_OP)
    if _any_named(rank_trace, on_host, _TRAINING_CALL):
        return "training"
    if not operators.any() and _any_named(rank_trace, rank_trace.is_device, _TRAINING_KERNEL):
        return "training"
    if replays.count and _any_named(rank_trace, rank_trace.is_device, _TRAINING_REPLAYED):
        return "training"
    enough = max(int(operators.sum()), int(rank_trace.is_device.sum())) >= _LEAST_WORK
    return "forward" if enough else "unknown"


def _any_named(rank_trace: RankTrace, rows: npt.NDArray[np.bool_], pattern: re.Pattern[str]) -> bool:
    present = np.flatnonzero(np.bincount(rank_trace.name[rows])).tolist()
    return any(pattern.search(rank_trace.names[code]) for code in present)
