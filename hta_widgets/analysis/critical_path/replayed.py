"""The critical path after a change: the binding chain of the replay, at replayed times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from hta_widgets.analysis.core.text_columns import stacked
from hta_widgets.analysis.critical_path.chain import NO_THREAD
from hta_widgets.analysis.critical_path.host_time import host_time, pieces_of
from hta_widgets.analysis.critical_path.path import DATA_LOADING
from hta_widgets.analysis.critical_path.segments import (
    DEPENDENCY,
    HOST,
    KERNEL,
    KERNEL_KERNEL,
    LAUNCH_DELAY,
    OPERATOR,
    SYNC,
    Segments,
    some_of,
)
from hta_widgets.analysis.critical_path.table import COLUMNS, table_of
from hta_widgets.analysis.replay import kinds
from hta_widgets.analysis.replay.edit import Edit
from hta_widgets.analysis.replay.passes import ESTIMATE, WHOLE, binding_chain
from hta_widgets.analysis.replay.placement import of_thread
from hta_widgets.analysis.replay.plan import Plan
from hta_widgets.analysis.replay.quality import trusted_ranks
from hta_widgets.analysis.replay.what_if import planned
from hta_widgets.arrays import Bool, Int64
from hta_widgets.engine import checkpoint
from hta_widgets.trace.model import Trace
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.scope import Scope

_ON_DEVICE = {
    kinds.LAUNCH: LAUNCH_DELAY,
    kinds.LAUNCH_FIRST: LAUNCH_DELAY,
    kinds.STREAM: KERNEL_KERNEL,
    kinds.ORPHAN: KERNEL_KERNEL,
    kinds.WAIT: DEPENDENCY,
    kinds.COLLECTIVE: DEPENDENCY,
    kinds.LATE: DEPENDENCY,
    kinds.DEVICE: KERNEL,
    kinds.SYNC: SYNC,
    kinds.COPY: SYNC,
    kinds.QUEUE: SYNC,
}


def replayed_path(trace: Trace, edits: Edit | Sequence[Edit], scope: Scope | None = None) -> pd.DataFrame:
    """What would a rank be waiting for at each instant, after a change?

    The chain of causes of what happens last in the replay of `what_if`, each at its replayed time (the
    estimate), from the first point to the last.

    Args:
        trace: the job.
        edits: the change, or several made together, from the module `edits`; an empty list changes nothing.
        scope: the ranks. The whole recording is always replayed.

    Returns:
        One row per segment, by rank and time, with the columns of `critical_path`; start_ns, end_ns and
        dur_ns are replayed. The segments of a rank have no gaps and add up to the `after_ns` of `what_if`.

    Raises:
        MissingDataError: no selected rank has device work, or the replay of none can be trusted.
    """
    changes = (edits,) if isinstance(edits, Edit) else tuple(edits)
    frames = []
    for rank in trusted_ranks(trace, trace.ranks_of(scope)):
        checkpoint()
        frames.append(path_of(trace.rank(rank), changes))
    return stacked(frames).astype(COLUMNS)


class _Chain(NamedTuple):
    """Binding edges, earliest first."""

    edge: Int64  # int64
    # int64 nodes
    source: Int64
    target: Int64
    # int64 ns, replayed
    begin: Int64
    end: Int64

    def some(self, at: Bool) -> _Chain:
        return _Chain(*(column[at] for column in self))


class _Part(NamedTuple):
    """Segments at replayed times, and when each began as recorded."""

    began: Int64
    segments: Segments


def path_of(rank_trace: RankTrace, edits: tuple[Edit, ...]) -> pd.DataFrame:
    """The rows of `replayed_path` for a rank whose replay is trusted."""
    plan = planned(rank_trace, edits)
    time = plan.replay(ESTIMATE)
    chain = _chain(plan, time)
    graph = plan.graph
    on_host = np.isin(graph.kind[chain.edge], kinds.ON_HOST)
    thread = np.where(on_host, graph.thread[chain.edge], NO_THREAD)
    parts = [_on_device(plan, chain.some(~on_host))]
    for index in np.unique(thread[on_host]).tolist():
        parts.append(_on_thread(rank_trace, plan, time, index, chain.some(thread == index)))
    began = np.concatenate([part.began for part in parts])
    every = Segments(*(np.concatenate(column) for column in zip(*(p.segments for p in parts), strict=True)))
    order = np.flatnonzero(every.start < every.end)
    order = order[np.argsort(every.start[order], kind="stable")]
    some = some_of(every, order)
    # what a thread's call lies in is told by when it was recorded
    frame = table_of(rank_trace, some._replace(start=began[order]), DATA_LOADING)
    start, end = graph.origin_ns + some.start, graph.origin_ns + some.end
    return frame.assign(start_ns=start, end_ns=end, dur_ns=end - start)


def _chain(plan: Plan, time: Int64) -> _Chain:
    """What decides when the last point of a replay happens."""
    graph = plan.graph
    last = len(time) - 1 - int(time[::-1].argmax())
    edge = binding_chain(graph.first, plan.source, plan.weights(ESTIMATE), time, last, WHOLE)[::-1]
    source = plan.source[edge].astype(np.int64)
    # where clocks are skewed a cause may be later than its effect
    begin = np.minimum.accumulate(time[source][::-1])[::-1]
    return _Chain(edge, source, np.append(source[1:], last), begin, np.append(begin[1:], time[last]))


def _on_device(plan: Plan, chain: _Chain) -> _Part:
    """Work, delays and waits, as they are."""
    kind = np.array([_ON_DEVICE.get(kind, HOST) for kind in plan.graph.kind[chain.edge].tolist()], np.int64)
    row = plan.graph.row[chain.target].astype(np.int64)
    thread, inferred = np.full(len(row), NO_THREAD), plan.graph.inferred[chain.edge]
    return _Part(chain.begin, Segments(chain.begin, chain.end, kind, row, thread, inferred))


def _on_thread(rank_trace: RankTrace, plan: Plan, time: Int64, index: int, chain: _Chain) -> _Part:
    """The innermost calls that a thread had open in a step, as recorded, where the replay puts them."""
    graph, line = plan.graph, of_thread(plan, time, index)
    assert line is not None  # a step of the host leads to a point of its thread
    thread = int(graph.threads[index])
    until = graph.origin_ns + graph.time[chain.target]
    since = np.minimum(graph.origin_ns + graph.time[chain.source], until)
    on_thread = np.full(len(since), thread)
    step, began, row, works = pieces_of(host_time(rank_trace), on_thread, since, until)
    first = np.append(True, step[1:] != step[:-1])[: len(step)]
    begin, end = chain.begin[step], chain.end[step]
    start = np.where(first, begin, np.clip(line.starts(began) - graph.origin_ns, begin, end))
    stop = np.where(np.append(first[1:], True)[: len(step)], end, np.append(start[1:], 0)[: len(step)])
    kind = np.where(works, OPERATOR, HOST)
    inferred = graph.inferred[chain.edge][step]
    return _Part(began, Segments(start, stop, kind, row, np.full(len(row), thread), inferred))
