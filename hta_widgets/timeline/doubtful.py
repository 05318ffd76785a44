"""What the timeline hatches: slices whose times are estimates, and steps that are left out."""

from __future__ import annotations

from typing import Any

import numpy as np

from hta_widgets.timeline.lanes import Lanes
from hta_widgets.trace.model import Trace
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.records.marks import REASONS, Mark
from hta_widgets.trace.records.vetoes import Veto

_MOST = 5_000
"""The longest ones are sent: of more, a window shows none apart."""


def doubtful(trace: Trace, lanes: Lanes) -> list[dict[str, Any]]:
    """Stretches of the timeline whose records cannot be true.

    Returns:
        `rank`; `lane` of an estimated slice, or None for a step that is left out; `start` and `dur` in ns
        from the job's start; `reason`, a sentence without a full stop.
    """
    # health is kept with the job: columns of ranks whose steps are whole need not be read
    incomplete = trace.health.loc[trace.health["check"] == "incomplete_steps", "rank"]
    left_out = trace.each_with(_left_out, dict.fromkeys(incomplete.tolist()))
    steps = [
        {
            "rank": veto.rank, "lane": None, "start": veto.start_ns, "dur": veto.end_ns - veto.start_ns,
            "reason": f"left out of what is said of steps: {veto.reason}",
        }
        for vetoes in left_out.values() for veto in vetoes
    ]  # fmt: skip
    slices = [each for rank in dict.fromkeys(track.rank for track in lanes.tracks)
              for each in _estimated(trace, lanes, rank)]  # fmt: skip
    return steps[:_MOST] + sorted(slices, key=lambda each: -each["dur"])[:_MOST]


def _left_out(rank_trace: RankTrace, _: None) -> list[Veto]:
    return [veto for veto in rank_trace.vetoes if veto.iteration is not None]


def _estimated(trace: Trace, lanes: Lanes, rank: int) -> list[dict[str, Any]]:
    rank_trace = trace.rank(rank)
    if not rank_trace.events.header.marked:  # then its columns need not be read
        return []
    rows = np.flatnonzero(rank_trace.estimated)
    mark_of = dict(zip(rank_trace.event_id[rows].tolist(), rank_trace.mark[rows].tolist(), strict=True))
    tracks = [track for track in lanes.tracks if track.rank == rank]
    first = int(lanes.offsets[tracks[0].first])
    last = int(lanes.offsets[tracks[-1].first + tracks[-1].lanes])
    found = first + np.flatnonzero(np.isin(lanes.event_id[first:last], [*mark_of]))
    return [
        {
            "rank": rank, "lane": lanes.lane_of(at), "start": int(lanes.start[at]), "dur": int(lanes.dur[at]),
            "reason": f"its times are estimated: {REASONS[Mark(mark_of[int(lanes.event_id[at])])]}",
        }
        for at in found.tolist()
    ]  # fmt: skip
