"""Kernels whose last wave of blocks leaves most of the device idle: wave quantisation.

A device has room for some blocks of a kernel at once, a wave. Where their number is a little more than a
multiple of that, the last wave takes as long as the others, for a few blocks. NVIDIA, Matrix Multiplication
Background User's Guide, "Wave Quantization"; here a wave is what fits: multiprocessors times resident blocks.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.kernels.classes import kernel_class
from hta_widgets.analysis.kernels.residency import residency
from hta_widgets.analysis.operators.fixed_elsewhere import judged_kernels
from hta_widgets.analysis.operators.least_times import least_ns
from hta_widgets.analysis.operators.tiny_products import SHORT_NS
from hta_widgets.arrays import Float64, Int64
from hta_widgets.trace.rank_trace import RankTrace

OPERATIONS: Final = ("gemm", "convolution", "normalization", "reduction", "softmax")
"""Their blocks do equal work for long. Those of attention with a mask do not; pointwise ones are short."""
_LEAST: Final = 0.1
"""Of a kernel's time, what is lost in its last wave at least, to be one of these."""


@memoize_per_rank()
def partial_waves(rank_trace: RankTrace) -> tuple[Int64, Float64]:
    """Rows of such kernels, and the waves of each.

    A kernel of at most one wave, or with equally many blocks for each multiprocessor, is made to fit: so are
    persistent kernels, whose blocks take tile after tile. Those that split sums share them out themselves.
    """
    by_operation = judged_kernels(rank_trace)
    rows = np.concatenate([by_operation.get(each, np.zeros(0, np.int64)) for each in OPERATIONS])
    rows = np.sort(rows[rank_trace.dur[rows] >= SHORT_NS], kind="stable")  # quick: sorted parts
    found = residency(rank_trace, rows)
    room = found.multiprocessors * found.resident
    waves = found.blocks / np.maximum(room, 1)
    uneven = (room > 0) & (waves > 1) & (found.blocks % np.maximum(found.multiprocessors, 1) > 0)
    uneven &= 1 - waves / np.ceil(np.maximum(waves, 1)) >= _LEAST
    codes = np.unique(rank_trace.name[rows[uneven]]).tolist()
    shared = [code for code in codes if _shares_sums(rank_trace.names[code])]
    uneven &= ~np.isin(rank_trace.name[rows], shared)
    return rows[uneven], waves[uneven]


def full_waves_ns(rank_trace: RankTrace) -> tuple[Int64, Int64]:
    """The kernels of `partial_waves`, and how much of each is left if all its waves are full, ns.

    No less than its operations take at half the peak of their unit, or its bytes at that of memory.
    """
    rows, waves = partial_waves(rank_trace)
    dur = rank_trace.dur[rows]
    left = np.maximum(dur * waves / np.ceil(waves), least_ns(rank_trace, rows))
    lost = left < dur  # not of NaN
    return rows[lost], np.ceil(left[lost]).astype(np.int64)


def _shares_sums(name: str) -> bool:
    lower = name.lower()
    return bool(kernel_class(name).split_k) or any(
        word in lower for word in ("splitk", "streamk", "stream_k")
    )
