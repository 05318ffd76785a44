"""What a scope or an iteration chooses: rows of a rank, and rows of an answer about the whole job."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pandas as pd

    from hta_widgets.trace.model import Trace
    from hta_widgets.trace.rank_trace import RankTrace
    from hta_widgets.trace.scope import Scope


def count_in_each(rank_trace: RankTrace, rows: npt.NDArray[np.int64], iterations: Iterable[int]) -> list[int]:
    """How many of these rows of a rank are in each of some iterations."""
    numbers, counts = np.unique(rank_trace.iteration[rows], return_counts=True)
    count = dict(zip(numbers.tolist(), counts.tolist(), strict=True))
    return [count.get(number, 0) for number in iterations]


def of_ranks_and_iterations(frame: pd.DataFrame, trace: Trace, scope: Scope) -> pd.DataFrame:
    """The rows whose `rank` and `iteration` belong to a scope, numbered from 0."""
    chosen = frame["rank"].isin(trace.ranks_of(scope))
    if scope.iterations is not None:
        chosen &= frame["iteration"].isin(scope.iterations)
    return frame[chosen].reset_index(drop=True)
