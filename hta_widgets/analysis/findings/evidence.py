"""What shows a finding: one event, or the longest stretch of what is lost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.findings.finding import Evidence
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.rank_trace import RankTrace


def evidence_of_event(
    rank_trace: RankTrace, run: int, alone: bool, name: str = "", event: int | None = None
) -> Evidence:
    """That a row of a rank runs, which it is about `alone`; `event`: another one to look at."""
    return Evidence(
        rank=rank_trace.rank if alone else None,
        name=name or rank_trace.names[rank_trace.name[run]],
        event_rank=rank_trace.rank,
        event_id=int(rank_trace.event_id[run if event is None else event]),
        span=(int(rank_trace.start[run]), int(rank_trace.end[run])),
    )


def evidence_of_loss(
    inputs: Inputs, lost: Mapping[int, Intervals], classes: Iterable[EventClass], rank: int | None, name: str
) -> Evidence:
    """The longest stretch of a loss, on its rank, and the device work of these classes that takes most of it.

    Args:
        rank, name: what the finding is about.
    """
    longest = {each: int((time.end - time.start).max()) for each, time in lost.items() if len(time)}
    if not longest:
        return Evidence(rank=rank, name=name)
    of_rank = max(longest, key=lambda each: longest[each])
    time, rank_trace = lost[of_rank], inputs.trace.rank(of_rank)
    at = int((time.end - time.start).argmax())
    start, end = int(time.start[at]), int(time.end[at])
    rows = np.flatnonzero(rank_trace.is_device & np.isin(rank_trace.event_class, list(classes)))
    inside = np.minimum(rank_trace.end[rows], end) - np.maximum(rank_trace.start[rows], start)
    event = int(rank_trace.event_id[rows[int(inside.argmax())]])
    return Evidence(rank=rank, name=name, event_rank=of_rank, event_id=event, span=(start, end))
