"""Kernels of which another change would make other ones: what limits them now is not judged."""

from __future__ import annotations

from typing import Final

import numpy as np

from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.kernels.classes import MATRIX, kernel_class
from hta_widgets.analysis.operators.chains import chained_ns
from hta_widgets.analysis.operators.recomputed import recomputed
from hta_widgets.analysis.operators.unaligned import unaligned_products
from hta_widgets.analysis.operators.unfused_attention import unfused_attentions
from hta_widgets.arrays import Int64
from hta_widgets.trace.ordering import unique
from hta_widgets.trace.rank_trace import RankTrace

_SLOW_UNITS: Final = ("simt_fp32", "tensor_fp32", "tensor_tf32")
"""In 16 bits a product runs another kernel, of other tiles."""
_MOVES: Final = ("copy", "fill", "layout", "collective")


@memoize_per_rank()
def judged_kernels(rank_trace: RankTrace) -> dict[str, Int64]:
    """Rows of compute kernels by what they do ("gemm", ...), as far as their names say it, by time.

    Left out is what other findings are about: products in fp32 or TF32, attention that is not fused,
    unaligned products, chains of pointwise kernels, recomputation, and kernels that only move data.
    """
    compute = rank_trace.compute_rows
    operation: dict[int, str] = {}
    for code in unique(rank_trace.name[compute]).tolist():
        found = kernel_class(rank_trace.names[code])
        slow = found.operation in MATRIX and found.unit in _SLOW_UNITS
        if found.operation and found.operation not in _MOVES and not slow:
            operation[code] = found.operation
    elsewhere = [
        unfused_attentions(rank_trace).work, unaligned_products(rank_trace)[1], chained_ns(rank_trace)[0],
        recomputed(rank_trace),
    ]  # fmt: skip
    left = compute[~np.isin(compute, np.concatenate(elsewhere))]
    words = sorted(set(operation.values()))
    number = np.full(len(rank_trace.names) + 1, -1, np.int64)
    number[list(operation)] = [words.index(said) for said in operation.values()]
    of = number[rank_trace.name[left]]
    return {word: left[of == at] for at, word in enumerate(words)}
