"""Work of the forward pass that the backward pass does again: activation checkpointing.

Operators of a backward pass work for a node of autograd and make no nodes themselves. Those that do (they
have a sequence number of their own) inside a node are recorded for another pass: the forward pass run again,
if the same operators with the same inputs followed each other there, or the derivative of a derivative.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.operators.calls import Calls, operator_calls
from hta_widgets.analysis.operators.recorded import recorded_inputs
from hta_widgets.arrays import Bool, Int64
from hta_widgets.jit import kernel
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.ordering import distinct, order_in_groups
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.reader.schema import NULL

_NODE: Final = "autograd::engine::evaluate_function"


def recorded_again(rank_trace: RankTrace) -> Int64:
    """Rows of the compute kernels of operators that make nodes inside a node of autograd."""
    calls = operator_calls(rank_trace)
    return _kernels_of(rank_trace, calls, np.flatnonzero(_inside(rank_trace)[1]))


@memoize_per_rank()
def recomputed(rank_trace: RankTrace) -> Int64:
    """Those of `recorded_again` whose operators follow each other as some of the forward pass do."""
    calls = operator_calls(rank_trace)
    in_node, again = _inside(rank_trace)
    if not again.any():
        return np.empty(0, np.int64)
    launches = np.zeros(len(calls.rows), np.bool_)
    launches[calls.owner[calls.owner >= 0]] = True
    launching = np.flatnonzero(launches)
    row = calls.rows[launching]
    launching = launching[order_in_groups(rank_trace.thread[row], rank_trace.start[row])]
    row, kind = calls.rows[launching], _kinds(rank_trace, calls.rows[launching])
    thread = rank_trace.thread[row]
    neighbours = (thread[:-1] == thread[1:]) & (kind[:-1] >= 0) & (kind[1:] >= 0)
    pair = kind[:-1] * (kind.max(initial=0) + 1) + kind[1:]
    of_forward = ~in_node[launching]
    forward = pair[neighbours & of_forward[:-1] & of_forward[1:]]
    equal = neighbours & again[launching[:-1]] & again[launching[1:]] & np.isin(pair, forward)
    found = np.union1d(launching[:-1][equal], launching[1:][equal])
    return _kernels_of(rank_trace, calls, found)


def _kernels_of(rank_trace: RankTrace, calls: Calls, chosen: Int64) -> Int64:
    compute = rank_trace.event_class[calls.work] == EventClass.COMPUTE
    rows: Int64 = calls.work[compute & np.isin(calls.owner, chosen)]
    return rows


def _kinds(rank_trace: RankTrace, rows: Int64) -> Int64:
    """A number for the name and the input shapes of each operator, -1 where the shapes are not recorded."""
    recorded = recorded_inputs(rank_trace)
    shapes = recorded.shapes[recorded.of_row[rows]].astype(np.int64)
    what = rank_trace.name[rows].astype(np.int64) * (int(shapes.max(initial=0)) + 1) + shapes
    return np.where(shapes >= 0, distinct(what)[1], -1)


@memoize_per_rank()
def _inside(rank_trace: RankTrace) -> tuple[Bool, Bool]:
    """Which calls are inside a node of autograd, and which of those are, or are in, one that makes nodes."""
    calls = operator_calls(rank_trace)
    node = np.array([name.startswith(_NODE) for name in rank_trace.names] or [False], np.bool_)
    in_node = node[rank_trace.name[calls.rows]]
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
    makes: Bool = (numbered & forward)[rank_trace.event_id[rows]]
    return makes


@kernel
def _spread(parent: Int64, makes: Bool, in_node: Bool, again: Bool) -> None:
    for call in range(len(parent)):  # callers come first
        caller = parent[call]
        if caller >= 0 and in_node[caller] and not in_node[call]:
            in_node[call] = True
            again[call] = makes[call] or again[caller]
