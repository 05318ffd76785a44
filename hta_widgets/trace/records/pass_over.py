"""The pass over the records of a file, when they become slices."""

from __future__ import annotations

import numpy as np

from hta_widgets.arrays import Int32, Int64
from hta_widgets.trace.classify import EventClass, category_of
from hta_widgets.trace.reader.schema import NULL
from hta_widgets.trace.reader.table import EventTable
from hta_widgets.trace.records.marks import NOTHING, Mark, Marked
from hta_widgets.trace.records.open_steps import open_steps
from hta_widgets.trace.records.queues import mark_impossible_ends
from hta_widgets.trace.records.starts import mark_early_starts
from hta_widgets.trace.records.untimed import far_away, mark_untimed, place_untimed
from hta_widgets.trace.records.work import CALL, DEVICE, NOTE, Codes, work_of

_NO_KIND = 0


def pass_over(table: EventTable, rows: Int32, start: Int64, unusable: Int64) -> tuple[Marked, Int64, Int64]:
    """The records of a file whose times cannot be true, and what is taken for their start and length, ns.

    Args:
        rows: those that are complete and plausible by themselves, ascending; start: when they begin.
        unusable: complete events that are not.
    """
    lut = np.array([_kind(text) for text in table.dictionary("category")] + [_NO_KIND], np.uint8)
    kind = lut[table.codes("category")]
    of_row = kind if len(rows) == table.n else kind[rows]
    far = rows[far_away(start, of_row == DEVICE, of_row == NOTE)]
    device = rows[of_row == DEVICE]
    parts = [
        _of_host(table, far[kind[far] != DEVICE]),
        _of_device(table, kind, device, unusable[kind[unusable] == DEVICE], far),
        open_steps(table, np.sort(np.append(rows[of_row == NOTE], unusable[kind[unusable] == NOTE])), far),
    ]
    events = np.concatenate([part[0].rows for part in parts])
    if not len(events):
        return NOTHING, start[:0], start[:0]
    order = np.argsort(events, kind="stable")
    joined = Marked(
        *(np.concatenate([vars(part[0])[name] for part in parts])[order] for name in vars(NOTHING))
    )
    begins, lasts = (np.concatenate([part[at] for part in parts])[order] for at in (1, 2))
    return joined, begins, lasts


def _kind(category: str) -> int:
    known = category_of(category)
    if known.device:
        return DEVICE
    return {EventClass.RUNTIME: CALL, EventClass.ANNOTATION: NOTE}.get(known.event_class, _NO_KIND)


def _of_host(table: EventTable, far: Int32) -> tuple[Marked, Int64, Int64]:
    """Host records without a time: nothing says when they ran."""
    start, dur = table.ints("start_ns")[far], table.ints("dur_ns")[far]
    mark = np.full(len(far), Mark.NO_TIME, np.uint8)
    marked = Marked(
        far.astype(np.int32),
        mark,
        start,
        dur,
        np.full(len(far), NULL),
        np.ones(len(far), np.bool_),
        np.zeros(len(far), np.int64),
    )
    return marked, start, dur


def _of_device(
    table: EventTable, kind: Codes, device: Int32, unusable: Int64, far: Int32
) -> tuple[Marked, Int64, Int64]:
    if len(unusable) or len(far):
        device = np.sort(np.append(device, unusable)).astype(np.int32)
    work = work_of(table, kind, device, np.append(unusable, far))
    nothing = np.empty(0, np.int64)
    if work is None:
        return NOTHING, nothing, nothing
    recorded = work.start.copy(), work.dur.copy()
    mark_untimed(work)
    if len(work.processes) < 2:
        mark_early_starts(work)
        mark_impossible_ends(work)
        place_untimed(work)
    else:  # their ids collide, and queues hold the work of several
        work.excluded |= work.mark == Mark.NO_TIME
    at = np.flatnonzero(work.mark)
    start, dur = (column[at] for column in recorded)
    placed = np.where(
        work.call[at] >= 0, work.called[at], np.where(work.mark[at] == Mark.NO_TIME, NULL, start)
    )
    marked = Marked(work.rows[at], work.mark[at], start, dur, placed, work.excluded[at], work.error[at])
    return marked, work.start[at], work.dur[at]
