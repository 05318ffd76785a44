"""Operations that the device was ready for before the host called them: the host as operations of its own."""

from __future__ import annotations

import numpy as np
import pandas as pd

from hta_widgets.analysis.job.operations import NOT_CALLED
from hta_widgets.arrays import Int64


def host_delays(ops: pd.DataFrame, before: Int64, after: Int64) -> Int64:
    """How long the device waits for the host ahead of each operation, int64[n] ns.

    An operation waits for the host if all that it depends on had ended when its launch was called; then it
    starts so much later than it could. What it depends on are its predecessors, at the begin of a step the
    earlier steps of its rank. Where the launch was not recorded, or the first step begins, nothing is known:
    0.
    """
    ready = ops["ended_before_ns"].to_numpy(np.int64).copy()
    np.maximum.at(ready, after, ops["end_ns"].to_numpy(np.int64)[before])
    called, start = (ops[column].to_numpy(np.int64) for column in ("called_ns", "start_ns"))
    waits = (ready != NOT_CALLED) & (called != NOT_CALLED) & (called > ready)
    delay: Int64 = np.where(waits, start - np.where(waits, ready, start), 0)
    return delay


def usual_delays(ops: pd.DataFrame, delay: Int64) -> Int64:
    """The median of the delay over ranks and steps, at the same place: int64[n] ns.

    Of an even number it is the lower of the two in the middle: where one of two ranks is late in every step,
    the other shows how early a host can be. Places that are there in fewer than half of the steps of the
    ranks that have them, as in a checkpoint, count as one: what a step waits at them is scaled to the lower
    median of these ranks and steps.
    """
    place = ops.groupby(["lane", "nth", "name"], dropna=False).ngroup()
    taken = pd.Series(delay, ops.index)
    usual = place.map(taken.groupby(place).quantile(0.5, interpolation="lower"))
    ranks = ops["rank"].groupby(place).transform("nunique")
    rare = 2 * taken.groupby(place).transform("size") < ranks * ops["step"].nunique()
    if rare.any():
        waits = taken.where(rare, 0)[ops["rank"].isin(ops["rank"][rare])]
        by_step = waits.groupby([ops["rank"], ops["step"]])
        own, most = by_step.transform("sum"), by_step.sum().quantile(0.5, interpolation="lower")
        usual = usual.where(~rare, taken * np.minimum(1.0, most / own.where(own > 0, 1)))
    return usual.to_numpy(np.float64).round().astype(np.int64)
