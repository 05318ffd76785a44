"""Steps whose records are not whole: how much device time of each is missing or estimated.

The limits are where claims begin to move on real recordings: beyond half a percent of a step in doubt, its
busy and idle shares can be off by half a point, and beyond a percent of its device time the sums by as much.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from hta_widgets.arrays import Int64
from hta_widgets.formatting import counted, duration
from hta_widgets.trace.classify import EventClass, category_of
from hta_widgets.trace.links import windows_of
from hta_widgets.trace.ordering import distinct
from hta_widgets.trace.reader.schema import NULL
from hta_widgets.trace.records.marks import Mark

if TYPE_CHECKING:
    import pandas as pd

    from hta_widgets.trace.rank_trace import RankTrace

OF_STEP = 0.005
_OF_WORK = 0.01
# How long the work of a launch takes to begin on an idle device.
_LAUNCH_NS = 4_000
# What a record without peers may have taken.
_LONG = 0.95


@dataclass(frozen=True)
class DoubtfulStep:
    """A step of which too much is in doubt, or which has no end."""

    iteration: int  # its number
    # by the clock that times the steps
    start_ns: int
    end_ns: int
    doubt_ns: int  # device time that is missing, or that estimates may be off by
    # launches without work, records left out, and records with estimated times
    lost: int
    untimed: int
    estimated: int
    is_open: bool  # it was still open when the recording ended
    # the work that it begins with is missing: when it began on the device is not known
    lacks_first: bool = False
    ends_in_doubt: bool = False  # the device times it, and the next one begins with estimated times
    silent_ns: int = 0  # how long nothing is recorded in it though work is queued

    @property
    def reason(self) -> str:
        """What is wrong with it."""
        parts = []
        if self.lost:
            parts.append(f"the work of {counted(self.lost, 'launch', 'launches')} was not recorded")
        if self.untimed:
            parts.append(f"{counted(self.untimed, 'device record')} without a usable time")
        if self.estimated:
            parts.append(f"the times of {counted(self.estimated, 'device record')} are estimates")
        if self.silent_ns:
            silence = duration(self.silent_ns)
            parts.append(f"nothing is recorded for {silence} though work is queued, as if its clock jumped")
        if self.is_open:
            parts.append("it was still open when the recording ended")
        if self.ends_in_doubt:
            parts.append("the next step begins with records whose times are estimates")
        return ", ".join(parts)


def may_doubt(rank_trace: RankTrace) -> bool:
    """Whether any record of a rank is missing or cannot be true: else its steps are whole."""
    if not rank_trace.events.header.repair:
        return False
    marked = len(rank_trace.slices.marked) > 0
    # nothing is said of a device that has no records at all
    return (
        marked
        or len(rank_trace.standstills) > 0
        or (len(rank_trace.losses.lost) > 0 and bool(rank_trace.is_device.any()))
    )


def doubtful_steps(rank_trace: RankTrace, frame: pd.DataFrame) -> list[DoubtfulStep]:
    """The steps of a rank whose records are not whole, in time order.

    Where the device times the steps, work is of the step that launches it, whenever it would have run. Where
    the host does, missing work leaves the steps in doubt in which it was launched and would have run.

    Args:
        frame: its iterations, as `iteration_clock.timed` returns them.
    """
    marked, losses = rank_trace.slices.marked, rank_trace.losses
    start, end = (frame[f"host_{edge}_ns"].to_numpy(np.int64) for edge in ("start", "end"))
    tile_start, tile_end = (frame[f"{edge}_ns"].to_numpy(np.int64) for edge in ("start", "end"))
    count, by_device = len(frame), bool((frame["clock"] == "device").any())
    doubt = np.zeros(count)
    of_device = _is_device(rank_trace, marked.rows)
    row = rank_trace.row_of_event[marked.rows]
    placed = np.where(marked.placed == NULL, NULL, marked.placed - rank_trace.offset_ns)
    at = np.where(marked.placed == NULL, -1, windows_of(placed, start, end))
    estimates = of_device & ~marked.excluded & (row >= 0)
    estimated = _add(doubt, at[estimates], marked.error[estimates])
    work = rank_trace.dur[rank_trace.is_device]
    long = int(np.quantile(work, _LONG)) if len(work) else 0
    out = of_device & marked.excluded & (marked.placed != NULL)
    missing = np.concatenate([rank_trace.start[losses.lost], placed[out]])
    took = np.concatenate([losses.took, np.full(int(out.sum()), long)])
    begins, ends = _would_run(rank_trace, missing, took)
    touched = [missing] if by_device else [missing, begins, ends - 1]
    steps_of = np.stack([windows_of(times, start, end) for times in touched])
    lost, untimed = (_count(steps_of[:, part], count) for part in _parts(len(losses.lost), len(missing)))
    for i, steps in enumerate(steps_of.T):
        for step in {*steps.tolist()} - {-1}:
            doubt[step] += took[i]
    silent = _silence(rank_trace.standstills, tile_start, tile_end)
    doubt += silent
    is_nowhere = of_device & marked.excluded & (marked.placed == NULL) & ~_of_untimed_calls(rank_trace)
    nowhere = int(is_nowhere.sum())
    doubt += nowhere * long / max(count, 1)
    is_open = np.zeros(count, np.bool_)
    is_open[at[(marked.mark == Mark.UNFINISHED) & (at >= 0)]] = True
    numbers = frame["iteration"].to_numpy(np.int64)
    done = np.zeros(count)
    _add(done, windows_of(rank_trace.start[rank_trace.is_device], tile_start, tile_end), work)
    wrong = (doubt > OF_STEP * np.maximum(tile_end - tile_start, 1)) | (
        (doubt > _OF_WORK * done) & (doubt > 0)
    )
    wrong |= is_open | ((untimed + nowhere > 0) & (len(work) == 0))
    lacks_first = _earliest(steps_of[0], missing, count) < _earliest(
        *_launched_work(rank_trace, start, end), count
    )
    in_doubt = by_device & np.append((lacks_first & (estimated > 0))[1:], False)[:count]
    wrong |= in_doubt
    return [
        DoubtfulStep(
            int(numbers[i]), int(tile_start[i]), int(tile_end[i]), int(doubt[i]), int(lost[i]),
            int(untimed[i]) + (nowhere if not untimed[i] else 0), int(estimated[i]), bool(is_open[i]),
            bool(lacks_first[i]), bool(in_doubt[i]), int(silent[i]),
        )
        for i in np.flatnonzero(wrong).tolist()
    ]  # fmt: skip


def _silence(when: Int64, start: Int64, end: Int64) -> Int64:
    """How much of each step lies in these stretches."""
    shared = np.minimum(end[:, None], when[:, 1]) - np.maximum(start[:, None], when[:, 0])
    return np.maximum(shared, 0).sum(axis=1)


def _earliest(steps: npt.NDArray[np.integer], times: Int64, count: int) -> Int64:
    """The first of these times in each step; the largest number without any."""
    first = np.full(count, np.iinfo(np.int64).max)
    np.minimum.at(first, steps[steps >= 0], times[steps >= 0])
    return first


def _launched_work(rank_trace: RankTrace, start: Int64, end: Int64) -> tuple[npt.NDArray[np.integer], Int64]:
    """The step of each launch whose work is recorded in the busiest queue, and when it was made.

    It is the queue that steps begin in (`iteration_clock`).
    """
    rows = rank_trace.launched
    queues, place = distinct(rank_trace.queues(rows))
    if len(queues):
        rows = rows[place == np.bincount(place, rank_trace.dur[rows]).argmax()]
    made = rank_trace.start[rank_trace.launch[rows]]
    return windows_of(made, start, end), made


def _add(doubt: npt.NDArray[np.float64], at: npt.NDArray[np.integer], spent: Int64) -> Int64:
    """Add the time to the step of each, and count them by step."""
    inside = at >= 0
    doubt += np.bincount(at[inside], spent[inside], len(doubt))  # whole numbers: exact
    return np.bincount(at[inside], minlength=len(doubt)).astype(np.int64)


def _parts(first: int, n: int) -> tuple[slice, slice]:
    return slice(0, first), slice(first, n)


def _count(steps: npt.NDArray[np.integer], count: int) -> Int64:
    """In how many columns each step occurs."""
    found = np.zeros(count, np.int64)
    for column in steps.T:
        found[[step for step in {*column.tolist()} if step >= 0]] += 1
    return found


def _would_run(rank_trace: RankTrace, called: Int64, took: Int64) -> tuple[Int64, Int64]:
    """When missing work would have run: after what was launched before it, in order of launch."""
    linked = rank_trace.by_launch
    launched = rank_trace.start[rank_trace.launch[linked]]
    free = np.append(NULL, np.maximum.accumulate(rank_trace.end[linked]))
    ready = np.maximum(free[np.searchsorted(launched, called)], called + _LAUNCH_NS)
    begins = np.zeros(len(called), np.int64)
    busy = NULL
    for at in np.argsort(called, kind="stable").tolist():
        begins[at] = max(int(ready[at]), busy)
        busy = int(begins[at] + took[at])
    return begins, begins + took


def _is_device(rank_trace: RankTrace, events: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
    table = rank_trace.table
    device = [category_of(text).device for text in table.dictionary("category")]
    return np.array([*device, False], np.bool_)[table.codes("category")[events]]


def _of_untimed_calls(rank_trace: RankTrace) -> npt.NDArray[np.bool_]:
    """Marked records whose calls carry no time either: both lie outside the times that are known."""
    table, marked = rank_trace.table, rank_trace.slices.marked
    calls = [category_of(text).event_class == EventClass.RUNTIME for text in table.dictionary("category")]
    is_call = np.array([*calls, False], np.bool_)[table.codes("category")[marked.rows]]
    correlation = table.ints_of("correlation", marked.rows)
    return np.isin(correlation, correlation[is_call & (correlation > 0)])
