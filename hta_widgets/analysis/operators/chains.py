"""Chains of pointwise kernels: each reads what the one before it on the stream has written.

One kernel could do the work of a chain and keep in registers what is written and read again. Whether an
operator reads the result of the one before is told by shape and type: tensors have no recorded identity. A
result may also be needed later (a backward pass reads what it saved), so what fusing leaves is a bound.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
import pandas as pd

from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.kernels.classes import kernel_class
from hta_widgets.analysis.operators.calls import operator_calls
from hta_widgets.analysis.operators.categories import category_of
from hta_widgets.analysis.operators.inputs import Inputs, Shape, UnknownInputError, itemsize
from hta_widgets.analysis.operators.pointwise import broadcast
from hta_widgets.analysis.operators.recorded import recorded_inputs
from hta_widgets.arrays import Int32, Int64
from hta_widgets.trace.ordering import distinct, first_of_each, numbered, order_in_groups, unique
from hta_widgets.trace.rank_trace import RankTrace

_COPY: Final = "aten::copy_"
_TRUTH: Final = (
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "logical_and",
    "logical_or",
    "logical_not",
    "isnan",
    "isinf",
)


class _Work(NamedTuple):
    """What a pointwise operator reads (shapes and bytes of an element), and what it writes."""

    read: list[tuple[Shape, float]]
    made: tuple[Shape, float]

    @property
    def bytes(self) -> float:
        return sum(math.prod(shape) * size for shape, size in [*self.read, self.made])

    def saved(self, following: _Work) -> float:
        """The bytes that need not be written and read if the following one is part of the same kernel."""
        shape, size = self.made
        return 2 * math.prod(shape) * size if self.made in following.read else 0.0


class Chains(NamedTuple):
    """The chains of a rank."""

    rows: Int64  # the kernels, chain after chain
    chain: Int64  # number of each one's chain
    left_ns: Int64  # how much of each is left if every chain is one kernel
    names: list[str]  # of each chain those of its kernels, joined with ``|``
    # of each chain what its operators read and write, and how much of it is written and read again
    bytes: Int64
    again: Int64


@memoize_per_rank()
def neighbours(rank_trace: RankTrace) -> tuple[Int64, Int64]:
    """Rows of pointwise kernels, and of those launched next by their thread, on the same stream.

    Only PyTorch's own: those of a compiler are fused.
    """
    rows = rank_trace.launched
    launch = rank_trace.issuer[rows]
    order = order_in_groups(rank_trace.thread[launch], rank_trace.start[launch], rank_trace.start[rows])
    rows, launch = rows[order], launch[order]
    pointwise = np.zeros(len(rank_trace.names) + 1, np.bool_)
    for code in unique(rank_trace.name[rows]).tolist():
        found = kernel_class(rank_trace.names[code])
        pointwise[code] = found.library == "PyTorch" and found.operation in ("elementwise", "copy")
    mine = pointwise[rank_trace.name[rows]]
    place = [rank_trace.stream[rows], rank_trace.device[rows], rank_trace.thread[launch]]
    pair = mine[:-1] & mine[1:] & np.all([at[:-1] == at[1:] for at in place], axis=0)
    return rows[:-1][pair], rows[1:][pair]


def chained_ns(rank_trace: RankTrace, names: str | None = None) -> tuple[Int64, Int64]:
    """The kernels of chains, or of those with these names, and how much of each is left of one kernel, ns."""
    found = chains_of(rank_trace)
    if names is None:
        return found.rows, found.left_ns
    wanted = np.array([each == names for each in found.names] or [False], np.bool_)[found.chain]
    return found.rows[wanted], found.left_ns[wanted]


@memoize_per_rank()
def chains_of(rank_trace: RankTrace) -> Chains:
    """The chains of a rank.

    A chain takes less by the share of its bytes that are written and read again, at the bandwidth that it
    reaches now.
    """
    before, after = neighbours(rank_trace)
    if not len(before):
        return Chains(before, before, before, [], before, before)
    kind, work = _work(rank_trace)
    first, second = kind[before].astype(np.int64), kind[after]
    known = (first >= 0) & (second >= 0)
    before, after, first, second = before[known], after[known], first[known], second[known]
    pairs, which = distinct(first * len(work) + second)
    sides = [divmod(pair, len(work)) for pair in pairs.tolist()]
    saved = np.array([work[left].saved(work[right]) for left, right in sides])
    of_pair = saved[which] if len(saved) else np.zeros(0)
    feeds = of_pair > 0
    before, after, of_pair = before[feeds], after[feeds], of_pair[feeds]
    rows = np.union1d(before, after)
    # a chain begins where no kernel feeds; the next kernel of one is at the place of the one before, plus one
    rows = rows[np.lexsort((rank_trace.start[rows], rank_trace.stream[rows], rank_trace.device[rows]))]
    begins = ~np.isin(rows, after)
    chain = np.cumsum(begins) - 1
    chains = int(begins.sum())
    moved = np.bincount(chain, np.array([each.bytes for each in work])[kind[rows]], chains)
    fed = pd.Series(of_pair, before).reindex(rows, fill_value=0.0).to_numpy(np.float64)
    again = np.bincount(chain, fed, chains)
    left = np.clip(1.0 - again / np.maximum(moved, 1.0), 0.0, 1.0)[chain]
    parts = np.split(rank_trace.name[rows], np.flatnonzero(begins)[1:]) if chains else []
    texts: dict[bytes, str] = {}
    for part in parts:
        if part.tobytes() not in texts:
            texts[part.tobytes()] = "|".join(rank_trace.names[code] for code in part.tolist())
    return Chains(
        rows, chain.astype(np.int64), np.ceil(rank_trace.dur[rows] * left).astype(np.int64),
        [texts[part.tobytes()] for part in parts], moved.astype(np.int64), again.astype(np.int64),
    )  # fmt: skip


def _work(rank_trace: RankTrace) -> tuple[Int32, list[_Work]]:
    """For each row of a pointwise kernel what its operator does, as a place in a list; -1: unknown.

    Operators with several kernels do more than one of them tells.
    """
    calls = operator_calls(rank_trace)
    owner = calls.owner
    once = np.bincount(owner[owner >= 0], minlength=len(calls.rows)) == 1
    chosen = np.flatnonzero(owner >= 0)
    chosen = chosen[once[owner[chosen]]]
    operator = calls.rows[owner[chosen]]
    recorded = recorded_inputs(rank_trace)
    passed = recorded.of_row[operator]
    known = ((recorded.shapes >= 0) & (recorded.types >= 0))[passed]
    which = numbered(rank_trace.name[operator[known]], passed[known])
    example = first_of_each(which)
    work = [_work_of(recorded.of(int(row))) for row in operator[known][example].tolist()]
    place, kept = np.full(len(example) + 1, -1, np.int64), [each for each in work if each]
    place[:-1][[each is not None for each in work]] = np.arange(len(kept))
    kind = np.full(rank_trace.n, -1, np.int32)
    kind[calls.work[chosen[known]]] = place[which]
    return kind, kept


def _work_of(inputs: Inputs) -> _Work | None:
    """What a pointwise operator reads and writes; None if it is none, or that is unknown."""
    tensors = [
        (inputs.shape(at), itemsize(inputs.type(at)))
        for at in range(len(inputs.shapes))
        if inputs.is_tensor(at)
    ]
    if any(math.isnan(size) for _, size in tensors) or not tensors:
        return None
    if inputs.name == _COPY:
        return _Work(tensors[1:2], tensors[0]) if len(tensors) > 1 else None
    if category_of(inputs.name) != "elementwise":
        return None
    if inputs.name.endswith("_"):
        return _Work(tensors, tensors[0])
    try:
        shape = broadcast(shape for shape, _ in tensors)
    except UnknownInputError:
        return None
    size = max((size for sides, size in tensors if sides), default=tensors[0][1])
    is_truth = inputs.name.removeprefix("aten::") in _TRUTH
    return _Work(tensors, (shape, 1.0 if is_truth else size))
