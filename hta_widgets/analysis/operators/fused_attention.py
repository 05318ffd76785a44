"""How long unfused attention would take in one kernel for each pass, at half the peak of the device."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.kernels.peaks import peaks_of_rank
from hta_widgets.analysis.kernels.units import UNITS
from hta_widgets.analysis.operators.calls import operator_calls
from hta_widgets.analysis.operators.inputs import itemsize
from hta_widgets.analysis.operators.roofs import SIMT, Roofs, call_units, roofs_of
from hta_widgets.analysis.operators.unfused_attention import Attention, unfused_attentions
from hta_widgets.arrays import Int64
from hta_widgets.trace.rank_trace import RankTrace

_HALF: Final = ("float16", "bfloat16")
_REACHED: Final = 0.5
"""Of the peak of its unit, what fused attention of long sequences reaches (arXiv 2307.08691: up to 0.73)."""
_LEAST_NS: Final = 5_000
"""No fused kernel is taken to be shorter: what starts and ends a kernel takes microseconds."""


def fused_ns(rank_trace: RankTrace) -> tuple[Int64, Int64]:
    """The kernels of unfused attention, and how much of each is left if its attention is fused, ns.

    A fused kernel takes as long as its operations at half the peak of its unit, or as its bytes at that of
    memory. None are left out where the peaks are unknown, or no fused kernel takes the type.
    """
    return _fused_ns(rank_trace, roofs_of(peaks_of_rank(rank_trace)))


def replaced_on_host(rank_trace: RankTrace) -> dict[int, Intervals]:
    """When each thread of the host is in operators that the fused ones of `fused_ns` replace."""
    attentions = unfused_attentions(rank_trace)
    fused = np.unique(attentions.of[np.isin(attentions.work, fused_ns(rank_trace)[0])])
    spans = attentions.host[np.isin(attentions.host[:, 0], fused)]
    return {
        thread: Intervals.union(spans[mine := spans[:, 1] == thread, 2], spans[mine, 3])
        for thread in np.unique(spans[:, 1]).tolist()
    }


@memoize_per_rank(last=2)
def _fused_ns(rank_trace: RankTrace, roofs: Roofs | None) -> tuple[Int64, Int64]:
    attentions = unfused_attentions(rank_trace)
    none = np.zeros(0, np.int64)
    if roofs is None or not len(attentions.work):
        return none, none
    part = attentions.of * 2 + attentions.backward
    dur = rank_trace.dur[attentions.work]
    taken = np.bincount(part, dur, 2 * len(attentions.found)).astype(np.int64)
    least = np.array(
        [
            _least_ns(rank_trace, roofs, attention, backward)
            for attention in attentions.found
            for backward in (False, True)
        ]
    )
    share = np.minimum(least / np.maximum(taken, 1), 1.0)[part]
    known = share < 1.0  # not of NaN
    return attentions.work[known], np.ceil(dur[known] * share[known]).astype(np.int64)


def _least_ns(rank_trace: RankTrace, roofs: Roofs, attention: Attention, backward: bool) -> float:
    if attention.dtype in _HALF:
        unit = UNITS.index("tensor_16bit")
    elif attention.dtype == "float32":
        unit = _unit_of(rank_trace, attention.first)
    else:
        return math.nan
    flops, moved = _cost(attention, backward)
    speed = float(roofs.flops_per_ns(np.array([unit]))[0])
    return max(flops / (_REACHED * speed), moved / roofs.memory_gb_s, _LEAST_NS)


def _unit_of(rank_trace: RankTrace, row: int) -> int:
    unit = int(call_units(rank_trace)[operator_calls(rank_trace).around[row]])
    return unit if unit >= 0 else SIMT


def _cost(attention: Attention, backward: bool) -> tuple[float, float]:
    """Operations and bytes of the fused kernel, as in `attention`, as if nothing were masked."""
    pairs = attention.heads * attention.queries * attention.keys
    read = attention.heads * (
        attention.queries * attention.width + attention.keys * (attention.width + attention.value)
    )
    made = attention.heads * attention.queries * attention.value
    size = itemsize(attention.dtype)
    if backward:
        return 2.0 * pairs * (3 * attention.width + 2 * attention.value), size * 2 * (read + made)
    return 2.0 * pairs * (attention.width + attention.value), size * (read + made)
