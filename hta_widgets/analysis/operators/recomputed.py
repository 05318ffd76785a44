"""Work of the forward pass that the backward pass does again: activation checkpointing.

Operators of a backward pass work for a node of autograd and make no nodes themselves. Those that do (they
have a sequence number of their own) inside a node are recorded for another pass: the forward pass run again,
if the same operators with the same inputs followed each other there, or the derivative of a derivative.
Without recorded inputs more of them have to follow each other.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from hta_widgets.analysis.calls.nesting import nest
from hta_widgets.analysis.core.autograd import is_node
from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.idle.causes import named
from hta_widgets.analysis.operators.calls import Calls, operator_calls
from hta_widgets.analysis.operators.recorded import recorded_inputs
from hta_widgets.arrays import Bool, Int64
from hta_widgets.jit import kernel
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.ordering import distinct, order_in_groups, paired
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.reader.schema import NULL

_WITH_SHAPES: Final = 2
_WITHOUT_SHAPES: Final = 5
"""The derivative of a derivative has no such run of the forward pass's operators in their order."""


def recorded_again(rank_trace: RankTrace) -> Int64:
    """Rows of the compute kernels of operators that make nodes inside a node of autograd."""
    calls = operator_calls(rank_trace)
    return _kernels_of(rank_trace, calls, np.flatnonzero(_inside(rank_trace)[1]))


@memoize_per_rank()
def recomputed(rank_trace: RankTrace) -> Int64:
    """Rows of the kernels of those that follow each other as some of the forward pass do."""
    calls = operator_calls(rank_trace)
    launches = np.zeros(len(calls.rows), np.bool_)
    launches[calls.owner[calls.owner >= 0]] = True
    return _kernels_of(rank_trace, calls, _alike(rank_trace, calls, launches))


@memoize_per_rank()
def recomputed_calls(rank_trace: RankTrace, thread: int) -> Int64:
    """The same of a thread that computes itself: rows of the operators that are in no other one."""
    calls = operator_calls(rank_trace)
    row = calls.rows
    whole = np.array([not is_node(name) and "::" in name for name in rank_trace.names] or [False], np.bool_)
    at = np.flatnonzero(whole[rank_trace.name[row]])
    start, end, of = (each[row[at]] for each in (rank_trace.start, rank_trace.end, rank_trace.thread))
    outer = np.zeros(len(row), np.bool_)
    outer[at[nest(start, end, of.astype(np.int64), np.zeros(len(at), np.int8)) < 0]] = True
    found = row[_alike(rank_trace, calls, outer)]
    return found[rank_trace.thread[found] == thread]


def _alike(rank_trace: RankTrace, calls: Calls, chosen: Bool) -> Int64:
    """Which of the chosen calls are recorded again, and follow each other as some of the forward pass do."""
    in_node, again = _inside(rank_trace)
    if not again.any():
        return np.empty(0, np.int64)
    at = np.flatnonzero(chosen)
    row = calls.rows[at]
    at = at[order_in_groups(rank_trace.thread[row], rank_trace.start[row])]
    row, in_node, again = calls.rows[at], in_node[at], again[at]
    kind, length = _kinds(rank_trace, row)
    places = len(at) - length + 1
    if places < 1:
        return np.empty(0, np.int64)
    run, valid, forward, repeated = kind[:places], kind[:places] >= 0, ~in_node[:places], again[:places]
    for step in range(1, length):
        later = slice(step, step + places)
        valid &= (kind[later] >= 0) & (rank_trace.thread[row[later]] == rank_trace.thread[row[:places]])
        run = paired(run, kind[later])
        forward, repeated = forward & ~in_node[later], repeated & again[later]
    found = np.flatnonzero(valid & repeated & np.isin(run, run[valid & forward]))
    return np.unique(at[found[:, None] + np.arange(length)])


def _kernels_of(rank_trace: RankTrace, calls: Calls, chosen: Int64) -> Int64:
    compute = rank_trace.event_class[calls.work] == EventClass.COMPUTE
    return calls.work[compute & np.isin(calls.owner, chosen)]


def _kinds(rank_trace: RankTrace, rows: Int64) -> tuple[Int64, int]:
    """A number for the name and the input shapes of each operator, and how many have to follow each other.

    It is -1 where only the shapes of others are recorded.
    """
    name = rank_trace.name[rows].astype(np.int64)
    if not rank_trace.has_argument("input_dims"):
        return name, _WITHOUT_SHAPES
    recorded = recorded_inputs(rank_trace)
    shapes = recorded.shapes[recorded.of_row[rows]].astype(np.int64)
    what = name * (int(shapes.max(initial=0)) + 1) + shapes
    return np.where(shapes >= 0, distinct(what)[1], -1), _WITH_SHAPES


@memoize_per_rank()
def _inside(rank_trace: RankTrace) -> tuple[Bool, Bool]:
    """Which calls are inside a node of autograd, and which of those are, or are in, one that makes nodes."""
    calls = operator_calls(rank_trace)
    in_node = named(rank_trace, is_node)[calls.rows]
    again = np.zeros(len(in_node), np.bool_)
    _spread(calls.parent, _makes_nodes(rank_trace, calls.rows) & ~in_node, in_node, again)
    return in_node, again


def _makes_nodes(rank_trace: RankTrace, rows: Int64) -> Bool:
    """Which of these operators have a sequence number, and are of no backward pass."""
    numbered, forward = np.zeros((2, rank_trace.table.n), np.bool_)
    event, number = rank_trace.table.sparse("sequence_number")
    numbered[event[number != NULL]] = True
    event, thread = rank_trace.table.sparse("fwd_thread_id")
    forward[event[thread == 0]] = True
    return (numbered & forward)[rank_trace.event_id[rows]]


@kernel
def _spread(parent: Int64, makes: Bool, in_node: Bool, again: Bool) -> None:
    for call in range(len(parent)):  # callers come first
        caller = parent[call]
        if caller >= 0 and in_node[caller] and not in_node[call]:
            in_node[call] = True
            again[call] = makes[call] or again[caller]
