"""Driver calls that keep the device idle though there is nothing to wait for: loading code, setting up."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.idle.causes import IdleCauses
from hta_widgets.trace.classify import EventClass

if TYPE_CHECKING:
    from hta_widgets.trace.rank_trace import RankTrace

__all__ = ["LONG_NS", "long_driver_calls"]

LONG_NS = 1_000_000
"""A call of the runtime returns in microseconds unless it waits for the device. One that lasts this long
while the device is idle does something else: it loads a module, creates a context or handle, maps memory."""

_DRIVER = re.compile(r"(?:cuda|hip|cu|musa)[A-Z]")
_WAITS = ("host_sync", "host_busy", "launch_latency")


def long_driver_calls(
    rank_trace: RankTrace, idle: IdleCauses
) -> tuple[npt.NDArray[np.int64], dict[str, Intervals]]:
    """The runtime calls in which the device is idle for a millisecond or more at a time.

    Args:
        rank_trace: the rank.
        idle: its idle time.

    Returns:
        The rows of the calls by start, and the idle time inside them by its cause in `idle`.
    """
    driver = np.array([bool(_DRIVER.match(name)) for name in rank_trace.names], np.bool_)
    calls = (rank_trace.event_class == EventClass.RUNTIME) & driver[rank_trace.name]
    long = np.flatnonzero(calls & (rank_trace.dur >= LONG_NS))
    long = long[np.argsort(rank_trace.start[long], kind="stable")]
    waits = idle.causes["host_sync"] | idle.causes["host_busy"] | idle.causes["launch_latency"]
    within = waits.within_each(np.stack([rank_trace.start[long], rank_trace.end[long]], axis=1))
    rows, spans = [], Intervals.union([], [])
    for row in long[within >= LONG_NS].tolist():
        inside = waits.clip(int(rank_trace.start[row]), int(rank_trace.end[row]))
        if len(inside) and int((inside.end - inside.start).max()) >= LONG_NS:
            rows.append(row)
            spans |= inside
    return np.array(rows, np.int64), {cause: idle.causes[cause] & spans for cause in _WAITS}
