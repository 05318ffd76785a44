"""Replays of graphs of kernels that hold fewer kernels than they ran, because the profiler lost some.

A replay runs all of its graph each time, so that what is missing from one shows beside the others.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from hta_widgets.arrays import Int64
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.ordering import rows_with

if TYPE_CHECKING:
    from hta_widgets.trace.rank_trace import RankTrace

# of the runtimes and drivers of NVIDIA, AMD and Moore Threads
GRAPH_LAUNCH: Final = re.compile(r"^(?:cuda|hip|cu|musa|mu)GraphLaunch")
# A graph that is known by its number always runs the same, but for a few conditional nodes.
_LEAST_SHARE = 0.9
# Where no number is recorded a graph for a smaller batch may lack some kernels of another.
_LEAST_SHARE_BY_CALL = 0.5
# Small graphs are pieces of a step, and one piece may hold the kernels of another.
_LEAST_KERNELS = 20


@dataclass(frozen=True)
class Replays:
    """Replays of graphs in a file."""

    count: int  # the launches of graphs
    short: int  # those of which most device work was recorded for others of the same graph, not for them
    missing_ns: int  # how much longer the work of those others takes than theirs, in all


@dataclass(frozen=True)
class _Replay:
    """A replay: what launched it, the number of its graph (0: unknown), its kernels, and their time."""

    call: tuple[int, int]
    graph: int
    kernels: tuple[int, ...]
    time_ns: int
    last: bool


def replays_of(rank_trace: RankTrace) -> Replays:
    """The replays of a rank, and those that lack kernels.

    Replays are of one graph if the file gives it the same number; such a replay is short with less than nine
    tenths of the kernels of the fullest. Without numbers, a replay is short if it is the only one with its
    kernels (what comes again is a graph of its own), and at least two equal replays of 20 kernels or more,
    which the same call launches, hold all of them and more than twice as many. Kernels are told apart by
    name, grid and block. Replays after which no other work was launched and recorded may be cut by the end
    of the recording, and count as whole.
    """
    replays = list(_replays(rank_trace))
    equal = Counter((replay.call, replay.kernels) for replay in replays)
    times: dict[tuple[int, ...], list[int]] = {}
    fullest: dict[int, tuple[int, ...]] = {}
    for replay in replays:
        times.setdefault(replay.kernels, []).append(replay.time_ns)
        if len(replay.kernels) > len(fullest.get(replay.graph, ())):
            fullest[replay.graph] = replay.kernels
    known = {
        (call, kernels): Counter(kernels)
        for (call, kernels), count in equal.items()
        if count > 1 and len(kernels) >= _LEAST_KERNELS
    }
    short, missing = 0, 0
    for replay in replays:
        if replay.last:
            continue
        size, whole = len(replay.kernels), None
        if replay.graph:
            whole = fullest[replay.graph]
            whole = whole if size < _LEAST_SHARE * len(whole) else None
        elif equal[replay.call, replay.kernels] == 1:
            own = Counter(replay.kernels)
            others = [
                kernels
                for (call, kernels), counts in known.items()
                if call == replay.call and size < _LEAST_SHARE_BY_CALL * len(kernels) and own <= counts
            ]
            whole = max(others, key=lambda kernels: equal[replay.call, kernels], default=None)
        if whole is not None:
            short += 1
            missing += max(0, int(np.median(times[whole])) - replay.time_ns)
    return Replays(len(replays), short, missing)


def _replays(rank_trace: RankTrace) -> Iterator[_Replay]:
    launching = np.array([bool(GRAPH_LAUNCH.match(text)) for text in rank_trace.names], np.bool_)
    launches = rows_with(rank_trace.name, launching)
    launches = launches[rank_trace.event_class[launches] == EventClass.RUNTIME]
    if not len(launches):
        return
    launched = rank_trace.launched
    latest = int(rank_trace.start[rank_trace.launch[launched]].max(initial=0))
    rows = launched[launching[rank_trace.name[rank_trace.launch[launched]]]]
    rows = rows[np.argsort(rank_trace.launch[rows], kind="stable")]
    kernel = _kernels(rank_trace, rows)
    graph = np.maximum(rank_trace.argument("graph_id")[rows], 0) if rank_trace.table.has("graph_id") else None
    edges = np.searchsorted(rank_trace.launch[rows], np.append(launches, rank_trace.n))
    parent = rank_trace.parent[launches]
    caller = np.where(parent >= 0, rank_trace.name[parent], -1)
    for at, launch in enumerate(launches.tolist()):
        own = slice(edges[at], edges[at + 1])
        yield _Replay(
            (int(rank_trace.thread[launch]), int(caller[at])),
            0 if graph is None else int(graph[own].max(initial=0)),
            tuple(np.sort(kernel[own]).tolist()),
            int(rank_trace.dur[rows[own]].sum()),
            int(rank_trace.start[launch]) >= latest,
        )


def _kernels(rank_trace: RankTrace, rows: Int64) -> Int64:
    """A number for each of these rows, the same for equal names, grids and blocks."""
    code = rank_trace.name[rows].astype(np.int64)
    for column in ("grid", "block"):
        texts = len(rank_trace.table.dictionary(column))
        _, code = np.unique(code, return_inverse=True)
        code = code * (texts + 1) + rank_trace.argument_codes(column)[rows] + 1
    return code
