"""The phase of a training step that each call, and the work that it launches, belongs to."""

from __future__ import annotations

import re
from typing import Final

import numpy as np

from hta_widgets.analysis.calls.stacks import PREFIX, stacks
from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.arrays import Bool, Int8, Int32, Int64
from hta_widgets.jit import kernel
from hta_widgets.trace.ordering import rows_with
from hta_widgets.trace.rank_trace import RankTrace

PHASES: Final = ("forward", "backward", "optimizer", "other")
_OPTIMIZER = re.compile(r"^Optimizer\.")
_BACKWARD = re.compile(r"^autograd::engine::evaluate_function|backward ##$")
_FORWARD = re.compile(rf"^{PREFIX}|^## forward ##$|^\w*(DataParallel|FSDP\w*)\.forward$")


class Phases:
    """The phases of a rank.

    The outermost of these calls decides: `Optimizer.*`; `autograd::engine::evaluate_function*` or an
    annotation that ends in `backward ##`; an `nn.Module`'s or data-parallel wrapper's forward, or an operator
    that a backward operator belongs to (by sequence number). What runs in none of them is "other".

    Attributes:
        of: int8 for each row of the rank, the position of its phase in `PHASES`.
        outermost: the rows of the calls that decide.
    """

    def __init__(self, rank_trace: RankTrace) -> None:
        tree = stacks(rank_trace)
        phase_of = np.array([_phase(name) for name in rank_trace.names] or [-1], np.int8)
        own = np.full(rank_trace.n, -1, np.int8)
        own[rank_trace.forward[rank_trace.forward >= 0]] = 0
        rows = rows_with(rank_trace.name, phase_of >= 0)
        own[rows] = phase_of[rank_trace.name[rows]]
        own[rank_trace.is_device] = -1
        self.of: Int8 = np.full(rank_trace.n, len(PHASES) - 1, np.int8)
        decides = np.zeros(rank_trace.n, np.bool_)
        _decide(tree.order, tree.parent, own, len(PHASES) - 1, self.of, decides)
        self.outermost: Int64 = np.flatnonzero(decides)


phases = memoize_per_rank()(Phases)


def _phase(name: str) -> int:
    for number, form in enumerate((_FORWARD, _BACKWARD, _OPTIMIZER)):
        if form.search(name):
            return number
    return -1


@kernel
def _decide(order: Int64, parent: Int32, own: Int8, other: int, of: Int8, decides: Bool) -> None:
    """The phase of each row: that of its caller or, if that is in none (`other`), its own, -1 for none."""
    for i in range(len(order)):
        row = order[i]
        caller = parent[row]
        if caller >= 0 and of[caller] != other:
            of[row] = of[caller]
        elif own[row] >= 0:
            of[row] = own[row]
            decides[row] = True
