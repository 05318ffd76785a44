"""Launches of one CUDA graph: each waits for all work of the launch before."""

from __future__ import annotations

from typing import Final

import numpy as np

from hta_widgets.analysis.replay.device_events import DeviceEvents
from hta_widgets.arrays import Int64
from hta_widgets.trace.rank_trace import RankTrace

NONE: Final = np.empty(0, np.int64)


def waits_of_graphs(rank_trace: RankTrace, device: DeviceEvents) -> tuple[Int64, Int64]:
    """(effect, cause) rows: the first work on each stream of a launch, and what ended last of the one before.

    "Only one instance of graphExec may be executing at a time": "Each launch is ordered behind both any
    previous work in stream and any previous launches of graphExec" (CUDA Runtime API, cudaGraphLaunch).
    """
    rows, found = rank_trace.recorded("graph_id")
    if not (found > 0).any():
        return NONE, NONE
    graph = np.zeros(rank_trace.n, np.int64)
    graph[rows] = found
    graph = graph[device.row]
    own = np.flatnonzero((graph > 0) & (device.launched >= 0))
    # a launch after the other, and in it what ends last at its end
    own = own[np.lexsort((device.end[own], device.launched[own], graph[own]))]
    if not len(own):
        return NONE, NONE
    graph, launched = graph[own], device.launched[own]
    begins = np.append(True, (graph[1:] != graph[:-1]) | (launched[1:] != launched[:-1]))
    launch = np.cumsum(begins) - 1
    first = np.flatnonzero(begins)
    before = np.where(graph[first] == graph[first - 1], own[first - 1], -1)
    before[0] = -1
    cause, previous = before[launch], device.previous[own]
    begins_stream = (previous < 0) | (device.launched[previous] != launched)
    known = (cause >= 0) & begins_stream & (cause != previous)
    return device.row[own[known]].astype(np.int64), device.row[cause[known]].astype(np.int64)
