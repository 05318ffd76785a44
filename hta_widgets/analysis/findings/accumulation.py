"""Gradients that DDP reduces after each of several forward passes of a step, where once would do."""

from __future__ import annotations

import re
from typing import Final

import numpy as np

from hta_widgets.analysis.core.claim import Claim, Text, say
from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.idle.causes import named
from hta_widgets.arrays import Bool, Int64
from hta_widgets.trace.classify import EventClass, is_optimizer_step
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.reader.schema import NULL

FORWARD: Final = re.compile(r"^DistributedDataParallel\.forward$")
ADVICE: Final = (
    "Run all but the last forward and backward pass of a step in model.no_sync(): gradients add up "
    "locally, and are reduced once."
)


def begun(rank_trace: RankTrace, judged: Intervals, chosen: Bool) -> Int64:
    """When these rows begin, of those that begin in the judged time; sorted."""
    start = np.sort(rank_trace.start[chosen])
    return start[judged.holds(start)]


def too_often(inputs: Inputs) -> Text | None:
    """That devices reduce gradients after each pass; None where that is not so, or nothing shows it."""
    if not inputs.any_name(FORWARD):
        return None
    frame = inputs.collectives
    frame = frame[frame["collective"].eq("allreduce").fillna(False)]
    for rank, own in frame.groupby("rank"):
        if own["bytes"].isna().any():
            return None
        columns = (own[name].to_numpy(np.int64).tobytes() for name in ("event_id", "bytes"))
        found = inputs.of(int(str(rank)), _passes_and_calls, *columns)
        if found is not None:
            return in_words(int(str(rank)), *found)
    return None


def in_words(rank: int, passes: int, calls: int) -> Text:
    """How often gradients are reduced in a step of a rank, and how often would do."""
    ranks = (rank,)
    return say(
        " Gradients are reduced after each of the {passes} forward passes of a step. That makes {calls} "
        "calls, where {once} would do.",
        passes=Claim("forward_passes", passes, "count", ranks=ranks),
        calls=Claim("reductions", calls, "count", ranks=ranks),
        once=Claim("reductions_once", max(calls // passes, 1), "count", ranks=ranks),
    )


def _passes_and_calls(inputs: Inputs, rank: int, event_ids: bytes, sizes: bytes) -> tuple[int, int] | None:
    """Of a step with one update: passes that are each followed by equally many bytes of all-reduces."""
    rank_trace, judged, steps = inputs.trace.rank(rank), inputs.judged_time(rank), inputs.judged
    ranges = (rank_trace.event_class == EventClass.ANNOTATION) & (rank_trace.stream == NULL)
    passes = begun(rank_trace, judged, ranges & named(rank_trace, FORWARD.search))
    updates = begun(rank_trace, judged, ranges & named(rank_trace, is_optimizer_step))
    rows = rank_trace.row_of_event[np.frombuffer(event_ids, np.int64)]
    whole = steps and len(updates) == steps and len(passes) >= 2 * steps and not len(passes) % steps
    if not whole or (rank_trace.launch[rows] < 0).any():
        return None
    after = np.searchsorted(passes, rank_trace.start[rank_trace.issuer[rows]], "right")
    moved = np.zeros(len(passes) + 1, np.int64)
    np.add.at(moved, after, np.frombuffer(sizes, np.int64))
    alike = moved[1:] == moved[1]
    return (len(passes) // steps, len(rows) // steps) if moved[1] and alike.all() else None
