"""Which all-reduces are part of a pass through the model, as in tensor parallelism: no gradients."""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd

from hta_widgets.analysis.core.autograd import is_node
from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.arrays import Bool, Int64
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.ordering import distinct, rows_with
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.reader.schema import NULL

_LEAST_PER_STEP: Final = 4
"""Fewer may be losses, norms of gradients or statistics."""
_LEAST_BETWEEN: Final = 3
"""Kernels of a layer between two of them: gradients that are reduced one by one have a division."""


def only_forward(inputs: Inputs) -> bool:
    """Whether passes through a model are recorded, operators included, and none of them is backward."""
    if not inputs.has_operators:
        return False
    kinds = {inputs.recorded(rank, _kind) for rank in inputs.trace.ranks_of(inputs.scope)}
    return kinds <= {"forward", "serving"}


@memoize_per_rank()
def in_passes(inputs: Inputs) -> pd.Index[int]:
    """The rows of `Inputs.collectives` of groups that all-reduce in the forward pass, too, in each step.

    A gradient is reduced in a node of autograd, or behind the last one of a backward pass. A group is told by
    its name and stream; in the forward pass, layers run before each of its all-reduces, and between them.
    """
    frame = inputs.collectives
    frame = frame[(frame["collective"] == "allreduce").fillna(False)]
    if not inputs.has_operators or frame.empty:
        return frame.index[:0]
    keys = [frame["rank"], frame["process_group"].fillna("").astype(str), frame["stream"].fillna(-1)]
    found, event_ids = frame.index[:0], frame["event_id"].to_numpy(np.int64)
    for own in frame.groupby(keys, sort=True).indices.values():
        rank = int(frame["rank"].iloc[own[0]])
        steps = inputs.scope.iterations or inputs.trace.rank(rank).iterations["iteration"]  # or guessed ones
        least = _LEAST_PER_STEP * max(len(steps), 1)
        if len(own) < least:
            continue
        events = event_ids[own].tobytes()
        if inputs.recorded(rank, _reduces_in_forward, least, events):
            found = found.append(frame.index[own])
    return found


def _kind(rank_trace: RankTrace) -> str:
    return rank_trace.recording.kind


def _reduces_in_forward(rank_trace: RankTrace, least: int, event_ids: bytes) -> bool:
    """Whether so many of these all-reduces are launched in the forward passes, with layers between them."""
    rows = rank_trace.row_of_event[np.frombuffer(event_ids, np.int64)].astype(np.int64)
    rows = rows[rank_trace.launch[rows] >= 0]
    launch = rank_trace.issuer[rows].astype(np.int64)
    named = np.array([is_node(name) for name in rank_trace.names] or [False], np.bool_)
    nodes = rows_with(rank_trace.name, named)
    nodes = nodes[rank_trace.event_class[nodes] == EventClass.HOST_OP]
    forward = np.sort(rank_trace.start[launch[_in_forward(rank_trace, launch, named, nodes)]])
    compute = rank_trace.by_launch[rank_trace.event_class[rank_trace.by_launch] == EventClass.COMPUTE]
    launched = np.sort(rank_trace.start[rank_trace.issuer[compute]], kind="stable")  # quick: in order
    before = np.searchsorted(launched, forward)
    ends = np.sort(rank_trace.end[nodes])
    ended = np.append(np.iinfo(np.int64).min, ends)[np.searchsorted(ends, forward, "right")]
    in_layers = before - np.searchsorted(launched, ended) >= _LEAST_BETWEEN
    between = np.diff(before[in_layers])
    return int(in_layers.sum()) >= least and bool(np.median(between) >= _LEAST_BETWEEN)


def _in_forward(rank_trace: RankTrace, launch: Int64, named: Bool, nodes: Int64) -> Bool:
    """Which of these calls lie in no node of autograd, but have some behind them, if their step has any."""
    steps, step = distinct(rank_trace.iteration[nodes])
    last = np.full(len(steps) + 1, NULL)  # of none, behind the steps that have nodes
    np.maximum.at(last, step, rank_trace.start[nodes])
    at = np.searchsorted(steps, rank_trace.iteration[launch])
    at[np.append(steps, NULL)[at] != rank_trace.iteration[launch]] = len(steps)
    before: Bool = (last[at] == NULL) | (rank_trace.start[launch] < last[at])
    caller = rank_trace.parent[launch]
    while (caller >= 0).any():
        of_node = named[rank_trace.name[caller]] & (rank_trace.event_class[caller] == EventClass.HOST_OP)
        before &= (caller < 0) | ~of_node
        caller = np.where(caller >= 0, rank_trace.parent[caller], -1)
    return before
