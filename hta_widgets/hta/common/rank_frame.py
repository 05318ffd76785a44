"""One rank as HTA's frame: its columns, order, units and defaults, with exact times and unambiguous links.

One row per event with a duration and a category (category ``Trace``, the profiler's own span, left out), in
file order, labelled by the event's position in the file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from hta_widgets.arrays import Int64
from hta_widgets.hta.common.trace_symbol_table import texts
from hta_widgets.hta.configs.default_values import AttributeSpec, ValueType
from hta_widgets.hta.methods.conventions import microseconds
from hta_widgets.trace import links
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.reader.schema import ARGUMENT_COLUMNS, NULL, Column, Kind
from hta_widgets.trace.reader.table import EventTable

EVENT_COLUMNS = ("index", "cat", "name", "pid", "tid", "ts", "dur", "end")
LINK_COLUMNS = ("index_correlation", "iteration")

_BY_KEY: dict[str, Column] = {
    key: column for column in ARGUMENT_COLUMNS for key in (column.key, *column.aliases)
}


def stored_kind(raw_name: str) -> Kind | None:
    """What the event table holds of an argument; None if only on request."""
    column = _BY_KEY.get(raw_name)
    return column.kind if column else None


def hta_rows(rank_trace: RankTrace) -> Int64:
    """Positions of the rows that HTA's frame has, in file order."""
    left_out = np.array([text in ("", "Trace") for text in rank_trace.categories], np.bool_)
    return np.flatnonzero(~left_out[rank_trace.category])


def symbols_of(rank_trace: RankTrace) -> list[str]:
    """The names and categories of a rank's rows, sorted: ids then depend on nothing but the symbols."""
    rows = hta_rows(rank_trace)
    names = (rank_trace.names[code] for code in np.unique(rank_trace.name[rows]).tolist())
    return sorted(
        {*names, *(rank_trace.categories[code] for code in np.unique(rank_trace.category[rows]).tolist())}
    )


def rank_frame(
    rank_trace: RankTrace,
    ids: Mapping[str, int],
    zero_ns: int,
    specs: Sequence[AttributeSpec],
    extra: EventTable | None = None,
    rows: Int64 | None = None,
) -> pd.DataFrame:
    """HTA's frame of a rank.

    Args:
        ids: symbol -> id.
        zero_ns: what is time 0, in ns on the job's axis.
        specs: the arguments that become columns.
        extra: the rank's events read with the arguments of no `stored_kind`.
        rows: positions to show, by default `hta_rows`.

    Returns:
        Columns index, cat, name (ids, int64), pid, tid (int64, or object where one is text), ts, dur, end
        (float64 us), the arguments, index_correlation (int64: `index` of the launch of device work and
        of the last work of a launch, -1 for none) and iteration (int64: ProfilerStep's number, -1 for none).
    """
    rows = hta_rows(rank_trace) if rows is None else rows
    event_id = rank_trace.event_id[rows].astype(np.int64)
    columns: dict[str, Any] = {
        "index": event_id,
        "cat": _coded(rank_trace.category, rank_trace.categories, ids)[rows],
        "name": _coded(rank_trace.name, rank_trace.names, ids)[rows],
        "pid": _numbers(rank_trace.pid[rows], rank_trace.pids),
        "tid": _numbers(rank_trace.tid[rows], rank_trace.tids),
        "ts": microseconds(rank_trace.start[rows] - zero_ns),
        "dur": microseconds(rank_trace.dur[rows]),
        "end": microseconds(rank_trace.end[rows] - zero_ns),
    }
    for spec in specs:
        # An argument must not take the place of the event's own column (`info::name` that of its name).
        name = f"arg_{spec.name}" if spec.name in EVENT_COLUMNS else spec.name
        if spec.raw_name == "stream":
            columns[name] = _stream(rank_trace)[rows]
        else:
            columns[name] = _argument(spec, rank_trace.table, extra, event_id)
    partner = partners(rank_trace)[rows]
    columns["index_correlation"] = np.where(partner >= 0, rank_trace.event_id[partner], -1).astype(np.int64)
    columns["iteration"] = steps(rank_trace)[rows]
    index = pd.Index(event_id)
    return pd.DataFrame({name: _as_it_is(values, index) for name, values in columns.items()}, index=index)


def _as_it_is(values: Any, index: pd.Index) -> Any:
    """A column of objects stays one, even where all of them happen to be text."""
    return pd.Series(values, index=index, dtype="object") if values.dtype == object else values


def partners(rank_trace: RankTrace) -> npt.NDArray[np.int32]:
    """Row of the other side of each launch: of device rows (waits included) the call, of a call the last
    device row it caused; -1 for none.
    """
    waits = (rank_trace.event_class == EventClass.SYNC) & (rank_trace.correlation != NULL)
    calls = rank_trace.event_class == EventClass.RUNTIME
    link = links.launches(rank_trace.correlation, rank_trace.start, rank_trace.is_device | waits, calls)
    caused = np.flatnonzero(link >= 0)
    # Work after waits: where a call has both, its partner is the work. Of several the last in the file stays.
    caused = caused[np.argsort(rank_trace.is_device[caused], kind="stable")]
    link[link[caused]] = caused
    return link


def steps(rank_trace: RankTrace) -> Int64:
    """The ProfilerStep of each row, -1 where there is none."""
    frame = rank_trace.iterations
    if not len(frame) or frame["source"].iloc[0] != "ProfilerStep":
        return np.full(rank_trace.n, -1, np.int64)
    return rank_trace.iteration.astype(np.int64)


def _stream(rank_trace: RankTrace) -> Int64:
    """Stream of each row, -1 for host rows, and for annotations that do not say one: they are no work."""
    annotates = rank_trace.event_class == EventClass.ANNOTATION
    stream = np.where(annotates, rank_trace.argument("stream"), rank_trace.stream)
    return np.where(stream == NULL, -1, stream)


def _coded(code: npt.NDArray[np.int32], dictionary: list[str], ids: Mapping[str, int]) -> Int64:
    return np.array([ids.get(text, -1) for text in dictionary], np.int64)[code]


def _numbers(code: npt.NDArray[np.int32], dictionary: list[str]) -> npt.NDArray[Any]:
    """Process or thread ids: numbers; where one is text, that one stays text and the column is of objects."""
    read = [
        int(text) if text.removeprefix("-").isdecimal() and len(text) < 19 else text for text in dictionary
    ]
    used = np.unique(code).tolist()
    if all(isinstance(read[name], int) for name in used):
        return np.array([value if isinstance(value, int) else 0 for value in read] or [0], np.int64)[code]
    return _objects(read)[code]


def _objects(values: Sequence[Any]) -> npt.NDArray[np.object_]:
    """An array of objects of which none is taken apart, lists included."""
    array = np.empty(len(values), np.object_)
    for at, value in enumerate(values):
        array[at] = value
    return array


def _argument(spec: AttributeSpec, table: EventTable, extra: EventTable | None, event_id: Int64) -> Any:
    column = _BY_KEY.get(spec.raw_name)
    if column is None:
        return _read_apart(spec, extra, event_id)
    if column.kind in ("text", "json"):
        return _from_texts(
            spec, table.codes(column.name)[event_id], table.dictionary(column.name), column.kind == "json"
        )
    ints = column.kind == "int"
    values = (table.ints(column.name) if ints else table.floats(column.name))[event_id]
    absent = values == NULL if ints else np.isnan(values)
    default = spec.default_value
    if isinstance(default, int | float) and (ints <= isinstance(default, int)):
        filled = np.where(absent, default, values)
        return filled.astype(np.int64) if ints else filled
    if not absent.any():
        return values
    held = values.astype(np.object_)
    held[absent] = _objects([default])[0]
    return held


def _read_apart(spec: AttributeSpec, extra: EventTable | None, event_id: Int64) -> Any:
    """A column of an argument that was read on request: JSON values, or the default."""
    if extra is None:
        return _from_texts(spec, np.full(len(event_id), -1, np.int32), [], True)
    return _from_texts(spec, extra.codes(spec.raw_name)[event_id], extra.dictionary(spec.raw_name), True)


def _from_texts(
    spec: AttributeSpec, codes: npt.NDArray[np.int32], dictionary: list[str], is_json: bool
) -> Any:
    """Values by code into a dictionary that is read once, not once per row; -1 is the default."""
    values = [_read(text) for text in dictionary] if is_json else list(dictionary)
    values.append(spec.default_value)
    used = {type(values[code]) for code in np.unique(codes).tolist()}
    codes = np.where(codes < 0, len(values) - 1, codes)
    if used == {str} and spec.value_type is not ValueType.Object:
        return texts([value if isinstance(value, str) else "" for value in values], codes)
    if used and used <= {int, float}:
        kind = np.int64 if used == {int} and all(_fits(value) for value in values) else np.float64
        return np.array([value if type(value) in used else 0 for value in values], kind)[codes]
    return _objects(values)[codes]


def _fits(value: object) -> bool:
    return not isinstance(value, int) or -(1 << 63) <= value < 1 << 63


def _read(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
