"""Names and order of processes and threads, from the metadata events (phase M)."""

import numpy as np
import numpy.typing as npt
import pandas as pd

from hta_widgets.frames import TEXT
from hta_widgets.trace.ordering import unique
from hta_widgets.trace.reader.schema import NULL
from hta_widgets.trace.reader.table import EventTable

Codes = npt.NDArray[np.int32]


def threads(table: EventTable, pid: Codes, pids: list[str], tid: Codes, tids: list[str]) -> pd.DataFrame:
    """The threads and streams that carry slices.

    Returns columns pid, tid (str), process_name, thread_name (str or None, as the trace names them),
    sort_index (Int64).
    """
    keys = unique(pid.astype(np.int64) * len(tids) + tid)
    processes, labels = (
        _named(table, "process_name", "args_name"),
        _named(table, "process_labels", "args_labels"),
    )
    names = _named(table, "thread_name", "args_name")
    order = _sorted_at(table)
    found = [(pids[key // len(tids)], tids[key % len(tids)]) for key in keys.tolist()]
    process = {key: text for (key, _), text in {**labels, **processes}.items()}
    frame = pd.DataFrame(
        {
            "pid": [key for key, _ in found],
            "tid": [two for _, two in found],
            "process_name": [process.get(key) for key, _ in found],
            "thread_name": [names.get(key) for key in found],
            "sort_index": pd.array([order.get(key) for key in found], "Int64"),
        }
    )
    return frame.astype(dict.fromkeys(("pid", "tid", "process_name", "thread_name"), TEXT))


def _events(table: EventTable, name: str) -> npt.NDArray[np.int64]:
    names, phases = table.dictionary("name"), table.dictionary("phase")
    if name not in names or "M" not in phases:
        return np.empty(0, np.int64)
    return np.flatnonzero(
        (table.codes("phase") == phases.index("M")) & (table.codes("name") == names.index(name))
    )


def _key(table: EventTable, row: int) -> tuple[str, str]:
    pid, tid = int(table.codes("pid")[row]), int(table.codes("tid")[row])
    return (
        table.dictionary("pid")[pid] if pid >= 0 else "",
        table.dictionary("tid")[tid] if tid >= 0 else "",
    )


def _named(table: EventTable, event: str, column: str) -> dict[tuple[str, str], str]:
    rows, codes = table.sparse(column)
    texts = table.dictionary(column)
    of_row = dict(zip(rows.tolist(), codes.tolist(), strict=True))
    return {_key(table, row): texts[of_row[row]] for row in _events(table, event).tolist() if row in of_row}


def _sorted_at(table: EventTable) -> dict[tuple[str, str], int]:
    rows = _events(table, "thread_sort_index")
    values = table.ints_of("args_sort_index", rows)
    return {_key(table, row): int(at) for row, at in zip(rows.tolist(), values, strict=True) if at != NULL}
