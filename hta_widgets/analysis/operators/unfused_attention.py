"""Attention that writes its scores to memory: a product, a softmax over its rows, and a product with that.

One kernel does all of it without the scores ever leaving the chip (FlashAttention, arXiv 2205.14135). It is
recognised by what the operators compute: the softmax has the shape of the first product's result, the second
product that of the softmax, and no other product lies between them on the thread. What `aten::scaled_dot_
product_attention` calls on its "math" path is the same.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.operators.calls import Calls, operator_calls
from hta_widgets.analysis.operators.inputs import Inputs, Shape, UnknownInputError
from hta_widgets.analysis.operators.recorded import RecordedInputs, recorded_inputs
from hta_widgets.arrays import Bool, Int64
from hta_widgets.jit import kernel
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.ordering import among
from hta_widgets.trace.rank_trace import RankTrace

MATH: Final = ("aten::scaled_dot_product_attention", "aten::_scaled_dot_product_attention_math")
"""Operators that are attention as a whole, whatever they call."""

_PRODUCTS: Final = {"aten::bmm": 0, "aten::mm": 0, "aten::baddbmm": 1}
"""Operator -> where its two factors begin among its inputs."""
_SOFTMAX: Final = "aten::_softmax"


@dataclass(frozen=True)
class Attention:
    """One attention: rows of its operators, and its sizes."""

    # rows of the product, the softmax, and the product with the values
    first: int
    softmax: int
    second: int
    math: int  # row of the operator that is all of it, -1 where the program writes it out
    heads: int  # of all sequences together
    # the sizes of the two products
    queries: int
    keys: int
    width: int
    value: int
    dtype: str  # of the elements that are multiplied


@dataclass(frozen=True)
class Attentions:
    """The unfused attentions of a rank."""

    found: tuple[Attention, ...]  # each of them
    work: Int64  # rows of their kernels and copies
    of: Int64  # the attention of each; backward: whether it is of the backward pass
    backward: Bool
    # int64 [spans, 4]: attention, thread, start and end of what the host spends in all operators of each pass
    # but the first: one operator would do
    host: Int64


@memoize_per_rank()
def unfused_attentions(rank_trace: RankTrace) -> Attentions:
    """The attentions of a rank, and the kernels of each; of the backward pass where sequence numbers tell."""
    calls = operator_calls(rank_trace)
    found, begin, end = [], [], []
    free: dict[int, int] = {}
    recorded = recorded_inputs(rank_trace)
    for first, softmax, second in _in_order(rank_trace):
        attention = _attention(rank_trace, calls, recorded, first, softmax, second)
        if attention is None:
            continue
        outer = attention.math if attention.math >= 0 else attention.first
        last = attention.math if attention.math >= 0 else attention.second
        thread, starts = int(rank_trace.thread[outer]), int(rank_trace.start[outer])
        if starts < free.get(thread, starts):
            continue
        free[thread] = int(rank_trace.end[last])
        found.append(attention)
        begin.append(outer)
        end.append(last)
    if not found:
        nothing = np.zeros(0, np.int64)
        return Attentions((), nothing, nothing, np.zeros(0, np.bool_), np.zeros((0, 4), np.int64))
    of = _inside(rank_trace, calls, np.array(begin, np.int64), np.array(end, np.int64))
    around = np.append(calls.around, -1)[rank_trace.forward[calls.rows]]  # -1: no forward call
    of_forward = np.append(of, -1)[around]
    backward = (of < 0) & (of_forward >= 0)
    of = np.where(backward, of_forward, of)
    pass_on(calls.parent, of, backward)
    within = among(rank_trace.event_class[calls.work], (EventClass.COMPUTE, EventClass.MEMORY_COPY))
    chosen = np.flatnonzero((calls.owner >= 0) & within)
    owner = calls.owner[chosen]
    chosen, owner = chosen[of[owner] >= 0], owner[of[owner] >= 0]
    ends = np.array([each.math if each.math >= 0 else each.second for each in found], np.int64)
    host = _after_the_first(rank_trace, calls, found, ends, np.where(backward, of, -1))
    return Attentions(tuple(found), calls.work[chosen], of[owner], backward[owner], host)


def _after_the_first(
    rank_trace: RankTrace, calls: Calls, found: list[Attention], ends: Int64, backward_of: Int64
) -> Int64:
    """What the host spends after the first operator of each attention, and of each backward pass of one."""
    first = np.array([each.first for each in found], np.int64)
    forward = np.stack(
        [np.arange(len(found)), rank_trace.thread[first], rank_trace.end[first], rank_trace.end[ends]], axis=1
    )
    outermost = (backward_of >= 0) & (np.append(backward_of, -1)[calls.parent] < 0)
    of, rows = backward_of[outermost], calls.rows[outermost]
    order = np.lexsort((rank_trace.start[rows], of))
    of, rows = of[order], rows[order]
    later = np.flatnonzero(of[1:] == of[:-1]) + 1
    of, rows = of[later], rows[later]
    spans = np.stack([of, rank_trace.thread[rows], rank_trace.start[rows], rank_trace.end[rows]], axis=1)
    return np.concatenate([forward, spans]).astype(np.int64)


def attention_by_name(rank_trace: RankTrace) -> Int64:
    """Rows of softmaxes between two batched products, whatever their shapes: what may be attention."""
    rows = operator_calls(rank_trace).rows
    found = []
    for first, softmax, second in _in_order(rank_trace):
        products = {rank_trace.names[rank_trace.name[rows[each]]] for each in (first, second)}
        if "aten::mm" not in products:
            found.append(int(rows[softmax]))
    return np.array(found, np.int64)


@memoize_per_rank()
def _in_order(rank_trace: RankTrace) -> list[tuple[int, int, int]]:
    """The calls of each softmax and of the products next to it on its thread."""
    calls = operator_calls(rank_trace)
    kind_of = np.array(
        [1 if name in _PRODUCTS else 2 if name == _SOFTMAX else 0 for name in rank_trace.names] or [0]
    )
    kind = kind_of[rank_trace.name[calls.rows]]
    chosen = np.flatnonzero(kind)
    rows = calls.rows[chosen]
    chosen = chosen[np.lexsort((rank_trace.start[rows], rank_trace.thread[rows]))]
    thread = rank_trace.thread[calls.rows[chosen]]
    kind = kind[chosen]
    middle = np.flatnonzero((kind[:-2] == 1) & (kind[1:-1] == 2) & (kind[2:] == 1)) + 1
    middle = middle[(thread[middle - 1] == thread[middle]) & (thread[middle + 1] == thread[middle])]
    return [(int(chosen[at - 1]), int(chosen[at]), int(chosen[at + 1])) for at in middle.tolist()]


def _attention(
    rank_trace: RankTrace, calls: Calls, recorded: RecordedInputs, first: int, softmax: int, second: int
) -> Attention | None:
    """What these three calls compute, if that is attention."""
    row = [int(calls.rows[call]) for call in (first, softmax, second)]
    scores, rates, mixed = (recorded.of(each) for each in row)
    try:
        left, right = _factors(scores)
        shares, values = _factors(mixed)
        shape = rates.shape(0)
    except UnknownInputError:
        return None
    made = (*left[:-1], right[-1])
    equal = math.prod(shape) == math.prod(made) == math.prod(shares)
    if not equal or shape[-2:] != made[-2:] or shares[-2:] != made[-2:] or not _by_row(rates, len(shape)):
        return None
    return Attention(
        first=row[0],
        softmax=row[1],
        second=row[2],
        math=_whole(rank_trace, calls, (first, softmax, second)),
        heads=math.prod(made[:-2]),
        queries=made[-2],
        keys=made[-1],
        width=left[-1],
        value=values[-1],
        dtype=scores.type(_PRODUCTS[scores.name]),
    )


def _factors(inputs: Inputs) -> tuple[Shape, Shape]:
    at = _PRODUCTS[inputs.name]
    left, right = inputs.shape(at), inputs.shape(at + 1)
    if len(left) not in (2, 3) or left[:-2] != right[:-2] or left[-1] != right[-2]:
        raise UnknownInputError
    return left, right


def _by_row(softmax: Inputs, dims: int) -> bool:
    """Whether it is over the last dimension, as far as that is recorded."""
    try:
        return softmax.ints(1)[0] in (-1, dims - 1)
    except UnknownInputError:
        return True


def _whole(rank_trace: RankTrace, calls: Calls, parts: tuple[int, int, int]) -> int:
    """The row of the outermost operator that is attention and holds all the parts, -1 for none."""
    around = []
    for call in parts:
        outer, above = -1, int(calls.parent[call])
        while above >= 0:
            if rank_trace.names[rank_trace.name[calls.rows[above]]] in MATH:
                outer = int(calls.rows[above])
            above = int(calls.parent[above])
        around.append(outer)
    return around[0] if len(set(around)) == 1 else -1


def _inside(rank_trace: RankTrace, calls: Calls, begin: Int64, end: Int64) -> Int64:
    """For each call the span, from the begin of a row to the end of one, that it starts in; -1: none."""
    of = np.full(len(calls.rows), -1, np.int64)
    for thread in np.unique(rank_trace.thread[begin]).tolist():
        spans = np.flatnonzero(rank_trace.thread[begin] == thread)
        spans = spans[np.argsort(rank_trace.start[begin[spans]], kind="stable")]
        mine = np.flatnonzero(rank_trace.thread[calls.rows] == thread)
        start = rank_trace.start[calls.rows[mine]]
        at = np.searchsorted(rank_trace.start[begin[spans]], start, side="right") - 1
        inside = (at >= 0) & (start < rank_trace.end[end[spans[at]]])
        of[mine[inside]] = spans[at[inside]]
    return of


@kernel
def pass_on(parent: Int64, of: Int64, backward: Bool) -> None:
    """Give what calls belong to also to those in them; callers come first."""
    for call in range(len(parent)):
        caller = parent[call]
        if caller >= 0 and of[call] < 0:
            of[call], backward[call] = of[caller], backward[caller]
