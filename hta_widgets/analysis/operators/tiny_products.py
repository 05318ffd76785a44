"""Matrix products so small that a device takes longer to begin and end them than to compute them."""

from __future__ import annotations

from typing import Final

import numpy as np

from hta_widgets.analysis.operators.fixed_elsewhere import judged_kernels
from hta_widgets.analysis.operators.least_times import least_ns
from hta_widgets.arrays import Int64
from hta_widgets.trace.rank_trace import RankTrace

SHORT_NS: Final = 10_000
"""In a shorter kernel most of the time is that of starting, of the first loads and of the last stores."""
_MOST: Final = 0.25
"""Of its time, what a product without such latency would take at most, to be one of these."""


def short_products(rank_trace: RankTrace) -> Int64:
    """Rows of the kernels of matrix products that take less than 10 us."""
    rows = judged_kernels(rank_trace).get("gemm", np.zeros(0, np.int64))
    return rows[rank_trace.dur[rows] < SHORT_NS]


def batched_ns(rank_trace: RankTrace) -> tuple[Int64, Int64]:
    """The tiny ones of these, and how much of each is left if they are computed many at once, ns.

    As long as their operations at half the peak of their unit, or their bytes at that of memory.
    """
    rows = short_products(rank_trace)
    least = least_ns(rank_trace, rows)
    tiny = least < _MOST * rank_trace.dur[rows]  # not of NaN
    return rows[tiny], np.ceil(least[tiny]).astype(np.int64)
