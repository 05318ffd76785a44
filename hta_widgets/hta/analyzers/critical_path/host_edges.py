"""Edges on the host: the order and nesting of calls, and the lock of the runtime."""

from __future__ import annotations

import numpy as np

from hta_widgets.analysis.critical_path.host_time import into_calls
from hta_widgets.arrays import Bool, Int64
from hta_widgets.hta.analyzers.critical_path.clip import Clip
from hta_widgets.hta.analyzers.critical_path.edge_rows import put
from hta_widgets.hta.analyzers.critical_path.model import DEPENDENCY, NO_EVENT, OPERATOR_KERNEL, ROOT
from hta_widgets.hta.analyzers.critical_path.nodes import Numbered
from hta_widgets.jit import kernel
from hta_widgets.trace.classify import EventClass

# Calls that hold the lock of the CUDA runtime: of calls that overlap, one makes progress at a time.
LOCKING = ("cudaHostAlloc", "cudaLaunchKernel", "cudaMemcpyAsync")


def lock_edges(clip: Clip, numbered: Numbered) -> Int64:
    """Order the calls that hold the runtime's lock by their ends; int64[k, 5] as `built.build` documents.

    A call that began while another held the lock has it from that one's end to its own.
    """
    rows = _locking(clip)
    event = clip.rank_trace.event_id[rows].astype(np.int64)
    node = np.concatenate([numbered.start_of[rows], numbered.end_of[rows]])
    order = np.argsort(node, kind="stable")
    return _in_turn(node[order], np.tile(event, 2)[order], numbered.nodes.is_start, numbered.nodes.time)


def stack_edges(clip: Clip, numbered: Numbered) -> Int64:
    """Follow each thread through its calls, into callees and back; int64[k, 5].

    Where the backward pass has a thread of its own it is put on the thread of the forward pass: the two take
    turns.
    """
    rank_trace = clip.rank_trace
    rows = clip.host
    thread = rank_trace.thread[rows]
    forward, backward = _only_thread(clip, "forward"), _only_thread(clip, "autograd")
    if forward >= 0 and backward >= 0 and forward != backward:
        moved = rank_trace.tid[rows] == backward
        width = len(rank_trace.tids)
        thread[moved] = rank_trace.pid[rows[moved]].astype(np.int64) * width + forward
    order = into_calls(rank_trace, rows, thread)
    rows, thread = rows[order], thread[order]
    locking = np.zeros(rank_trace.n, np.bool_)
    locking[_locking(clip)] = True
    nodes = numbered.nodes
    blocking = np.zeros(rank_trace.n, np.bool_)
    has_nodes = rows[numbered.start_of[rows] >= 0]
    blocking[has_nodes] = nodes.is_blocking[numbered.start_of[has_nodes]]
    return _through(
        rows,
        thread,
        rank_trace.start,
        rank_trace.end,
        rank_trace.event_id.astype(np.int64),
        numbered.start_of,
        numbered.end_of,
        nodes.time,
        locking,
        blocking,
    )


def _locking(clip: Clip) -> Int64:
    names = np.array([name in LOCKING for name in clip.rank_trace.names], np.bool_)
    calls = clip.rank_trace.event_class[clip.host] == EventClass.RUNTIME
    return clip.host[calls & names[clip.rank_trace.name[clip.host]]]


def _only_thread(clip: Clip, text: str) -> int:
    """Code of the only tid with operators or annotations whose name contains `text`; -1: none or several."""
    rank_trace = clip.rank_trace
    names = np.array([text in name for name in rank_trace.names], np.bool_)
    kinds = np.isin(rank_trace.event_class[clip.host], (EventClass.HOST_OP, EventClass.ANNOTATION))
    tids = np.unique(rank_trace.tid[clip.host[kinds & names[rank_trace.name[clip.host]]]])
    return int(tids[0]) if len(tids) == 1 and rank_trace.tids[tids[0]] != "0" else -1


@kernel
def _in_turn(node: Int64, event: Int64, is_start: Bool, time: Int64) -> Int64:
    """One call at a time, by their ends. `node`: starts and ends of the calls, ascending."""
    n = len(node)
    edges = np.empty((2 * n, 5), np.int64)
    found, top = 0, 0
    open_calls = np.empty(n, np.int64)
    last_end = -1
    for i in range(n):
        if is_start[node[i]]:
            open_calls[top] = i
            top += 1
            continue
        own = False
        while top:
            top -= 1
            begin = open_calls[top]
            if event[begin] == event[i]:
                own = True
                put(
                    edges,
                    found,
                    node[begin],
                    node[i],
                    OPERATOR_KERNEL,
                    time[node[i]] - time[node[begin]],
                    event[i],
                )
            else:
                put(edges, found, node[begin], node[i], DEPENDENCY, 0, NO_EVENT)
            found += 1
        if not own and last_end >= 0:
            # It waited for the lock until the call before it returned it.
            put(edges, found, last_end, node[i], OPERATOR_KERNEL, time[node[i]] - time[last_end], event[i])
            found += 1
        last_end = node[i]
    return edges[:found]


@kernel
def _through(
    rows: Int64,
    thread: Int64,
    start: Int64,
    end: Int64,
    event: Int64,
    start_of: Int64,
    end_of: Int64,
    time: Int64,
    locking: Bool,
    blocking: Bool,
) -> Int64:
    """Walk each thread's calls in order; `rows` by thread, start, longest first.

    Calls without nodes (annotations, Python frames) are passed through, but time between two calls belongs to
    the innermost one around, whatever it is.
    """
    n = len(rows)
    edges = np.empty((2 * n, 5), np.int64)
    found, top, depth = 0, 0, 0
    stack = np.empty(n, np.int64)
    parent = np.empty(n, np.int64)
    last, last_lock, last_start, last_row, last_parent = -1, False, False, -1, -1
    for i in range(n + 1):
        fresh = i == n or (i > 0 and thread[i] != thread[i - 1])
        while top and (fresh or end[stack[top - 1]] <= start[rows[i]]):
            top -= 1
            row = stack[top]
            if start_of[row] < 0:
                continue
            if not (last_lock and locking[row]):
                kind, weight = OPERATOR_KERNEL, time[end_of[row]] - time[last]
                attributed = event[last_row] if last_start else event[row]
                put(edges, found, last, end_of[row], kind, 0 if blocking[row] else weight, attributed)
                found += 1
            last, last_lock, last_start, last_row, last_parent = (
                end_of[row],
                locking[row],
                False,
                row,
                parent[top],
            )
            depth -= 1
        if i == n:
            break
        if fresh:
            last, last_lock, depth = -1, False, 0
        row = rows[i]
        parent[top] = stack[top - 1] if top else -1
        if start_of[row] >= 0:
            if last >= 0 and not (last_lock and locking[row] and last_start):
                if depth == 0:
                    put(edges, found, last, start_of[row], DEPENDENCY, 0, NO_EVENT)
                else:
                    around = event[last_parent] if last_parent >= 0 else ROOT
                    attributed = event[last_row] if last_start else around
                    weight = time[start_of[row]] - time[last]
                    put(edges, found, last, start_of[row], OPERATOR_KERNEL, weight, attributed)
                found += 1
            last, last_lock, last_start, last_row, last_parent = (
                start_of[row],
                locking[row],
                True,
                row,
                parent[top],
            )
            depth += 1
        stack[top] = row
        top += 1
    return edges[:found]
