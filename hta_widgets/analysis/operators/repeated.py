"""Which operators run a second time, because their results were dropped after the forward pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pandas as pd

from hta_widgets.analysis.calls.phases import PHASES, phases
from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.operators.calls import operator_calls
from hta_widgets.jit import kernel

if TYPE_CHECKING:
    from hta_widgets.trace.rank_trace import RankTrace

__all__ = ["in_backward", "repeated", "tells_recomputation"]

Int64 = npt.NDArray[np.int64]
Bool = npt.NDArray[np.bool_]


@memoize_per_rank()
def in_backward(rank_trace: RankTrace) -> Bool:
    """For each of `operator_calls` whether autograd's backward pass makes it."""
    of: Bool = phases(rank_trace).of[operator_calls(rank_trace).rows] == PHASES.index("backward")
    return of


def tells_recomputation(rank_trace: RankTrace) -> bool:
    """Whether what the backward pass repeats of the forward pass can be told from its own work."""
    return bool((rank_trace.argument("sequence_number") >= 0).any())


@memoize_per_rank()
def repeated(rank_trace: RankTrace) -> Bool:
    """For each of `operator_calls` whether the backward pass repeats it, an operator of the forward pass.

    That is what `torch.utils.checkpoint` does, reentrant or not. Autograd numbers the operators that it will
    differentiate (`Sequence number`), and so those that are repeated, with `Fwd thread id` 0; its backward
    functions run without recording themselves, so that nothing in them has a number of its own. With
    `create_graph=True` they are numbered as well; of these only the ones count that have the name, shapes and
    types of an operator outside the backward pass.
    """
    calls, backward = operator_calls(rank_trace), in_backward(rank_trace)
    rows = calls.rows
    # An absent argument is a negative number.
    numbered = rank_trace.argument("sequence_number")[rows] >= 0
    again = numbered & (rank_trace.argument("fwd_thread_id")[rows] <= 0)
    _inherit(calls.parent, again)
    candidates = np.flatnonzero(backward & again)
    found = np.zeros(len(rows), np.bool_)
    if len(candidates):
        inputs = _inputs(rank_trace, rows)
        found[candidates] = np.isin(inputs[candidates], pd.unique(inputs[~backward]))
    return found


def _inputs(rank_trace: RankTrace, rows: Int64) -> Int64:
    """A number for each operator with its shapes and types."""
    number = rank_trace.name[rows].astype(np.int64)
    for argument in ("input_dims", "input_type"):
        words = len(rank_trace.table.dictionary(argument)) + 1
        number = number * words + rank_trace.argument_codes(argument)[rows] + 1
    return number


@kernel
def _inherit(parent: Int64, holds: Bool) -> None:
    """What holds for a call holds for those in it; callers come first."""
    for call in range(len(parent)):
        if parent[call] >= 0 and holds[parent[call]]:
            holds[call] = True
