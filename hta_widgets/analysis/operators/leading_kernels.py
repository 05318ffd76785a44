"""Which kernel takes most of the time of a call whose cost is known."""

from __future__ import annotations

import numpy as np

from hta_widgets.analysis.operators.calls import operator_calls
from hta_widgets.analysis.operators.groups import Groups
from hta_widgets.analysis.operators.totals import heaviest
from hta_widgets.arrays import Bool, Int64
from hta_widgets.jit import kernel
from hta_widgets.trace.rank_trace import RankTrace


def leading_kernels(rank_trace: RankTrace, has_formula: Bool) -> Groups:
    """The groups of `operator_calls` by the kernel (copy, fill) with most of their device work.

    Of calls with a formula those are grouped that are in no other such call: a formula describes all that
    happens inside. The others, and those that launched nothing, have the number after the last group's.
    """
    calls = operator_calls(rank_trace)
    around = outermost_with_formula(calls.parent, has_formula)
    owner = np.where(calls.owner >= 0, np.append(around, -1)[calls.owner], -1)
    inside = np.flatnonzero(owner >= 0)
    work = calls.work[inside]
    leading = heaviest(
        owner[inside], rank_trace.name[work].astype(np.int64), rank_trace.dur[work], len(calls.rows),
        len(rank_trace.names),
    )  # fmt: skip
    used = np.unique(leading[leading >= 0])
    group = np.where(leading >= 0, np.searchsorted(used, leading), len(used))
    return Groups(group.astype(np.int64), [rank_trace.names[name] for name in used])


def outermost_with_formula(parent: Int64, has_formula: Bool) -> Int64:
    """For each call the outermost one with a formula around it, itself included; -1 for none."""
    around = np.full(len(parent), -1, np.int64)
    _find_outermost(parent, has_formula, around)
    return around


@kernel
def _find_outermost(parent: Int64, has_formula: Bool, around: Int64) -> None:
    """The outermost call with a formula around each call, itself included; callers come first."""
    for call in range(len(parent)):
        if parent[call] >= 0 and around[parent[call]] >= 0:
            around[call] = around[parent[call]]
        elif has_formula[call]:
            around[call] = call
