"""The phase of a training step that each call, and the work that it launches, belongs to."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from hta_widgets.analysis.calls.modules import PREFIX
from hta_widgets.analysis.calls.stacks import stacks
from hta_widgets.analysis.calls.tree import owners
from hta_widgets.analysis.core.memoize import memoize_per_rank

if TYPE_CHECKING:
    from hta_widgets.trace.rank_trace import RankTrace

__all__ = ["PHASES", "Phases", "phases"]

Int8 = npt.NDArray[np.int8]
Int64 = npt.NDArray[np.int64]

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
        named = np.array([_phase(name) for name in rank_trace.names] or [-1], np.int8)[rank_trace.name]
        followed = np.zeros(rank_trace.n, np.bool_)
        followed[rank_trace.forward[rank_trace.forward >= 0]] = True
        named[(named < 0) & followed] = 0
        decides = (named >= 0) & (tree.depth >= 0) & ~rank_trace.is_device
        owner = owners(tree, decides)
        self.of: Int8 = np.where(owner >= 0, named[owner], np.int8(len(PHASES) - 1))
        rows = np.flatnonzero(decides)
        self.outermost: Int64 = rows[owner[rows] == rows]


phases = memoize_per_rank()(Phases)


def _phase(name: str) -> int:
    for number, form in enumerate((_FORWARD, _BACKWARD, _OPTIMIZER)):
        if form.search(name):
            return number
    return -1
