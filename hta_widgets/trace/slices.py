"""The slices of a file, its events with a duration: complete events (X) and matched begin/end pairs (B, E).

Everything else (instants, counters, flows, metadata) stays in the event table, where the analyses that need
it look it up. An event whose duration is missing, negative or absurd is not a slice; it is counted, never
repaired.
"""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from hta_widgets.jit import kernel
from hta_widgets.trace.reader.schema import NULL
from hta_widgets.trace.reader.table import EventTable, Problem

# HTA's own limit (ParserConfig.max_event_duration_us): corrupt CUPTI records claim centuries.
LONGEST_NS = 7 * 24 * 3600 * 1_000_000_000
_PIECE = 1 << 16  # rows at once: the ends of all would take as much memory as their starts


@dataclass(frozen=True)
class Slices:
    """The slices of a file as rows of its event table, in file order, and what could not be used.

    Attributes:
        rows: int32 row in the event table.
        start, dur: int64 ns as in the file.
        unfinished: rows of begin events without an end (cut by the recording).
        problems: one entry per kind of unusable event.
    """

    rows: npt.NDArray[np.int32]
    start: npt.NDArray[np.int64]
    dur: npt.NDArray[np.int64]
    unfinished: npt.NDArray[np.int32]
    problems: list[Problem]

    @property
    def last_end(self) -> int:
        """When the last of them ends; there is one."""
        pieces = (slice(at, at + _PIECE) for at in range(0, len(self.start), _PIECE))
        return max(int((self.start[piece] + self.dur[piece]).max()) for piece in pieces)

    def keep(self, kept: npt.NDArray[np.bool_]) -> "Slices":
        """The slices that a mask marks."""
        return replace(self, rows=self.rows[kept], start=self.start[kept], dur=self.dur[kept])


def find_slices(table: EventTable) -> Slices:
    """The slices of one file."""
    letters = table.dictionary("phase")
    phase = table.codes("phase")
    start, dur = table.ints("start_ns"), table.ints("dur_ns")
    complete = _is(phase, letters, "X")
    untimed = complete & ((start == NULL) | (dur == NULL))
    negative = complete & ~untimed & (dur < 0)
    endless = complete & ~untimed & (dur > LONGEST_NS)
    problems = [
        _problem("no_duration", untimed, "complete events without a time or duration"),
        _problem("negative_duration", negative, "complete events that end before they start"),
        _problem("absurd_duration", endless, "complete events longer than 7 days"),
    ]
    usable = complete & ~(untimed | negative | endless)
    del complete, untimed, negative, endless  # this is where opening a long recording takes most memory
    begun = np.flatnonzero((_is(phase, letters, "B") | _is(phase, letters, "E")) & (start != NULL))
    rows = np.flatnonzero(usable).astype(np.int32)
    begins_at, lasts = start[usable], dur[usable]
    unmatched_ends, unfinished = 0, np.empty(0, np.int32)
    if len(begun):
        begins, ends, unfinished, unmatched_ends = _pairs(table, begun, _is(phase, letters, "B"))
        both = np.concatenate([rows, begins])
        order = np.argsort(both, kind="stable")
        lasts = np.concatenate([lasts, start[ends] - start[begins]])[order]
        rows = both[order]
        begins_at = start[rows]
    problems += [
        Problem("unfinished", "info", len(unfinished), None, "begin events that never end"),
        Problem("unmatched_end", "warning", unmatched_ends, None, "end events that nothing began"),
    ]
    return Slices(rows, begins_at, lasts, unfinished, [problem for problem in problems if problem.count])


def _is(phase: npt.NDArray[np.int32], letters: list[str], letter: str) -> npt.NDArray[np.bool_]:
    if letter not in letters:
        return np.zeros(len(phase), np.bool_)
    found: npt.NDArray[np.bool_] = phase == letters.index(letter)
    return found


def _problem(check: str, mask: npt.NDArray[np.bool_], detail: str) -> Problem:
    return Problem(check, "warning", int(mask.sum()), None, detail)


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
    rows, begins = events[order].astype(np.int32), is_begin[events[order]]
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
