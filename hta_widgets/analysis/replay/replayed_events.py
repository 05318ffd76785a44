"""When would each event happen after a change?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.replay.edit import Edit
from hta_widgets.analysis.replay.passes import ESTIMATE
from hta_widgets.analysis.replay.placement import PLACED, Placed, placed
from hta_widgets.analysis.replay.quality import trusted_ranks
from hta_widgets.analysis.replay.what_if import planned
from hta_widgets.engine import checkpoint
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.model import Trace
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.reader.schema import NULL
from hta_widgets.trace.scope import Scope

_COLUMNS = {
    "rank": "int64",
    "event_id": "int64",
    "name": "str",
    "event_class": "str",
    "stream": "Int64",
    "start_ns": "int64",
    "end_ns": "int64",
    "replayed_start_ns": "int64",
    "replayed_end_ns": "int64",
    "placed": "str",
}


def replayed_events(trace: Trace, edits: Edit | Sequence[Edit], scope: Scope | None = None) -> pd.DataFrame:
    """When would each event happen after a change? What the timeline draws as "what if".

    The times are those of the estimate of `what_if`, of each rank by itself.

    Args:
        trace: the job.
        edits: the change, or several made together, from the module `edits`; an empty list changes nothing.
        scope: the events to report, by their recorded times. The whole recording is always replayed.

    Returns:
        One row per event of the ranks whose replay can be trusted, by rank and recorded start. Columns: rank
        int64; event_id int64, as in `Trace.events`; name, event_class str; stream Int64 (null on the host);
        start_ns, end_ns int64, as recorded; replayed_start_ns, replayed_end_ns int64, after the change (all
        ns on the job's axis); placed str, how that is known: "replayed" (device work, and calls that launch,
        wait or allocate: the points of the replay), "between" (at the same share of the time between two
        points of its thread or stream, not counting time that an edit cuts out) or "elsewhere" (the same
        between points of other threads, since its own has none).

    Raises:
        MissingDataError: no selected rank has device work, or the replay of none can be trusted.
    """
    scope = scope or Scope()
    changes = (edits,) if isinstance(edits, Edit) else tuple(edits)
    frames = []
    for rank in trusted_ranks(trace, trace.ranks_of(scope)):
        checkpoint()
        rank_trace = trace.rank(rank)
        rows = rank_trace.rows(scope)
        rows = rows[np.argsort(rank_trace.start[rows], kind="stable")]
        found = replayed_places(rank_trace, changes)
        stream = pd.Series(rank_trace.stream[rows], dtype="Int64").mask(rank_trace.stream[rows] == NULL)
        labels = np.array([event_class.label for event_class in EventClass])
        frames.append(
            pd.DataFrame(
                {
                    "rank": rank,
                    "event_id": rank_trace.event_id[rows],
                    "name": np.array(rank_trace.names, object)[rank_trace.name[rows]],
                    "event_class": labels[rank_trace.event_class[rows]],
                    "stream": stream,
                    "start_ns": rank_trace.start[rows],
                    "end_ns": rank_trace.end[rows],
                    "replayed_start_ns": found.start[rows],
                    "replayed_end_ns": found.end[rows],
                    "placed": np.array(PLACED)[found.how[rows]],
                }
            )
        )
    return pd.concat(frames, ignore_index=True).astype(_COLUMNS)


@memoize_per_rank(last=2)
def replayed_places(rank_trace: RankTrace, edits: tuple[Edit, ...]) -> Placed:
    """Where the events of a rank whose replay is trusted are under edits."""
    plan = planned(rank_trace, edits)
    return placed(rank_trace, plan, plan.replay(ESTIMATE))
