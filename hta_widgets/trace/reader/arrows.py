"""The rows of a trace in Chrome's format, and the arrows (flows) between them, as `dialects` reads them."""

from __future__ import annotations

import numpy as np

from hta_widgets.arrays import Bool, Int32, Int64
from hta_widgets.trace.reader.schema import NULL
from hta_widgets.trace.reader.table import EventTable


def slices_of(table: EventTable) -> Int64:
    """Rows of the complete events."""
    complete = having(table, "phase", "X") & (table.ints("start_ns") != NULL) & (table.ints("dur_ns") != NULL)
    return np.flatnonzero(complete)


def having(table: EventTable, column: str, text: str) -> Bool:
    """Which events have a text."""
    texts = table.dictionary(column)
    return table.codes(column) == (texts.index(text) if text in texts else len(texts))


def categorised(table: EventTable, categories: dict[str, Int64]) -> EventTable:
    texts = list(table.dictionary("category"))
    codes = table.codes("category").copy()
    for text, rows in categories.items():
        if len(rows):
            if text not in texts:
                texts.append(text)
            codes[rows] = texts.index(text)
    return table.changed({"category": codes}, {"category": texts})


def operators_of(table: EventTable, arrow: str, device: Int64) -> dict[int, int]:
    """The operator from whose start an arrow leads to each device row; of several the innermost."""
    start, pid, tid = table.ints("start_ns"), table.codes("pid"), table.codes("tid")
    hosted = slices_of(table)
    hosted = hosted[~np.isin(hosted, device) & (table.codes("category")[hosted] >= 0)]
    longest_first = hosted[np.argsort(-table.ints("dur_ns")[hosted], kind="stable")]
    operator = dict(zip(places(longest_first, start, pid, tid), longest_first.tolist(), strict=True))
    at_device = dict(zip(places(device, start, pid, tid), device.tolist(), strict=True))
    begins, ends = arrows(table, arrow)
    found = {}
    for begin, end in zip(places(begins, start, pid, tid), places(ends, start, pid, tid), strict=True):
        if end in at_device and begin in operator:
            found[at_device[end]] = operator[begin]
    return found


def arrows(table: EventTable, category: str) -> tuple[Int64, Int64]:
    """The rows of the begin and of the end of each arrow of a category."""
    ids = table.ints("flow_id")
    flow = having(table, "category", category) & (ids != NULL)
    begins, ends = (np.flatnonzero(flow & having(table, "phase", letter)) for letter in "sf")
    begin_of = dict(zip(ids[begins].tolist(), begins.tolist(), strict=True))
    both = [(begin_of[number], end) for number, end in zip(ids[ends].tolist(), ends.tolist(), strict=True)
            if number in begin_of]  # fmt: skip
    whole = np.array(both, np.int64).reshape(-1, 2)
    return whole[:, 0], whole[:, 1]


def launched_by(table: EventTable, launch: dict[int, int]) -> EventTable:
    """The table with a correlation for each device row and its launch."""
    number_of: dict[int, int] = {}
    correlation: dict[int, int] = {}
    for row, call in launch.items():
        correlation[row] = correlation[call] = number_of.setdefault(call, len(number_of) + 1)
    return table.changed({"correlation": sparse(correlation)}) if launch else table


def sparse(values: dict[int, int]) -> tuple[Int32, Int64]:
    rows = sorted(values)
    return np.array(rows, np.int32), np.array([values[row] for row in rows], np.int64)


def places(rows: Int64, start: Int64, pid: Int32, tid: Int32) -> list[tuple[int, int, int]]:
    """Where and when rows begin, which is what an arrow is tied to."""
    return list(zip(pid[rows].tolist(), tid[rows].tolist(), start[rows].tolist(), strict=True))
