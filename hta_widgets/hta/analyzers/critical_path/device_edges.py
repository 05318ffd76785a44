"""Edges of device work: its own time, launches, the order on a stream, and synchronisation."""

from __future__ import annotations

import numpy as np

from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.arrays import Bool, Int64
from hta_widgets.hta.analyzers.critical_path.clip import Clip
from hta_widgets.hta.analyzers.critical_path.edge_rows import put
from hta_widgets.hta.analyzers.critical_path.model import (
    KERNEL_KERNEL,
    LAUNCH_DELAY,
    NO_EVENT,
    OPERATOR_KERNEL,
    SYNC,
)
from hta_widgets.hta.analyzers.critical_path.nodes import Numbered
from hta_widgets.jit import inline, kernel
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.waits import (
    CONTEXT_SYNC,
    EVENT_SYNC,
    STREAM_SYNC,
    STREAM_WAIT,
    stream_waits,
    wait_sources,
)

# HTA's: a longer gap on a stream has a cause that the recording does not show.
LONGEST_GAP_NS = 1_500_000
_SYNCS = {STREAM_WAIT: 1, EVENT_SYNC: 2, STREAM_SYNC: 3, CONTEXT_SYNC: 4}
WORK, WAIT, EVENT, STREAM, CONTEXT = 0, 1, 2, 3, 4


def device_edges(clip: Clip, numbered: Numbered, causal: bool) -> Int64:
    """Go through device work and waits in order of time; int64[k, 5] as `built.build` documents.

    Args:
        causal: add an edge without weight from every launch to its work, where there is none with weight.
    """
    rank_trace = clip.rank_trace
    codes = np.array([_SYNCS.get(name, -1) for name in rank_trace.names], np.int64)
    sync = clip.sync[(codes[rank_trace.name[clip.sync]] > 0) & (clip.call[clip.sync] >= 0)]
    rows = np.concatenate([sync, clip.device])
    kind = np.concatenate([codes[rank_trace.name[sync]], np.zeros(len(clip.device), np.int64)])
    # A wait counts when it is over: what started meanwhile is what it waited for.
    when = np.where(kind == WORK, rank_trace.start[rows], rank_trace.end[rows])
    order = np.lexsort((rows, kind == WORK, when))
    rows, kind = rows[order], kind[order]
    places, lane = np.unique(
        np.stack([rank_trace.device[rows], rank_trace.stream[rows]], axis=1), axis=0, return_inverse=True
    )
    source = wait_sources(rank_trace)
    effect, cause = stream_waits(rank_trace, own_thread=True)
    held = np.full(rank_trace.n, -1, np.int64)
    held[effect] = cause  # of several waits before one launch the last call counts, as in HTA
    return _in_order(
        rows,
        kind,
        lane.reshape(-1).astype(np.int64),
        places[:, 0].astype(np.int64),
        clip.call,
        source,
        held,
        launched_onto_idle(rank_trace),
        numbered.start_of,
        numbered.end_of,
        numbered.nodes.time,
        rank_trace.start,
        rank_trace.event_id.astype(np.int64),
        causal,
    )


@memoize_per_rank()
def launched_onto_idle(rank_trace: RankTrace) -> Bool:
    """For each row whether it is device work that was launched when nothing was queued on its stream, and
    that started before anything more was.

    The queue of a stream holds what was launched onto it and has not started. All work of one launch (a
    graph's) is queued at once. Kept as long as the rank is.
    """
    idle = np.zeros(rank_trace.n, np.bool_)
    work = rank_trace.launched
    place = np.stack([rank_trace.device[work], rank_trace.stream[work]], axis=1)
    for key in np.unique(place, axis=0):
        rows = work[(place == key).all(axis=1)]
        launch = rank_trace.launch[rows]
        launched_at, started_at = rank_trace.start[launch], rank_trace.start[rows]
        launches, starts = np.sort(launched_at), np.sort(started_at)
        _, which, together = np.unique(launch, return_inverse=True, return_counts=True)
        siblings = together[which]
        at_launch = np.searchsorted(launches, launched_at, "right") - np.searchsorted(
            starts, launched_at, "left"
        )
        at_start = np.searchsorted(launches, started_at, "right") - np.searchsorted(
            starts, started_at, "right"
        )
        by_launch = np.lexsort((rows, started_at, launch))
        nth = np.empty(len(rows), np.int64)
        first = np.searchsorted(launch[by_launch], launch[by_launch])
        nth[by_launch] = np.arange(len(rows)) - first
        idle[rows] = (at_launch == siblings) & (at_start == siblings - 1 - nth)
    return idle


@inline
def _with_room(edges: Int64, found: int) -> Int64:
    """The edges, or a longer copy of those found if there is no room for four more."""
    if found + 4 <= len(edges):
        return edges
    larger = np.empty((2 * len(edges), 5), np.int64)
    for edge in range(found):
        for column in range(5):
            larger[edge, column] = edges[edge, column]
    return larger


@kernel
def _in_order(
    rows: Int64,
    kind: Int64,
    lane: Int64,
    gpu: Int64,
    call: Int64,
    source: Int64,
    held: Int64,
    onto_idle: Bool,
    start_of: Int64,
    end_of: Int64,
    time: Int64,
    start: Int64,
    event: Int64,
    causal: bool,
) -> Int64:
    edges = np.empty((4 * len(rows) + 16, 5), np.int64)
    found = 0
    last = np.full(len(gpu), -1, np.int64)  # end node of the last work on each stream
    last_row = np.full(len(gpu), -1, np.int64)
    for i in range(len(rows)):
        row, place = rows[i], lane[i]
        if kind[i] != WORK:
            returns = end_of[call[row]]
            if returns < 0 or kind[i] == WAIT:
                continue
            if kind[i] == EVENT:
                if source[row] >= 0 and end_of[source[row]] >= 0:
                    put(edges, found, end_of[source[row]], returns, SYNC, 0, NO_EVENT)
                    found += 1
                continue
            for other in range(len(gpu)):
                waits = other == place if kind[i] == STREAM else gpu[other] == gpu[place]
                if waits and last[other] >= 0:
                    edges = _with_room(edges, found)
                    put(edges, found, last[other], returns, SYNC, 0, NO_EVENT)
                    found += 1
            continue
        edges = _with_room(edges, found)
        begin, finish = start_of[row], end_of[row]
        put(edges, found, begin, finish, OPERATOR_KERNEL, time[finish] - time[begin], event[row])
        found += 1
        awaited = end_of[held[row]] if held[row] >= 0 else -1
        if awaited >= 0:
            put(edges, found, awaited, begin, SYNC, 0, NO_EVENT)
            found += 1
        launched_at, launch_node = start[call[row]], start_of[call[row]]
        previous = last[place]
        delayed = onto_idle[row] and launch_node >= 0
        delayed = delayed and (previous < 0 or time[previous] < launched_at)
        delayed = delayed and (awaited < 0 or time[awaited] < launched_at)
        if delayed:
            put(edges, found, launch_node, begin, LAUNCH_DELAY, time[begin] - time[launch_node], NO_EVENT)
            found += 1
        elif (
            previous >= 0
            and time[begin] - time[previous] < LONGEST_GAP_NS
            and (awaited < 0 or time[awaited] < time[previous])
        ):
            weight = time[begin] - time[previous]
            put(edges, found, previous, begin, KERNEL_KERNEL, weight, event[last_row[place]])
            found += 1
        if causal and not delayed and launch_node >= 0:
            put(edges, found, launch_node, begin, LAUNCH_DELAY, 0, NO_EVENT)
            found += 1
        last[place], last_row[place] = finish, row
    return edges[:found]
