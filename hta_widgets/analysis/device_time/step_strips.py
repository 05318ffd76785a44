"""What the device of each step runs over its time, aligned at the steps' starts: a picture of pixels."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from hta_widgets.analysis.device_time.busy import busy
from hta_widgets.analysis.idle.split import BUSY
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope

WHOLE: Final = 255
"""A bin in which nothing but one class runs."""


def step_strips(trace: Trace, steps: pd.DataFrame, scope: Scope, bins: int) -> npt.NDArray[np.uint8]:
    """How full is each bin of each step of compute, exposed communication and exposed copies?

    Args:
        steps: a row per step: rank, start_ns, end_ns, as `step_parts` has them.
        scope: the streams and names to look at.
        bins: how many equal bins the longest of the steps is divided into; those of the others are as long.

    Returns:
        uint8[steps, 3, bins]: parts of `WHOLE`; 0 beyond a step's end. What is left of a bin is idle time.
    """
    start, end = (steps[name].to_numpy(np.int64) for name in ("start_ns", "end_ns"))
    longest = int((end - start).max(initial=0))
    edges = longest * np.arange(bins + 1, dtype=np.int64) // bins
    found = np.zeros((len(steps), len(BUSY), bins), np.uint8)
    rank_of = steps["rank"].to_numpy(np.int64)
    for rank in np.unique(rank_of).tolist():
        work = busy(trace.rank(rank), Scope(streams=scope.streams, names=scope.names))
        for row in np.flatnonzero(rank_of == rank).tolist():
            at = np.minimum(start[row] + edges, end[row])
            windows = np.stack([at[:-1], at[1:]], axis=1)
            lengths = np.maximum(windows[:, 1] - windows[:, 0], 1)
            for number, part in enumerate(BUSY):
                found[row, number] = WHOLE * getattr(work, part).within_each(windows) // lengths
    return found
