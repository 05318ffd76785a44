"""The segments of a critical path as a table: their events, and what limits each of them."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pandas as pd

from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.core.text_columns import text_column
from hta_widgets.analysis.critical_path.chain import NO_THREAD
from hta_widgets.analysis.critical_path.host_time import host_time
from hta_widgets.analysis.critical_path.segments import (
    DEPENDENCY,
    HOST,
    KERNEL,
    KERNEL_KERNEL,
    KINDS,
    LAUNCH_DELAY,
    OPERATOR,
    SYNC,
    Segments,
)
from hta_widgets.arrays import Bool, Int64
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.ordering import distinct, rows_with, unique
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.reader.schema import NULL

NO_OPERATOR = "(no operator recorded)"
COLUMNS = {
    "rank": "int64",
    "start_ns": "int64",
    "end_ns": "int64",
    "dur_ns": "int64",
    "kind": "category",
    "event_id": "int64",
    "name": "category",
    "event_class": "category",
    "thread": "category",
    "stream": "Int64",
    "bound_by": "category",
    "inferred": "bool",
}
_BOUND_BY_KIND = {
    SYNC: "sync",
    LAUNCH_DELAY: "kernel_launch_overhead",
    KERNEL_KERNEL: "kernel_kernel_overhead",
    DEPENDENCY: "sync",
}
_BOUND_BY_CLASS = {
    EventClass.COMMUNICATION: "gpu_communication_bound",
    EventClass.MEMORY_COPY: "gpu_memory_bound",
    EventClass.MEMORY_SET: "gpu_memory_bound",
}
LIMITS = (
    "cpu_bound",
    "data_loading",
    "gpu_compute_bound",
    *dict.fromkeys([*_BOUND_BY_CLASS.values(), *_BOUND_BY_KIND.values()]),
)


def table_of(rank_trace: RankTrace, segments: Segments, data_loading: Sequence[str]) -> pd.DataFrame:
    """The answer of `critical_path` for the segments of one rank, by time."""
    start, end, kind, row, thread, inferred = segments
    known = row >= 0
    event_class = np.where(known, rank_trace.event_class[row], len(EventClass))
    no_stream = (thread != NO_THREAD) | (rank_trace.stream[row] == NULL)
    threads, which = distinct(thread)
    return pd.DataFrame(
        {
            "rank": rank_trace.rank,
            "start_ns": start,
            "end_ns": end,
            "dur_ns": end - start,
            "kind": text_column(kind, KINDS),
            "event_id": np.where(known, rank_trace.event_id[row], -1),
            "name": text_column(
                np.where(known, rank_trace.name[row], len(rank_trace.names)),
                [*rank_trace.names, NO_OPERATOR],
            ),
            "event_class": text_column(event_class, [*(each.label for each in EventClass), ""]),
            "thread": text_column(which, [_label(rank_trace, number) for number in threads.tolist()]),
            "stream": pd.Series(rank_trace.stream[row], dtype="Int64").mask(no_stream),
            "bound_by": _bound_by(rank_trace, segments, event_class, data_loading),
            "inferred": inferred,
        }
    )


def _label(rank_trace: RankTrace, thread: int) -> str:
    if thread == NO_THREAD:
        return ""
    pid, tid = divmod(thread, len(rank_trace.tids))
    return f"{rank_trace.pids[pid]}/{rank_trace.tids[tid]}"


def _bound_by(
    rank_trace: RankTrace, segments: Segments, event_class: Int64, data_loading: Sequence[str]
) -> pd.Categorical[str]:
    by_class = np.full(len(EventClass) + 1, LIMITS.index("gpu_compute_bound"))
    by_class[list(_BOUND_BY_CLASS)] = [LIMITS.index(label) for label in _BOUND_BY_CLASS.values()]
    by_kind = np.zeros(len(KINDS), np.int64)
    by_kind[list(_BOUND_BY_KIND)] = [LIMITS.index(label) for label in _BOUND_BY_KIND.values()]
    bound = np.where(segments.kind == KERNEL, by_class[event_class], by_kind[segments.kind])
    loading = np.flatnonzero((segments.kind == OPERATOR) | (segments.kind == HOST))
    loading = loading[_within(rank_trace, segments.thread[loading], segments.start[loading], data_loading)]
    bound[loading] = LIMITS.index("data_loading")
    return text_column(bound, LIMITS)


def _within(rank_trace: RankTrace, thread: Int64, time: Int64, patterns: Sequence[str]) -> Bool:
    """Which (thread, time) lie within a host row whose name matches one of the patterns."""
    within = np.zeros(len(time), np.bool_)
    for number, matching in _matching(rank_trace, tuple(patterns)).items():
        here = np.flatnonzero(thread == number)
        at = np.searchsorted(matching.start, time[here], side="right") - 1
        within[here] = (at >= 0) & (matching.end[at] > time[here])
    return within


@memoize_per_rank(last=2)
def _matching(rank_trace: RankTrace, patterns: tuple[str, ...]) -> dict[int, Intervals]:
    """When each host thread has a call open whose name matches one of the patterns."""
    searches = [re.compile(pattern).search for pattern in patterns]
    named = np.array([any(search(name) for search in searches) for name in rank_trace.names], np.bool_)
    rows = rows_with(rank_trace.name, named)
    if not len(rows):
        return {}
    rows = rows[np.isin(rows, host_time(rank_trace).rows)]
    of_row = rank_trace.thread[rows]
    found = {}
    for number in unique(of_row).tolist():
        mine = rows[of_row == number]
        found[number] = Intervals.union(rank_trace.start[mine], rank_trace.end[mine])
    return found
