"""Steps that were open when the recording ended: Kineto writes them with a length of 0."""

from __future__ import annotations

import numpy as np

from hta_widgets.arrays import Int32, Int64
from hta_widgets.trace.reader.schema import NULL
from hta_widgets.trace.reader.table import EventTable
from hta_widgets.trace.records.marks import NOTHING, Mark, Marked
from hta_widgets.trace.step_names import profiler_step, serving_step


def open_steps(table: EventTable, notes: Int32, untimed: Int32) -> tuple[Marked, Int64, Int64]:
    """Steps without an end: until the next step of their thread, else until the last event of the file.

    Args:
        notes: annotations that are complete events.
        untimed: rows whose times mean nothing.
    """
    nothing = np.empty(0, np.int64)
    start, dur = table.ints("start_ns"), table.ints("dur_ns")
    notes = notes[start[notes] != NULL]
    if not (dur[notes] <= 0).any():  # NULL is negative
        return NOTHING, nothing, nothing
    names, code = table.dictionary("name"), table.codes("name")
    is_step = np.zeros(len(names) + 1, np.bool_)
    for name in np.unique(code[notes]).tolist():
        is_step[name] = name >= 0 and (
            profiler_step(names[name]) is not None or serving_step(names[name]) is not None
        )
    steps = notes[is_step[code[notes]] & ~np.isin(notes, untimed)]
    rows = steps[dur[steps] <= 0]
    if not len(rows):
        return NOTHING, nothing, nothing
    timed = (start != NULL) & (dur >= 0) & (dur < 1 << 62)
    timed[untimed] = False
    last = int((start[timed] + dur[timed]).max(initial=int(start[rows].max())))
    pid, tid = table.codes("pid"), table.codes("tid")
    lasts = []
    for row in rows.tolist():
        later = (start[steps] > start[row]) & (pid[steps] == pid[row]) & (tid[steps] == tid[row])
        lasts.append(int(start[steps[later]].min(initial=last)) - int(start[row]))
    count = len(rows)
    marked = Marked(
        rows.astype(np.int32), np.full(count, Mark.UNFINISHED, np.uint8), start[rows], dur[rows],
        start[rows], np.zeros(count, np.bool_), np.zeros(count, np.int64),
    )  # fmt: skip
    return marked, start[rows], np.array(lasts, np.int64)
