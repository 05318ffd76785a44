"""The iterations of a job: those of all its ranks, timed by one clock."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from hta_widgets.arrays import Bool
from hta_widgets.trace import kept_iterations
from hta_widgets.trace.iteration_clock import clock_of_job, retimed
from hta_widgets.trace.lent_marks import is_announced

if TYPE_CHECKING:
    from hta_widgets.trace.model import Trace


def iterations_of_job(trace: Trace) -> pd.DataFrame:
    """All ranks' iterations by rank and time, as `Trace.iterations`."""
    frame, counts = _kept(trace) or _joined(trace)
    frame["rank"] = np.repeat(np.array(trace.ranks, np.int64), counts)
    announced = is_announced(frame)
    mixed = trace.iteration_clock == "auto" and len(set(frame["clock"])) > 1
    if len(trace.ranks) > 1 and (mixed or not announced.all()):
        frame = _by_one_clock(trace, frame, announced)
    return frame[["iteration", "rank", *(name for name in frame if name not in ("iteration", "rank"))]]


def _by_one_clock(trace: Trace, frame: pd.DataFrame, announced: Bool) -> pd.DataFrame:
    """Iterations that each rank found alone, by one clock, and by another's marks where it has none."""
    own = {int(str(rank)): of_rank for rank, of_rank in frame.groupby("rank")}
    telling = frame[announced] if announced.any() else frame
    wanted = trace.iteration_clock
    clock = clock_of_job([part for _, part in telling.groupby("rank")]) if wanted == "auto" else wanted
    marked = set(frame.loc[announced, "rank"])
    steps = []
    for rank, of_rank in own.items():
        lent = None if rank in marked else trace.rank(rank).by_lent_marks(clock)
        steps.append(retimed(of_rank, clock) if lent is None else lent.assign(rank=rank))
    return pd.concat(steps, ignore_index=True)


def _kept(trace: Trace) -> tuple[pd.DataFrame, list[int]] | None:
    """The iterations of all ranks, and how many each has; None unless all are kept on disk."""
    kept = [trace.rank(rank).kept_iterations for rank in trace.ranks]
    return None if None in kept else kept_iterations.read_all([each for each in kept if each])


def _joined(trace: Trace) -> tuple[pd.DataFrame, list[int]]:
    frames = [trace.rank(rank).own_iterations for rank in trace.ranks]
    return pd.concat(frames, ignore_index=True), [len(frame) for frame in frames]
