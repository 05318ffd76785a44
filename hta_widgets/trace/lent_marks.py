"""Steps of a rank that does not announce them, by the marks of another rank of its job.

Programs often call `prof.step()` on rank 0 alone. The ranks of a job work in step, so that on a clock that
they share its marks say when the steps of the others begin; the frame names the rank whose marks they are.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

# A step that lies in the recording of the other rank by less than the first share is none of it; by less than
# the second it was cut.
_LEAST_SHARE = 0.5
_WHOLE_SHARE = 0.9


def is_announced(iterations: pd.DataFrame) -> npt.NDArray[np.bool_]:
    """Which iterations the program announces."""
    return iterations["known"].eq("announced").to_numpy(np.bool_)


def lent_marks(iterations: pd.DataFrame, rank: int, extent: tuple[int, int]) -> pd.DataFrame | None:
    """The marks of a rank as those of another; None where its recording holds none of them.

    Args:
        iterations: of the rank that has marks, as `iteration_clock.timed` returns it. rank: its number.
        extent: first start and last end (ns) of what the other recorded.

    Returns:
        Columns as `iterations.find_iterations` documents: source names the rank, confidence is medium, and
        partial says what the recording of either cuts.
    """
    marks = iterations.drop(columns=["device_start_ns", "device_end_ns", "leading", "clock", "open"])
    marks["start_ns"], marks["end_ns"] = marks.pop("host_start_ns"), marks.pop("host_end_ns")
    begin, end = (marks[name].to_numpy(np.int64) for name in ("start_ns", "end_ns"))
    share = (np.minimum(end, extent[1]) - np.maximum(begin, extent[0])) / np.maximum(end - begin, 1)
    held = share >= _LEAST_SHARE
    if not held.any():
        return None
    marks["source"] += f" of rank {rank}"
    marks["partial"] |= share < _WHOLE_SHARE
    return marks.assign(confidence="medium")[held].reset_index(drop=True)
