"""The records that cannot be true as a frame."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from hta_widgets.trace.reader.schema import NULL
from hta_widgets.trace.records.marks import REASONS, Mark

if TYPE_CHECKING:
    from hta_widgets.trace.rank_trace import RankTrace


def records_frame(rank_trace: RankTrace) -> pd.DataFrame:
    """The marked records of a rank, by their place in the file; columns as in `Trace.records`."""
    marked, table = rank_trace.slices.marked, rank_trace.table
    losses = np.flatnonzero(rank_trace.mark >= Mark.WORK_LOST)
    event = np.concatenate([marked.rows.astype(np.int64), rank_trace.event_id[losses].astype(np.int64)])
    row = rank_trace.row_of_event[event]
    is_slice = row >= 0
    mark = np.concatenate([marked.mark, rank_trace.mark[losses]])
    excluded = np.concatenate([marked.excluded, np.zeros(len(losses), np.bool_)])
    times = {
        "recorded_start_ns": table.ints("start_ns")[event],
        "recorded_dur_ns": table.ints("dur_ns")[event],
    }
    times["recorded_start_ns"] = np.where(
        times["recorded_start_ns"] == NULL, NULL, times["recorded_start_ns"] - rank_trace.offset_ns
    )
    start = np.where(is_slice, rank_trace.start[row] if rank_trace.n else NULL, NULL)
    dur = np.where(is_slice, rank_trace.dur[row] if rank_trace.n else NULL, NULL)
    columns = {
        "rank": np.full(len(event), rank_trace.rank, np.int64),
        "event_id": event,
        "name": _texts(table.dictionary("name"), table.codes("name")[event]),
        "category": _texts(table.dictionary("category"), table.codes("category")[event]),
        "mark": pd.array([Mark(code).label for code in mark.tolist()], dtype="str"),
        "reason": pd.array([REASONS[Mark(code)] for code in mark.tolist()], dtype="str"),
        "excluded": excluded,
        **{name: _nullable(values) for name, values in times.items()},
        "start_ns": _nullable(start),
        "dur_ns": _nullable(dur),
    }
    return pd.DataFrame(columns).sort_values("event_id", kind="stable", ignore_index=True)


def _texts(texts: list[str], codes: np.ndarray) -> pd.api.extensions.ExtensionArray:
    return pd.array(["" if code < 0 else texts[code] for code in codes.tolist()], dtype="str")


def _nullable(values: np.ndarray) -> pd.arrays.IntegerArray:
    absent = values == NULL
    return pd.arrays.IntegerArray(np.where(absent, 0, values).astype(np.int64), absent)
