"""The host without the profiler's own work, by the time that a step took without the profiler.

The profiler takes some time at the begin and at the end of every event of the host that it records. How much
differs from machine to machine and from run to run, so it is found from the one thing that a recording cannot
show. Where the step says little about it, since it waits for the device, it is what was usual beside an H100.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable
from typing import Final

import numpy as np

from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.replay.graph import Graph, graph_of
from hta_widgets.analysis.replay.kinds import ON_HOST
from hta_widgets.analysis.replay.passes import happens
from hta_widgets.analysis.replay.plan import Plan
from hta_widgets.analysis.replay.windows import replayed_windows
from hta_widgets.arrays import Int64
from hta_widgets.errors import MissingDataError
from hta_widgets.formatting import duration
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.ordering import among
from hta_widgets.trace.rank_trace import RankTrace

_RECORDED: Final = (EventClass.HOST_OP, EventClass.RUNTIME, EventClass.ANNOTATION)
USUAL_NS, MOST_NS = 5_000, 20_000
"""Of an event: 3 to 7 us beside an H100 (docs/measured_savings.md); more than the second is no profiler's."""
NEAR, SAME = 0.05, 0.01
"""By this share of it a step may be longer than was measured, since runs differ; or is as long as it."""


def without_profiler(plan: Plan, step_ns: int) -> None:
    """Take out of the host's time what the profiler took, so that the mean step takes `step_ns`."""
    each = _of_each_event(plan.rank_trace, step_ns)
    edges, events = _events_of_edges(plan.rank_trace, plan.graph)
    chosen = np.zeros(len(plan.weight), np.bool_)
    chosen[edges] = True
    plan.at_most(chosen, _left(plan.graph.weight[edges], events, each))


@memoize_per_rank(last=4)
def _of_each_event(rank_trace: RankTrace, step_ns: int) -> int:
    """What the profiler takes for each event of the host, ns."""
    graph = graph_of(rank_trace)
    assert graph is not None  # what is edited has one
    edges, events = _events_of_edges(rank_trace, graph)
    weight = graph.weight + graph.residual

    def step(each: int) -> float:
        edited = weight.copy()
        edited[edges] -= graph.weight[edges] - _left(graph.weight[edges], events, each)
        return _mean_step(rank_trace, graph, happens(graph.first, graph.source, edited))

    if step(0) <= step_ns:
        return 0
    if (least := step(MOST_NS)) > (1 + NEAR) * step_ns:
        raise MissingDataError(
            "explanation of the time without the profiler",
            "Measure the step of the same program on the same machine, and record with fewer options.",
            f"a step without the profiler took {duration(step_ns)}, and what is recorded takes "
            f"{duration(int(least))} also where the host's events cost nothing to record",
        )
    target = max(step_ns, least)
    enough = _first(lambda each: step(each) <= (1 + SAME) * target)
    too_much = _first(lambda each: step(each) < (1 - SAME) * target)
    return min(max(USUAL_NS, enough), max(too_much - 1, enough))


def _first(fits: Callable[[int], bool]) -> int:
    """The least that fits, if all above do; at most `MOST_NS`."""
    return bisect.bisect_left(range(MOST_NS), True, key=fits)


def _left(weight: Int64, events: Int64, each: int) -> Int64:
    """Of these times with so many begins and ends of events in them."""
    return np.maximum(weight - events * each // 2, np.minimum(weight, 0))


def _mean_step(rank_trace: RankTrace, graph: Graph, time: Int64) -> float:
    """From begin to begin: the last window on a device ends with its own work, not with the next step."""
    windows = replayed_windows(rank_trace, graph, time, "device")
    windows = windows[~rank_trace.iterations["partial"].to_numpy(np.bool_) & (windows >= 0).all(axis=1)]
    if not len(windows):
        raise MissingDataError("whole step", "Record with a schedule, and call profiler.step() in each step.")
    begin, until = windows[0, 0], windows[-1, 0] if len(windows) > 1 else windows[0, 1]
    return float(until - begin) / max(len(windows) - 1, 1)


@memoize_per_rank()
def _events_of_edges(rank_trace: RankTrace, graph: Graph) -> tuple[Int64, Int64]:
    """The edges that take time of the host, and how many events begin and end in the time of each."""
    edges = np.flatnonzero(among(graph.kind, ON_HOST) & (graph.thread >= 0))
    begin = graph.origin_ns + graph.time[graph.source[edges]]
    end = graph.origin_ns + graph.time[graph.target[edges]]
    recorded = ~rank_trace.is_device & among(rank_trace.event_class, _RECORDED)
    events = np.zeros(len(edges), np.int64)
    for index, thread in enumerate(graph.threads.tolist()):
        mine = np.flatnonzero(graph.thread[edges] == index)
        rows = np.flatnonzero(recorded & (rank_trace.thread == thread))
        begins, ends = np.sort(rank_trace.start[rows]), np.sort(rank_trace.end[rows])
        events[mine] += np.searchsorted(begins, end[mine]) - np.searchsorted(begins, begin[mine])
        until, since = (np.searchsorted(ends, at[mine], side="right") for at in (end, begin))
        events[mine] += until - since
    return edges, events
