"""Events as a DataFrame: one row per slice, the core columns dense, arguments where the trace has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.reader.schema import ARGUMENT_COLUMNS, NULL, Column
from hta_widgets.trace.reader.table import EventTable
from hta_widgets.trace.records.marks import Mark
from hta_widgets.trace.scope import Scope

CORE = ("correlation", "device", "stream")
MARK_LABELS = [mark.label for mark in Mark]
CLASS_LABELS = [event_class.label for event_class in EventClass]
Rows = npt.NDArray[np.int64]


def events_frame(ranks: Sequence[RankTrace], scope: Scope) -> pd.DataFrame:
    """One row per slice of the ranks within the scope, sorted by rank, start_ns, event_id.

    Columns: rank, event_id (int64), name, category, event_class, pid, tid (category), device, stream
    (Int64), start_ns, end_ns, dur_ns (int64 ns), correlation, launch_id (Int64: event_id of the launching
    call), iteration, parent_id (Int64: event_id of the caller), depth (Int64), mark (category: what cannot be
    true about it, "" for nothing; as in `Trace.records`), then the argument columns of
    `schema.ARGUMENT_COLUMNS` that any of these events has.
    """
    frames = [_of_rank(rank, rank.rows(scope)) for rank in ranks]
    if len(frames) == 1:
        return frames[0]
    if not frames:
        return pd.DataFrame({"rank": np.empty(0, np.int64), "event_id": np.empty(0, np.int64)})
    for column in {str(name) for frame in frames for name in frame if frame[name].dtype == "category"}:
        _share_categories([frame for frame in frames if column in frame], column)
    return pd.concat(frames, ignore_index=True)


def _of_rank(trace: RankTrace, rows: Rows) -> pd.DataFrame:
    event_id = trace.event_id
    columns: dict[str, object] = {
        "rank": np.full(len(rows), trace.rank, np.int64),
        "event_id": event_id[rows].astype(np.int64),
        "name": _categorical(trace.name[rows], trace.names),
        "category": _categorical(trace.category[rows], trace.categories),
        "event_class": _categorical(trace.event_class[rows], CLASS_LABELS),
        "pid": _categorical(trace.pid[rows], trace.pids),
        "tid": _categorical(trace.tid[rows], trace.tids),
        "device": _nullable(trace.device[rows], NULL),
        "stream": _nullable(trace.stream[rows], NULL),
        "start_ns": trace.start[rows],
        "end_ns": trace.end[rows],
        "dur_ns": trace.dur[rows],
        "correlation": _nullable(trace.correlation[rows], NULL),
        "launch_id": _event_ids(trace, trace.launch[rows]),
        "iteration": _nullable(trace.iteration[rows].astype(np.int64), -1),
        "parent_id": _event_ids(trace, trace.parent[rows]),
        "depth": _nullable(trace.depth[rows].astype(np.int64), -1),
        "mark": _categorical(trace.mark[rows], MARK_LABELS),
    }
    place = np.full(trace.table.n, -1, np.int32)  # of each event in the frame
    place[event_id[rows]] = np.arange(len(rows), dtype=np.int32)
    for column in ARGUMENT_COLUMNS:
        if column.name not in CORE and trace.table.has(column.name):
            values = _argument(trace.table, column, place, len(rows))
            if values is not None:
                columns[column.name] = values
    # The arrays are the frame's own; blocks of columns of one type would copy them all once more.
    return pd.DataFrame(columns, copy=False)


def _argument(table: EventTable, column: Column, place: npt.NDArray[np.int32], n: int) -> object | None:
    """The values of a column, put where its events stand in the frame; None if none of these has it."""
    events, values = table.sparse(column.name)
    at = place[events]
    known = (at >= 0) & (~np.isnan(values) if values.dtype.kind == "f" else values != _null(column))
    at, values = at[known], values[known]
    if not len(at):
        return None
    if column.kind == "float":
        floats = np.full(n, np.nan)
        floats[at] = values
        return floats
    if column.kind == "int":
        ints, absent = np.zeros(n, np.int64), np.ones(n, np.bool_)
        ints[at], absent[at] = values, False
        return pd.arrays.IntegerArray(ints, absent)
    texts = table.dictionary(column.name)
    codes = np.full(n, -1, np.min_scalar_type(-len(texts)))
    codes[at] = values
    return _categorical(codes, texts)


def _null(column: Column) -> int:
    return NULL if column.kind in ("int", "float") else -1


def _event_ids(trace: RankTrace, rows: npt.NDArray[np.int32]) -> pd.arrays.IntegerArray:
    found = rows >= 0
    ids = np.where(found, trace.event_id[rows] if trace.n else 0, 0).astype(np.int64)
    return pd.arrays.IntegerArray(ids, ~found)


def _nullable(values: Rows, null: int) -> pd.arrays.IntegerArray:
    absent = values == null
    return pd.arrays.IntegerArray(np.where(absent, 0, values), absent)


def _categorical(codes: npt.NDArray[np.integer], texts: list[str]) -> pd.Categorical[Any]:
    dtype = pd.CategoricalDtype(pd.Index(texts, dtype="str"))
    return pd.Categorical.from_codes(codes, dtype=dtype, validate=False)


def _share_categories(frames: list[pd.DataFrame], column: str) -> None:
    """One set of categories for a column of all ranks, else concatenating would turn it into plain text."""
    texts = pd.Index(
        pd.unique(np.concatenate([frame[column].cat.categories for frame in frames])), dtype="str"
    )
    for frame in frames:
        frame[column] = frame[column].cat.set_categories(texts)
