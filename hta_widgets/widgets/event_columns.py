"""The columns of an events table, read for a page of rows or for all of them.

A page is read in microseconds per column: from arrays that are aligned with the rank's rows, or by looking
its few events up among those that have the argument.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hta_widgets.arrays import Bool, Int64
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.model import Trace
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.reader.schema import ARGUMENT_COLUMNS, NULL
from hta_widgets.trace.records.marks import Mark

DEFAULT_COLUMNS = (
    "rank", "name", "event_class", "track", "start_ns", "dur_ns", "iteration", "correlation",
)  # fmt: skip

_CLASSES = [event_class.label for event_class in EventClass]
_MARKS = [mark.label for mark in Mark]
_ARGUMENTS = {
    column.name: column
    for column in ARGUMENT_COLUMNS
    if column.name not in ("correlation", "device", "stream")
}
# An argument that few events have is looked up; above this share, one full column is cheaper.
_FEW = 16


@dataclass(frozen=True)
class Numbers:
    """int64 or float64 data; values marked `missing` are void."""

    data: NDArray[Any]
    missing: Bool

    def series(self) -> pd.Series[Any]:
        """As in `Trace.events`: float64 with nan, or a nullable integer."""
        if self.data.dtype.kind == "f":
            return pd.Series(self.data)
        return pd.Series(pd.arrays.IntegerArray(np.where(self.missing, 0, self.data), self.missing))


@dataclass(frozen=True)
class Texts:
    """Codes into texts, -1 for none."""

    codes: NDArray[np.integer[Any]]
    texts: Sequence[str]

    def series(self) -> pd.Series[Any]:
        """The texts as objects, None where there is none."""
        values = [self.texts[code] if code >= 0 else None for code in self.codes.tolist()]
        return pd.Series(values, dtype=object)


Values: TypeAlias = Numbers | Texts
Read = Callable[[RankTrace, Int64], Values]


def read(rank: RankTrace, name: str, rows: Int64) -> Values:
    """The values of a column for some rows of a rank; no value where the rank has no such argument."""
    reader = _CORE.get(name)
    return reader[0](rank, rows) if reader else _argument(rank, name, rows)


def available_columns(trace: Trace) -> list[dict[str, str]]:
    """`[{name, title, type}]`: the columns of this trace's events, their meaning, and "text" or "number"."""
    core = [{"name": name, "title": title, "type": type_} for name, (_, title, type_) in _CORE.items()]
    ranks = [trace.rank(number) for number in trace.ranks]
    present = {name for rank in ranks for name in _present(rank)}
    return core + [
        {"name": name, "title": column.doc, "type": "text" if is_text(name) else "number"}
        for name, column in _ARGUMENTS.items()
        if name in present
    ]


def _present(rank: RankTrace) -> list[str]:
    """The arguments that at least one slice of the rank has; other events have further ones."""
    slices = np.zeros(rank.table.n, np.bool_)
    slices[rank.event_id] = True
    arguments = [name for name in rank.table.columns if name in _ARGUMENTS]
    return [name for name in arguments if slices[rank.table.sparse(name)[0]].any()]


def _argument(rank: RankTrace, name: str, rows: Int64) -> Values:
    kind, ids = _ARGUMENTS[name].kind, rank.event_id[rows]
    if kind in ("text", "json"):
        return Texts(_gather(rank, name, ids, rank.table.codes, -1), rank.table.dictionary(name))
    if kind == "float":
        floats = _gather(rank, name, ids, rank.table.floats, np.nan)
        return Numbers(floats, np.isnan(floats))
    return _numbers(_gather(rank, name, ids, rank.table.ints, NULL))


def _gather(
    rank: RankTrace, name: str, ids: NDArray[np.int32], full: Callable[[str], NDArray[Any]], null: float
) -> NDArray[Any]:
    table = rank.table
    if name in table.dense_columns or len(ids) > table.n // _FEW:
        return full(name)[ids]
    having, values = table.sparse(name)
    if not len(having):
        return np.full(len(ids), null)
    at = np.minimum(np.searchsorted(having, ids), len(having) - 1)
    return np.where(having[at] == ids, values[at], null)


def _numbers(values: NDArray[Any], null: int = NULL) -> Numbers:
    return Numbers(values.astype(np.int64), values == null)


def _all(values: NDArray[Any]) -> Numbers:
    return Numbers(values.astype(np.int64), np.zeros(len(values), np.bool_))


def _event_ids(rank: RankTrace, rows: NDArray[np.int32]) -> Numbers:
    found = rows >= 0
    ids = rank.event_id[np.maximum(rows, 0)].astype(np.int64) if rank.n else np.empty(0, np.int64)
    return Numbers(ids, ~found)


def _track(rank: RankTrace, rows: Int64) -> Texts:
    """ "stream 7" where an event has a stream, else its thread: streams by number, then threads by theirs."""
    stream = rank.stream[rows]
    on_stream = stream != NULL
    code, streams = pd.factorize(stream[on_stream], sort=True)
    texts = [f"stream {number}" for number in streams.tolist()]
    codes = rank.tid[rows].astype(np.int64) + len(texts)
    codes[on_stream] = code
    return Texts(codes, [*texts, *(f"thread {tid}" if tid.isdecimal() else tid for tid in rank.tids)])


_CORE: dict[str, tuple[Read, str, str]] = {
    "rank": (lambda r, rows: _all(np.full(len(rows), r.rank)), "rank", "number"),
    "name": (lambda r, rows: Texts(r.name[rows], r.names), "name", "text"),
    "event_class": (lambda r, rows: Texts(r.event_class[rows], _CLASSES), "kind of work", "text"),
    "track": (_track, "device stream, or host thread", "text"),
    "start_ns": (lambda r, rows: _all(r.start[rows]), "start, from the job's start", "number"),
    "end_ns": (lambda r, rows: _all(r.end[rows]), "end, from the job's start", "number"),
    "dur_ns": (lambda r, rows: _all(r.dur[rows]), "duration", "number"),
    "iteration": (lambda r, rows: _numbers(r.iteration[rows], -1), "iteration", "number"),
    "correlation": (
        lambda r, rows: _numbers(r.correlation[rows]),
        "ties a device event to the host call that launched it",
        "number",
    ),
    "category": (lambda r, rows: Texts(r.category[rows], r.categories), "category in the trace", "text"),
    "pid": (lambda r, rows: Texts(r.pid[rows], r.pids), "process", "text"),
    "tid": (lambda r, rows: Texts(r.tid[rows], r.tids), "thread, as in the trace", "text"),
    "device": (lambda r, rows: _numbers(r.device[rows]), "device index", "number"),
    "stream": (lambda r, rows: _numbers(r.stream[rows]), "device stream", "number"),
    "event_id": (lambda r, rows: _all(r.event_id[rows]), "position in the file", "number"),
    "launch_id": (
        lambda r, rows: _event_ids(r, r.launch[rows]),
        "event_id of the call that launched the event",
        "number",
    ),
    "parent_id": (lambda r, rows: _event_ids(r, r.parent[rows]), "event_id of the caller", "number"),
    "depth": (lambda r, rows: _numbers(r.depth[rows], -1), "number of open calls around it", "number"),
    "mark": (lambda r, rows: Texts(r.mark[rows], _MARKS), "what cannot be true about it", "text"),
}
KNOWN_COLUMNS = (*_CORE, *_ARGUMENTS)
# Texts that end in a number, and are sorted by it: "stream 7" before "stream 20".
NATURAL = ("track", "pid", "tid")


def is_text(name: str) -> bool:
    """Whether a column holds texts."""
    return _CORE[name][2] == "text" if name in _CORE else _ARGUMENTS[name].kind in ("text", "json")
