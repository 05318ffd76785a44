"""Kernels that keep few warps on the device, and are far from what it could do."""

from __future__ import annotations

from typing import Final

import numpy as np

from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.kernels.classes import MATRIX
from hta_widgets.analysis.kernels.residency import GRID, LIMITERS, residency
from hta_widgets.analysis.operators.fixed_elsewhere import judged_kernels
from hta_widgets.analysis.operators.least_times import least_ns
from hta_widgets.analysis.operators.tiny_products import SHORT_NS
from hta_widgets.analysis.operators.waves import partial_waves
from hta_widgets.arrays import Float64, Int64
from hta_widgets.trace.rank_trace import RankTrace

FILLING: Final = (
    *MATRIX, "softmax", "normalization", "elementwise", "reduction", "indexing", "embedding", "optimizer",
)  # fmt: skip
"""What kernels do that work on whole tensors; sorts and scans work in steps that need each other."""
_LOW: Final = 0.5
"""Of the warps that a device can hold: from here on, more of them seldom help."""
_FAR: Final = 0.5
"""Of its time, what a kernel would take at the roof at most, to be far from it."""


@memoize_per_rank()
def underfilled(rank_trace: RankTrace) -> tuple[Int64, Float64, Int64]:
    """Rows of kernels that fill little of the device, which part of it, and by what they are limited.

    Products and fused attention keep one block on a multiprocessor by design, at full speed: of them only
    those count that have no block for some, and that part is how many have one. Of others it is the
    occupancy. The limiter is a place in `LIMITERS`.
    """
    by_operation = judged_kernels(rank_trace)
    parts = {each: by_operation.get(each, np.zeros(0, np.int64)) for each in FILLING}
    products = np.concatenate([parts[each] for each in MATRIX])
    rows = np.concatenate([*parts.values()])
    rows = np.sort(rows[rank_trace.dur[rows] >= SHORT_NS], kind="stable")  # quick: sorted parts
    rows = rows[~np.isin(rows, partial_waves(rank_trace)[0])]
    found = residency(rank_trace, rows)
    part = found.filled_pct / 100.0
    busy = found.blocks / np.maximum(found.multiprocessors, 1)
    product = np.isin(rows, products)
    part, limiter = np.where(product, busy, part), np.where(product, GRID, found.limiter)
    bound = (limiter > 0) & (limiter < len(LIMITERS) - 1)  # full, or for an unknown reason
    low = (found.multiprocessors > 0) & bound & (part > 0) & (part < np.where(product, 1.0, _LOW))
    return rows[low], part[low], limiter[low]


def filled_ns(rank_trace: RankTrace) -> tuple[Int64, Int64]:
    """The kernels of `underfilled` that are far from the roof, and how much of each is left on a full device.

    ns: no less than its operations take at half the peak of their unit, or its bytes at that of memory.
    """
    rows, part, _ = underfilled(rank_trace)
    dur, least = rank_trace.dur[rows], least_ns(rank_trace, rows)
    far = least < _FAR * dur  # not of NaN
    return rows[far], np.ceil(np.maximum(dur * part, least)[far]).astype(np.int64)
