"""The pass over the records of a file, when they become slices."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hta_widgets.trace.classify import EventClass, category_of
from hta_widgets.trace.reader.schema import NULL
from hta_widgets.trace.reader.table import EventTable
from hta_widgets.trace.records.marks import NOTHING, Mark, Marked
from hta_widgets.trace.records.open_steps import open_steps
from hta_widgets.trace.records.queues import mark_impossible_ends
from hta_widgets.trace.records.starts import mark_early_starts
from hta_widgets.trace.records.untimed import far_away, mark_untimed, place_untimed
from hta_widgets.trace.records.work import work_of

__all__ = ["pass_over"]

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Bool = npt.NDArray[np.bool_]


def pass_over(table: EventTable, is_complete: Bool, is_usable: Bool) -> tuple[Marked, Int64, Int64]:
    """The records of a file whose times cannot be true, and what is taken for their start and length, ns.

    Args:
        table: the events.
        is_complete: complete events; is_usable: those of them whose times are plausible by themselves.
    """
    kinds = [category_of(text) for text in table.dictionary("category")]
    category = table.codes("category")
    slices = np.flatnonzero(is_usable)
    start, dur = table.ints("start_ns"), table.ints("dur_ns")
    is_device = np.array([*(kind.device for kind in kinds), False], np.bool_)
    is_note = np.array([*(kind.event_class == EventClass.ANNOTATION for kind in kinds), False], np.bool_)
    far = slices[far_away(start[slices], is_device[category[slices]], is_note[category[slices]])]
    parts = [_of_host(table, far[~is_device[category[far]]]), _of_device(table, is_complete, is_usable, far)]
    parts.append(open_steps(table, is_complete & is_note[category], far))
    rows = np.concatenate([part[0].rows for part in parts])
    if not len(rows):
        return NOTHING, start[:0], dur[:0]
    order = np.argsort(rows, kind="stable")
    joined = Marked(
        *(np.concatenate([vars(part[0])[name] for part in parts])[order] for name in vars(NOTHING))
    )
    begins, lasts = (np.concatenate([part[at] for part in parts])[order] for at in (1, 2))
    return joined, begins, lasts


def _of_host(table: EventTable, far: Int64) -> tuple[Marked, Int64, Int64]:
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
    table: EventTable, is_complete: Bool, is_usable: Bool, far: Int64
) -> tuple[Marked, Int64, Int64]:
    if len(far):  # what carries no time launches nothing at any time
        is_usable = is_usable.copy()
        is_usable[far] = False
    work = work_of(table, is_complete, is_usable)
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
