"""Pauses of the host: no thread that launches device work has an operator or a call of the runtime open.

Python frames may be open: what they do then is seen by no operator. An annotation that holds no operator and
no call tells what its time is for, so it ends a pause, as waiting for the data loader does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.idle.causes import is_data_loading, rows_named
from hta_widgets.arrays import Bool, Int64
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.ordering import among, unique
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.reader.schema import NULL

LEAST_NS: Final = 1_000_000
"""A shorter pause is what Python takes between operators."""

GARBAGE_COLLECTION: Final = "Python GC"
"""How PyTorch names a run of Python's garbage collector, where it was asked to record them."""

_CALLS = (EventClass.HOST_OP, EventClass.RUNTIME)


@dataclass(frozen=True)
class Pauses:
    """The pauses of at least `LEAST_NS`, in order: when, and the row of the call that ends each."""

    when: Intervals
    row: Int64

    def choose(self, chosen: Bool) -> Intervals:
        """When the chosen ones are."""
        return Intervals(self.when.start[chosen], self.when.end[chosen])


@memoize_per_rank()
def pauses_of(rank_trace: RankTrace) -> Pauses:
    """The pauses of a rank up to the last call of the threads that launch.

    The first may precede the first call, from where an annotation around that begins, such as a step.
    """
    ours = _ours(rank_trace)
    rows = np.concatenate([_calls(rank_trace, ours), telling(rank_trace)])
    recorded = Intervals.union(rank_trace.start[rows], rank_trace.end[rows])
    begins = [_first_mark(rank_trace, ours, int(first)) for first in recorded.start[:1]]
    start, end = np.append(np.array(begins, np.int64), recorded.end[:-1]), recorded.start
    long = end - start >= LEAST_NS
    # of what begins together the longest is outermost, and operators are around calls
    place = np.searchsorted(end[long], rank_trace.start[rows])
    rows = rows[np.append(end[long], NULL)[place] == rank_trace.start[rows]]
    kind, begin = rank_trace.event_class[rows], rank_trace.start[rows]
    order = np.lexsort((rank_trace.event_id[rows], kind, -rank_trace.dur[rows], begin))
    ends = np.searchsorted(begin[order], end[long], side="left")
    return Pauses(Intervals(start[long], end[long]), rows[order[ends]])


def _first_mark(rank_trace: RankTrace, ours: Bool, first: int) -> int:
    """When the first annotation around the first call begins; without any, when that call does."""
    marks = ours & (rank_trace.event_class == EventClass.ANNOTATION) & (rank_trace.end > first)
    return int(rank_trace.start[marks].min(initial=first))


@memoize_per_rank()
def collecting(rank_trace: RankTrace) -> Intervals:
    """When Python's garbage collector is recorded to run on a thread that launches."""
    rows = rows_named(rank_trace, GARBAGE_COLLECTION.__eq__)
    rows = rows[rank_trace.event_class[rows] == EventClass.PYTHON]
    rows = rows[np.isin(rank_trace.thread[rows], rank_trace.launching_threads)]
    return Intervals.union(rank_trace.start[rows], rank_trace.end[rows])


def _ours(rank_trace: RankTrace) -> Bool:
    """What the threads that launch device work record."""
    return rank_trace.on_host & np.isin(rank_trace.thread, rank_trace.launching_threads)


def _calls(rank_trace: RankTrace, ours: Bool) -> Int64:
    return np.flatnonzero(ours & among(rank_trace.event_class, _CALLS))


@memoize_per_rank()
def telling(rank_trace: RankTrace) -> Int64:
    """The rows that tell what a thread does that records no operator and no call then.

    These are waits for data, and the annotations without a call inside, iterations aside.
    """
    ours = _ours(rank_trace)
    calls = _calls(rank_trace, ours)
    loops = set(rank_trace.iterations["label"])
    names = rank_trace.names
    loading = np.array([is_data_loading(name) for name in names] or [False], np.bool_)
    loop = np.array([name in loops for name in names] or [False], np.bool_)
    annotations = np.flatnonzero(ours & (rank_trace.event_class == EventClass.ANNOTATION))
    annotations = annotations[~loop[rank_trace.name[annotations]]]
    waits = loading[rank_trace.name[annotations]]
    python = np.flatnonzero(ours & (rank_trace.event_class == EventClass.PYTHON))
    return np.concatenate(
        [
            annotations[waits | ~_holds(rank_trace, annotations, calls)],
            python[loading[rank_trace.name[python]]],
        ]
    )


def _holds(rank_trace: RankTrace, rows: Int64, calls: Int64) -> Bool:
    """Whether a call begins inside each row, on its thread."""
    holds = np.zeros(len(rows), np.bool_)
    for thread in unique(rank_trace.thread[rows]).tolist():
        mine = rank_trace.thread[rows] == thread
        begins = rank_trace.start[calls[rank_trace.thread[calls] == thread]]
        begins.sort(kind="stable")  # quick: files are almost in order
        inside = np.searchsorted(begins, rank_trace.end[rows[mine]]) > np.searchsorted(
            begins, rank_trace.start[rows[mine]]
        )
        holds[mine] = inside
    return holds
