"""Where on the host a change applies: inside calls of a name, always, or while a device waits for it."""

from __future__ import annotations

import re
from collections.abc import Callable
from fnmatch import translate
from functools import lru_cache

import numpy as np

from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.idle.breakdown import CONSECUTIVE_KERNEL_DELAY_NS
from hta_widgets.analysis.idle.causes import idle_causes
from hta_widgets.analysis.replay.plan import Plan
from hta_widgets.arrays import Bool, Int64
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.scope import Scope

STEP = " / "
"""Between the names of a call path, as in those of `operators(by="call_path")`."""

_WILDCARDS = "*?["
_ESCAPED = re.compile(r"\[([*?[])\]")


def matches(pattern: str, name: str) -> bool:
    """Whether a name is one that a pattern (``*``, ``?``, ``[ab]``) means."""
    return bool(_matcher(pattern)(name))


@lru_cache(maxsize=1024)
def _matcher(pattern: str) -> Callable[[str], object]:
    """What a pattern means; translating one takes longer than matching it with every name of a rank.

    Most are names, with what would be a wildcard escaped.
    """
    if not set(_WILDCARDS).intersection(_ESCAPED.sub("", pattern)):
        return _ESCAPED.sub(r"\1", pattern).__eq__
    return re.compile(translate(pattern)).match


def _named_calls(rank_trace: RankTrace, pattern: str) -> Int64:
    """Host rows of this name; of a path of names, those of the last inside calls of the others."""
    *outer, name = pattern.split(STEP)
    rows = _calls(rank_trace, name)
    return _inside_calls(rank_trace, rows, _named_calls(rank_trace, STEP.join(outer))) if outer else rows


def _calls(rank_trace: RankTrace, pattern: str) -> Int64:
    is_meant = _matcher(pattern)
    named = np.array([bool(is_meant(text)) for text in rank_trace.names] or [False], np.bool_)
    return np.flatnonzero(named[rank_trace.name] & rank_trace.on_host)


def _inside_calls(rank_trace: RankTrace, rows: Int64, calls: Int64) -> Int64:
    """Those of the rows that begin while one of the calls is open on their thread; these count, too."""
    kept = np.zeros(len(rows), np.bool_)
    for thread in np.unique(rank_trace.thread[calls]).tolist():
        mine = calls[rank_trace.thread[calls] == thread]
        when = Intervals.union(rank_trace.start[mine], rank_trace.end[mine])
        there = np.flatnonzero(rank_trace.thread[rows] == thread)
        at = np.searchsorted(when.start, rank_trace.start[rows[there]], side="right") - 1
        kept[there] = (at >= 0) & (rank_trace.start[rows[there]] < when.end[at])
    return rows[kept]


def spans(plan: Plan, pattern: str, keep_ns: int = 0) -> dict[int, Intervals]:
    """By thread (index), when calls of this name are open, from `keep_ns` after their begin."""
    rank_trace = plan.rank_trace
    rows = _named_calls(rank_trace, pattern)
    rows = rows[rank_trace.dur[rows] > keep_ns]
    found = {}
    for index, thread in enumerate(plan.graph.threads.tolist()):
        mine = rows[rank_trace.thread[rows] == thread]
        if len(mine):
            found[index] = Intervals.union(rank_trace.start[mine] + keep_ns, rank_trace.end[mine])
    return found


def always(plan: Plan) -> dict[int, Intervals]:
    """By thread (index), all of the recording."""
    graph = plan.graph
    whole = Intervals.union([graph.origin_ns], [graph.origin_ns + graph.extent])
    return dict.fromkeys(range(len(graph.threads)), whole)


def late_launches(plan: Plan) -> Intervals:
    """When devices idle because the host launches too late: `host_busy_ns` of `idle_breakdown`."""
    return idle_causes(plan.rank_trace, Scope(), CONSECUTIVE_KERNEL_DELAY_NS).causes["host_busy"]


def inside(plan: Plan, pattern: str | None) -> Bool:
    """The edges whose call, or whose device work's launch, lies inside a call of this name on its thread."""
    graph, rank_trace = plan.graph, plan.rank_trace
    if pattern is None:
        return np.ones(len(graph.source), np.bool_)
    row = graph.row[graph.target]
    row = np.where((row >= 0) & rank_trace.is_device[row], rank_trace.launch[row], row)
    lies = np.zeros(rank_trace.n + 1, np.bool_)  # of no row: no
    lies[_inside_calls(rank_trace, np.arange(rank_trace.n), _named_calls(rank_trace, pattern))] = True
    return lies[row]
