"""The least that each kernel could take: its share of the operations and bytes of the operator around it."""

from __future__ import annotations

from typing import Final

import numpy as np

from hta_widgets.analysis.operators.calls import operator_calls
from hta_widgets.analysis.operators.costs import SUMS, operator_costs
from hta_widgets.analysis.operators.leading_kernels import outermost_with_formula
from hta_widgets.arrays import Float64, Int64
from hta_widgets.trace.rank_trace import RankTrace

REACHED: Final = 0.5
"""Of the peak of its unit, what a product that suits the device reaches at least."""


def least_ns(rank_trace: RankTrace, rows: Int64, of_unit: float = REACHED, of_memory: float = 1.0) -> Float64:
    """What each of these kernels takes at these shares of the peak of its unit and of that of memory, ns.

    A formula describes an operator with all that it calls: each of its kernels has a share by its time.
    NaN where there is no formula, no inputs, or no peak.
    """
    calls, costs = operator_calls(rank_trace), operator_costs(rank_trace)
    around = np.append(outermost_with_formula(calls.parent, costs.has_formula), -1)
    call = around[calls.around[rows]]
    described = call >= 0
    sums = costs.of(call[described])
    compute, memory, roofed = (
        sums[:, SUMS.index(name)] for name in ("compute_roof_ns", "memory_roof_ns", "roofed_ns")
    )
    share = np.maximum(compute / of_unit, memory / of_memory) / np.maximum(roofed, 1.0)
    least = np.full(len(rows), np.nan)
    least[described] = np.where(roofed > 0, share, np.nan)
    return least * rank_trace.dur[rows]
