"""The slices of a file, its events with a duration: complete events (X) and matched begin/end pairs (B, E).

Everything else (instants, counters, flows, metadata) stays in the event table, where the analyses that need
it look it up. An event whose duration is missing, negative or absurd is not a slice, and is counted. Device
work whose times cannot be true is estimated or left out, and marked (`records`).
"""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from hta_widgets.jit import kernel
from hta_widgets.trace.reader.schema import NULL
from hta_widgets.trace.reader.table import EventTable, Problem
from hta_widgets.trace.records.marks import NOTHING, Marked
from hta_widgets.trace.records.pass_over import pass_over

# HTA's own limit (ParserConfig.max_event_duration_us): corrupt CUPTI records claim centuries.
LONGEST_NS = 7 * 24 * 3600 * 1_000_000_000
_PROBES = 32  # calls and work that are looked for elsewhere in the file, which takes less than all of them
_REPEATED = 0.4  # of them: then everything is there twice
_PIECE = 1 << 16  # rows at once: what follows from all would take as much memory as they do

# what an event is; of those that are no slices, the last two may become one together
_OTHER, _USABLE, _UNTIMED, _NEGATIVE, _ENDLESS, _BEGIN, _END = range(7)
_UNUSABLE = [
    (_UNTIMED, "no_duration", "complete events without a time or duration"),
    (_NEGATIVE, "negative_duration", "complete events that end before they start"),
    (_ENDLESS, "absurd_duration", "complete events longer than 7 days"),
]


@dataclass(frozen=True)
class Slices:
    """The slices of a file as rows of its event table, in file order, and what could not be used."""

    rows: npt.NDArray[np.int32]  # int32 row in the event table
    # int64 ns as in the file
    start: npt.NDArray[np.int64]
    dur: npt.NDArray[np.int64]
    unfinished: npt.NDArray[np.int32]  # rows of begin events without an end (cut by the recording)
    problems: list[Problem]  # one entry per kind of unusable event
    # records whose times cannot be true; of those that are slices, `start` and `dur` are estimates
    marked: Marked = NOTHING

    @property
    def last_end(self) -> int:
        """When the last of them ends; there is one."""
        pieces = (slice(at, at + _PIECE) for at in range(0, len(self.start), _PIECE))
        return max(int((self.start[piece] + self.dur[piece]).max()) for piece in pieces)

    def keep(self, kept: npt.NDArray[np.bool_]) -> "Slices":
        """The slices that a mask marks."""
        return replace(self, rows=self.rows[kept], start=self.start[kept], dur=self.dur[kept])


def find_slices(table: EventTable, repair: bool = True) -> Slices:
    """The slices of one file.

    Args:
        table: its events.
        repair: estimate or leave out records whose times cannot be true; else all are believed.
    """
    start, dur = table.ints("start_ns"), table.ints("dur_ns")
    sort = _sorts(table)
    repeats = _repeats(table, sort) if repair else np.empty(0, np.int32)
    sort[repeats] = _OTHER
    rows = np.flatnonzero(sort == _USABLE).astype(np.int32)
    begins_at, marked = start[rows], NOTHING
    if repair:
        unusable = np.flatnonzero((sort > _USABLE) & (sort < _BEGIN))
        marked, estimated_start, estimated_dur = pass_over(table, rows, begins_at, unusable)
    if len(marked):
        start, dur = start.copy(), dur.copy()
        start[marked.rows], dur[marked.rows] = estimated_start, estimated_dur
        sort[marked.rows] = np.where(marked.excluded, _OTHER, _USABLE)
        rows = np.flatnonzero(sort == _USABLE).astype(np.int32)
        begins_at = start[rows]
    lasts = dur[rows]  # only now: while records are judged, most memory is in use
    problems = [
        Problem(check, "warning", int((sort == kind).sum()), None, detail)
        for kind, check, detail in _UNUSABLE
    ]
    begun = np.flatnonzero(sort >= _BEGIN)
    unmatched_ends, unfinished = 0, np.empty(0, np.int32)
    if len(begun):
        begins, ends, unfinished, unmatched_ends = _pairs(table, begun, sort[begun] == _BEGIN)
        both = np.concatenate([rows, begins])
        order = np.argsort(both, kind="stable")
        lasts = np.concatenate([lasts, start[ends] - start[begins]])[order]
        rows = both[order]
        begins_at = start[rows]
    problems += [
        Problem("repeated", "warning", len(repeats), None, "events that the file holds more than once"),
        Problem("unfinished", "info", len(unfinished), None, "begin events that never end"),
        Problem("unmatched_end", "warning", unmatched_ends, None, "end events that nothing began"),
    ]
    return Slices(
        rows, begins_at, lasts, unfinished, [problem for problem in problems if problem.count], marked
    )


def _sorts(table: EventTable) -> npt.NDArray[np.int8]:
    """What each event is to its slices. A piece at a time: masks of all events, one for each question, are
    what opening a long recording would take most memory for.
    """
    complete, begin, end = (_code(table, letter) for letter in "XBE")
    columns = table.codes("phase"), table.ints("start_ns"), table.ints("dur_ns")
    found = np.zeros(table.n, np.int8)
    for at in range(0, table.n, _PIECE):
        phase, start, dur = (column[at : at + _PIECE] for column in columns)
        untimed = (start == NULL) | (dur == NULL)
        faults = [untimed, dur < 0, dur > LONGEST_NS]
        whole = np.select(faults, [_UNTIMED, _NEGATIVE, _ENDLESS], _USABLE)
        ends = [phase == complete, (phase == begin) & (start != NULL), (phase == end) & (start != NULL)]
        found[at : at + _PIECE] = np.select(ends, [whole, _BEGIN, _END], _OTHER)
    return found


def _repeats(table: EventTable, sort: npt.NDArray[np.int8]) -> npt.NDArray[np.int32]:
    """Rows of slices that stand in the file before: of one thread or stream, name, id and time.

    No queue runs two kernels of one launch at once, and no thread makes a call twice at once. Where most of
    those are repeated, the file is, and so is all else in it.
    """
    events, ids = table.sparse("correlation")
    at = events[(sort[events] == _USABLE) & (ids > 0) & (table.ints("dur_ns")[events] > 0)]
    start = table.ints("start_ns")[at]
    probes = start[np.linspace(0, len(at) - 1, _PROBES).astype(np.int64)] if len(at) else start
    if not len(_again(table, at[np.isin(start, probes)])):
        return np.empty(0, np.int32)
    repeats = _again(table, at)
    if len(repeats) < _REPEATED * len(at):
        return repeats
    return _again(table, np.flatnonzero(sort == _USABLE).astype(np.int32))


def _again(table: EventTable, rows: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Those of the rows that are the same as an earlier one."""
    keys = np.empty((8, len(rows)), np.int64)
    for at, column in enumerate(("pid", "tid", "name", "category")):
        keys[at] = table.codes(column)[rows]
    for at, column in enumerate(("correlation", "external_id", "dur_ns", "start_ns"), start=4):
        keys[at] = table.ints_of(column, rows)
    order = np.lexsort(keys)  # stable: the first in the file comes first
    ordered = keys[:, order]
    return np.sort(rows[order][1:][(ordered[:, 1:] == ordered[:, :-1]).all(axis=0)])


def _code(table: EventTable, letter: str) -> int:
    """The code of a phase; one that no event has, where the file has none of it."""
    letters = table.dictionary("phase")
    return letters.index(letter) if letter in letters else len(letters)


def _pairs(
    table: EventTable, events: npt.NDArray[np.int64], is_begin: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], npt.NDArray[np.int32], int]:
    """Begin rows, their end rows, begins without an end, and the number of ends without a begin."""
    thread = (
        table.codes("pid")[events].astype(np.int64) * (len(table.dictionary("tid")) + 1)
        + table.codes("tid")[events]
    )
    # lexsort is stable: at equal times file order decides, as in the Chrome trace format.
    order = np.lexsort((table.ints("start_ns")[events], thread))
    rows, begins = events[order].astype(np.int32), is_begin[order]
    partner = _match(thread[order], begins)
    matched = begins & (partner >= 0)
    orphans = int((~begins & (partner < 0)).sum())
    return rows[matched], rows[partner[matched]], rows[begins & (partner < 0)], orphans


@kernel
def _match(thread: npt.NDArray[np.int64], begin: npt.NDArray[np.bool_]) -> npt.NDArray[np.int32]:
    """For each event (sorted by thread and time) the position of its other half, -1 if there is none."""
    n = len(thread)
    partner = np.full(n, -1, np.int32)
    stack = np.empty(n, np.int32)
    top = 0
    for i in range(n):
        if i and thread[i] != thread[i - 1]:
            top = 0
        if begin[i]:
            stack[top] = i
            top += 1
        elif top:
            top -= 1
            partner[i] = stack[top]
            partner[stack[top]] = i
    return partner
