"""What a recording would take if one event took no time: a replay."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd

from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.inspect.record import Gone, Replayed
from hta_widgets.analysis.replay.edit import Edit
from hta_widgets.analysis.replay.graph import graph_of
from hta_widgets.analysis.replay.kinds import DEVICE
from hta_widgets.analysis.replay.plan import Plan
from hta_widgets.analysis.replay.quality import quality_of
from hta_widgets.analysis.replay.what_if import replayed
from hta_widgets.trace.rank_trace import RankTrace


def gone(rank_trace: RankTrace, row: int) -> Gone | str:
    """The replay without the time of a row, or why there is none."""
    quality, graph = quality_of(rank_trace), graph_of(rank_trace)
    if quality is None or graph is None:
        return "no device work is recorded, and only the work of devices is replayed"
    if not quality.trusted:
        return f"the replay of this rank cannot be trusted: {quality.reason}"
    if not rank_trace.dur[row]:
        return "it takes no time"
    if rank_trace.is_device[row]:
        if not (graph.row[graph.source[graph.kind == DEVICE]] == row).any():
            return "it is no work of a device, which alone is replayed"
    elif rank_trace.thread[row] not in graph.threads:
        return "nothing on its thread has to do with device work"
    number = int(rank_trace.event_id[row])
    rows = replayed(rank_trace, (Edit(f"event {number}", False, partial(_leave_out, row)),))
    whole = rows["iteration"].isna()
    own = rows[~whole & (rows["iteration"] == int(rank_trace.iteration[row]))]
    return Gone(_replayed(rows[whole]), _replayed(own) if len(own) else None)


def _leave_out(row: int, plan: Plan) -> None:
    graph, rank_trace = plan.graph, plan.rank_trace
    if rank_trace.is_device[row]:
        plan.scale((graph.kind == DEVICE) & (graph.row[graph.source] == row), 0.0)
    else:
        thread = int(np.flatnonzero(graph.threads == rank_trace.thread[row])[0])
        plan.cut(thread, Intervals.union([rank_trace.start[row]], [rank_trace.end[row]]))


def _replayed(rows: pd.DataFrame) -> Replayed:
    first = rows.iloc[0]
    return Replayed(*(int(first[f"{name}_ns"]) for name in ("before", "low", "after", "high")))
