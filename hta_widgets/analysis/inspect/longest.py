"""Which events took longest: device work, or the host's operators where no device was recorded."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from hta_widgets.analysis.core.entry import Analysis
from hta_widgets.analysis.inspect.refs import lane_of
from hta_widgets.engine import checkpoint
from hta_widgets.errors import RECORD_DEVICE, MissingDataError
from hta_widgets.formatting import brief, duration
from hta_widgets.frames import typed_frame
from hta_widgets.kernel_names import short_kernel_name
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.model import Trace
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.scope import Scope

_COLUMNS: Final = {
    "rank": "int64",
    "event_id": "int64",
    "name": "str",
    "event_class": "str",
    "lane": "str",
    "start_ns": "int64",
    "dur_ns": "int64",
}


def longest_events(trace: Trace, scope: Scope | None = None, *, most: int = 100) -> pd.DataFrame:
    """Which events of a scope took longest?

    Kernels, copies and fills of devices are compared; operators of the host only if no selected rank has any
    of those. An event that the scope cuts counts with its whole length.

    Args:
        trace: the job.
        scope: ranks, iterations, time window, streams, names to look at; default everything.
        most: how many at most.

    Returns:
        One row per event, the longest first, of equals the earlier, then by rank and event_id. Columns: rank,
        event_id (int64), name, event_class, lane (str, its stream or thread), start_ns (int64, ns on the
        job's axis), dur_ns (int64, ns).

    Raises:
        MissingDataError: the selected ranks have neither device work nor operators.
        ValueError: `most` is negative.
    """
    if most < 0:
        raise ValueError(f"most must not be negative, unlike {most}")
    scope = scope or Scope()
    ranks = [trace.rank(rank) for rank in trace.ranks_of(scope)]
    on_device = any(_compared(rank_trace, True).any() for rank_trace in ranks)
    if ranks and not on_device and not any(_compared(rank_trace, False).any() for rank_trace in ranks):
        raise MissingDataError("device work and operators", RECORD_DEVICE)
    found: list[dict[str, object]] = []
    for rank_trace in ranks:
        checkpoint()
        rows = rank_trace.rows(scope)
        rows = rows[_compared(rank_trace, on_device)[rows]]
        order = np.lexsort((rank_trace.event_id[rows], rank_trace.start[rows], -rank_trace.dur[rows]))
        found += [_row(rank_trace, int(row)) for row in rows[order[:most]]]
    frame = typed_frame(found, _COLUMNS)
    by = ["dur_ns", "start_ns", "rank", "event_id"]
    return frame.sort_values(by, ascending=[False, True, True, True], ignore_index=True).head(most)


def _compared(rank_trace: RankTrace, on_device: bool) -> npt.NDArray[np.bool_]:
    wanted: npt.NDArray[np.bool_] = rank_trace.event_class == EventClass.HOST_OP
    if on_device:
        wanted = rank_trace.is_device & (rank_trace.event_class != EventClass.SYNC)
    return wanted


def _row(rank_trace: RankTrace, row: int) -> dict[str, object]:
    return {
        "rank": rank_trace.rank,
        "event_id": int(rank_trace.event_id[row]),
        "name": rank_trace.names[rank_trace.name[row]],
        "event_class": EventClass(rank_trace.event_class[row]).label,
        "lane": lane_of(rank_trace, row),
        "start_ns": int(rank_trace.start[row]),
        "dur_ns": int(rank_trace.dur[row]),
    }


def sentence(frame: pd.DataFrame) -> str:
    """The answer in words."""
    if frame.empty:
        return "The selection holds neither device work nor operators."
    first = frame.iloc[0]
    of_host = first["event_class"] == EventClass.HOST_OP.label
    compared, name = ("operators", brief) if of_host else ("device work", short_kernel_name)
    return (
        f"Of {compared}, {name(first['name'])} takes longest: {duration(int(first['dur_ns']))} on rank "
        f"{first['rank']}, event {first['rank']}:{first['event_id']}."
    )


ANALYSIS = Analysis(
    label="Longest events",
    group="Events",
    title="The events that take longest",
    function=longest_events,
    sentence=sentence,
    chart=None,
    requires=("device work and operators",),
)
