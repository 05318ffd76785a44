"""When each iteration runs on the host and on the device, and which of the two times it.

A host announces an iteration and launches its work; the device runs that work later. Where the device
keeps up, the host's marks time the iteration, with all that the device waits for. Where it runs behind, the
work inside the host's window was launched by earlier iterations, or runs after the last window, and only the
device tells how long an iteration takes. So it is where the only iteration begins with its host waiting for
work of before the recording.

Iterations tile: by either clock an iteration ends where the next one of its run begins, so that the time
between two belongs to the first. How long the last one took is not recorded, unless its own mark says so: it
is open.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt
import pandas as pd

from hta_widgets.arrays import Int64
from hta_widgets.jit import kernel
from hta_widgets.trace.ordering import distinct
from hta_widgets.trace.reader.schema import NULL

Clock = Literal["host", "device"]

# The device times the iterations if more than this share of their work runs outside the host's own window of
# each, or more than the second share in none of these windows: it would be counted nowhere.
BEHIND_SHARE = 0.25
MISSED_SHARE = 0.0125
# Less than this share of the only iteration spent waiting for earlier work hardly changes its time.
EARLIER_SHARE = 0.1
# Marks that lie further apart than this share of an iteration do not say when the last one ends.
APART_SHARE = 0.02


def timed(
    host: pd.DataFrame,
    iteration: Int64,
    lane: Int64,
    start: Int64,
    end: Int64,
    wanted: Clock | None = None,
    drained: int | None = None,
    duration: Int64 | None = None,
) -> pd.DataFrame:
    """The iterations of a rank with both windows, timed by one clock.

    Args:
        host: the iterations that the host announces, in time order, with columns iteration, start_ns, end_ns,
            partial, run and recorded_until_ns (`iterations.find_iterations`).
        iteration: number of the iteration that launched each device event; must not be -1.
        lane: the queue of each device event, any number per (device, stream), another for copies to the host.
        start, end: of each device event, ns.
        wanted: the clock; None: the one that fits: the host's, unless the device runs behind (`BEHIND_SHARE`,
            `MISSED_SHARE`, or `drained`) and has work of every iteration that the recording holds whole.
        drained: when the device had finished what was launched before the recording, if it then had to wait
            for the recording's own launches. An only iteration that this lies in is timed on the device: its
            host begins it with waiting for work that is not its own.
        duration: of each device event, ns, which tells the busiest queue; None: `end` - `start`.

    Returns:
        `host` with host_start_ns, host_end_ns (int64, ns: the mark), device_start_ns, device_end_ns (Int64,
        ns: first and last of its own work; missing without), leading (bool: it has work in the queue that
        iterations begin in, the busiest), clock ("host" or "device"), start_ns, end_ns by
        that clock, which tile, and open (bool: when it ended is not recorded).
    """
    columns: dict[str, Any] = {str(name): host[name].array for name in host}
    columns |= {"host_start_ns": columns["start_ns"], "host_end_ns": columns["end_ns"]}
    duration = end - start if duration is None else duration
    at, lane, start, end, duration = placed(host, iteration, lane, start, end, duration)
    first, last, leading = _device_windows(len(host), at, lane, start, end, duration)
    missing = first == NULL
    columns["leading"] = leading
    columns["device_start_ns"] = pd.arrays.IntegerArray(np.where(missing, 0, first), missing.copy())
    columns["device_end_ns"] = pd.arrays.IntegerArray(np.where(missing, 0, last), missing.copy())
    clock = wanted or _fit(host, at, start, end, missing, drained)
    # made at once: adding columns to a frame takes longer than all the rest
    columns |= _by_clock(columns, first, last, clock)
    return pd.DataFrame(columns, index=host.index)


def device_windows(
    windows: Int64, run: Int64, at: Int64, lane: Int64, start: Int64, end: Int64, duration: Int64
) -> Int64:
    """When each iteration starts and ends as `timed` says it of the device's clock, int64[n, 2].

    Args:
        windows: of the host, int64[n, 2]: when it begins each iteration, and until when that is recorded.
        run: of each iteration.
        at: the place among them of the iteration that launched each device event.
        lane, start, end, duration: of each device event, as for `timed`.
    """
    first, last, _ = _device_windows(len(run), at, lane, start, end, duration)
    begin, ended = windows.T if (first == NULL).all() else _begin_and_end(first, last)
    return np.column_stack([begin, tiled(begin, ended, run)])


def retimed(frame: pd.DataFrame, clock: Clock) -> pd.DataFrame:
    """The iterations of a rank, as `timed` returns them, by the other clock."""
    columns: dict[str, Any] = {str(name): frame[name].array for name in frame}
    first, last = (
        frame[name].to_numpy(np.int64, na_value=NULL) for name in ("device_start_ns", "device_end_ns")
    )
    columns["start_ns"] = columns["host_start_ns"]
    columns["end_ns"] = columns["host_end_ns"]
    return pd.DataFrame(columns | _by_clock(columns, first, last, clock), index=frame.index)


def without_beginning(frame: pd.DataFrame, iterations: list[int]) -> pd.DataFrame:
    """The iterations of a rank where some have lost their first work: it is not recorded when they begin on
    the device, and so when those before them end. They begin where the work of those before them ends: what
    was lost is no time of these.

    Args:
        frame: as `timed` returns it.
        iterations: those without their first work.
    """
    lacking = frame["iteration"].isin(iterations)
    if not lacking.any():
        return frame
    same_run = frame["run"].eq(frame["run"].shift())
    before = frame["device_end_ns"].shift().where(same_run)
    begin = frame["device_start_ns"].mask(lacking & before.notna() & frame["device_start_ns"].notna(), before)
    frame = frame.assign(leading=frame["leading"] & ~lacking, device_start_ns=begin)
    return retimed(frame, cast(Clock, str(frame["clock"].iloc[0])))


def clock_of_job(frames: Iterable[pd.DataFrame]) -> Clock:
    """The one clock of ranks that work in step, each timed by the clock that fits it.

    Where one of them runs behind, only the device tells how long a step takes on each; unless there is a rank
    whose device has no work of a step that the recording holds whole.

    Args:
        frames: of each rank, as `timed` returns it.
    """
    worked = [frame for frame in frames if frame["device_start_ns"].notna().any()]
    wanted = any((frame["clock"] == "device").any() for frame in worked)
    known = all((frame["device_start_ns"].notna() | frame["partial"]).all() for frame in worked)
    return "device" if wanted and known else "host"


def _by_clock(columns: dict[str, Any], first: Int64, last: Int64, clock: Clock) -> dict[str, Any]:
    """The columns that depend on the clock: clock, start_ns, end_ns, open."""
    run, missing = np.asarray(columns["run"], np.int64), first == NULL
    if clock == "device" and not missing.all():
        begin, ended = _begin_and_end(first, last)
        # Where one has no work in the queue that iterations begin in, nothing says where it begins, and so
        # where the one before it ends.
        aside = ~np.asarray(columns["leading"], np.bool_)
        is_open = _is_last(run) | aside | np.append(aside[1:], False)
    else:
        begin = np.asarray(columns["host_start_ns"], np.int64)
        end, ended = (np.asarray(columns[name], np.int64) for name in ("host_end_ns", "recorded_until_ns"))
        # a ProfilerStep ends when the program says so; other spans leave out what follows them
        spans = len(run) > 0 and not _by_profiler(columns["source"])
        is_open = _is_last(run) & ((ended < end) | (spans and _are_apart(begin, end, run)))
    return {
        "clock": pd.array([clock] * len(run), dtype="str"),
        "start_ns": begin,
        "end_ns": tiled(begin, ended, run),
        "open": is_open,
    }


def _begin_and_end(first: Int64, last: Int64) -> tuple[Int64, Int64]:
    """When each iteration begins and ends on the device, from its first and last work; NULL without.

    One without device work begins where its predecessor ends.
    """
    missing = first == NULL
    last = np.maximum.accumulate(np.where(missing, NULL, last))
    last = np.where(last == NULL, first[~missing][0], last)
    return np.where(missing, last, first), last


def _is_last(run: Int64) -> npt.NDArray[np.bool_]:
    """Which iterations are the last of their run."""
    return np.diff(run, append=-1) != 0


def tiled(begin: Int64, ended: Int64, run: Int64) -> Int64:
    """Where each iteration ends: where the next of its run begins; the last of a run when it has `ended`."""
    return np.where(_is_last(run), ended, np.append(begin[1:], 0))


def _are_apart(begin: Int64, end: Int64, run: Int64) -> bool:
    """Whether marks leave so much time between them that they do not say when an iteration is over."""
    inner = np.flatnonzero(~_is_last(run))
    taken, between = begin[inner + 1] - begin[inner], begin[inner + 1] - end[inner]
    return bool(between.sum() > APART_SHARE * taken.sum())


def host_windows(frame: pd.DataFrame) -> Int64:
    """When the host is in each iteration of a frame as `timed` returns it, whatever times it: int64[n, 2]."""
    begin, until = (frame[name].to_numpy(np.int64) for name in ("host_start_ns", "recorded_until_ns"))
    return np.column_stack([begin, tiled(begin, until, frame["run"].to_numpy(np.int64))])


def membership_windows(frame: pd.DataFrame) -> tuple[Int64, Int64]:
    """From when to when what the host does and launches belongs to each iteration that it announces.

    What lies between two belongs to the first. But the short time between two ProfilerSteps is the profiler's
    own, which ends one record and begins the next.
    """
    begin, end, run = (frame[name].to_numpy(np.int64) for name in ("start_ns", "end_ns", "run"))
    if not len(run) or (_by_profiler(frame["source"]) and not _are_apart(begin, end, run)):
        return begin, end
    return begin, tiled(begin, end, run)


def _by_profiler(source: Iterable[Any]) -> bool:
    return str(next(iter(source))).startswith("ProfilerStep")


def contradicted(frame: pd.DataFrame, iteration: Int64, start: Int64, end: Int64) -> list[int]:
    """The complete iterations most of whose own device work runs outside the window that times them.

    What their window shows is not what they do: nothing can be concluded from it.

    Args:
        frame: as `timed` returns it.
        iteration, start, end: of each device event, as for `timed`.
    """
    begin, finish = (frame[name].to_numpy(np.int64) for name in ("start_ns", "end_ns"))
    work, inside = _work(begin, finish, *placed(frame, iteration, start, end))
    outside = (2 * inside < work) & ~frame["partial"].to_numpy(np.bool_)
    return [int(number) for number in frame["iteration"].to_numpy(np.int64)[outside]]


def placed(frame: pd.DataFrame, iteration: Int64, *columns: Int64) -> tuple[Int64, ...]:
    """The place of each of these iterations in a frame, and their columns; of those that have one."""
    numbers = frame["iteration"].to_numpy(np.int64)
    order = np.argsort(numbers)
    code, found = pd.factorize(iteration)  # few differ
    place = np.append(order, -1)[np.searchsorted(numbers, found, sorter=order)]
    known = np.append(numbers, -1)[place] == found
    place, known = place[code], known[code]
    if known.all():
        return place, *columns
    return place[known], *(values[known] for values in columns)


def _device_windows(
    count: int, at: Int64, lane: Int64, start: Int64, end: Int64, duration: Int64
) -> tuple[Int64, Int64, npt.NDArray[np.bool_]]:
    """First start and last end of each iteration's device work, NULL without; neighbours do not overlap.

    And whether it has work in the busiest queue.

    An iteration begins with its first work in the busiest queue, if it has work there: a copy for the next
    iteration that runs ahead does not cut the one that computes.
    """
    first, last = np.full(count, NULL, np.int64), np.full(count, NULL, np.int64)
    if not len(at):
        return first, last, first != NULL
    lanes, code = distinct(lane)
    busiest = int(np.bincount(code, duration, len(lanes)).argmax())
    begun, anywhere = np.full((2, count), np.iinfo(np.int64).max)
    _first_and_last(at, code, busiest, start, end, begun, anywhere, last)
    leading = begun != np.iinfo(np.int64).max
    begun = np.where(leading, begun, anywhere)
    worked = begun != np.iinfo(np.int64).max
    # In time order; where work of the next one has begun, an iteration is over.
    begun = np.maximum.accumulate(np.where(worked, begun, NULL))
    following = np.minimum.accumulate(np.where(worked, begun, np.iinfo(np.int64).max)[::-1])[::-1]
    first[worked] = begun[worked]
    last[worked] = np.minimum(last, np.append(following[1:], np.iinfo(np.int64).max))[worked]
    return first, np.maximum(first, last), leading


@kernel
def _first_and_last(
    at: Int64, lane: Int64, busiest: int, start: Int64, end: Int64, begun: Int64, anywhere: Int64, last: Int64
) -> None:
    """When the work at each place begins in the busiest lane, when in any, and when it ends."""
    for i in range(len(at)):
        of = at[i]
        if lane[i] == busiest:
            begun[of] = min(begun[of], start[i])
        anywhere[of] = min(anywhere[of], start[i])
        last[of] = max(last[of], end[i])


def _fit(
    host: pd.DataFrame,
    at: Int64,
    start: Int64,
    end: Int64,
    missing: npt.NDArray[np.bool_],
    drained: int | None,
) -> Clock:
    whole = ~host["partial"].to_numpy(np.bool_)
    if not len(at) or (missing & whole).any():
        return "host"
    begin, finish = host["start_ns"].to_numpy(np.int64), host["end_ns"].to_numpy(np.int64)
    if drained is not None and whole.sum() == 1 and ((begin < drained) & (drained < finish)).any():
        return "device"
    belongs, until = membership_windows(host)
    work, inside = _work(belongs, until, at, start, end)
    behind = (work - inside).sum() > BEHIND_SHARE * work.sum()
    if not behind:
        run = host["run"].to_numpy(np.int64)
        _, first, count = np.unique(run, return_index=True, return_counts=True)
        begun, finished = np.repeat(begin[first], count), np.repeat(finish[first + count - 1], count)
        work, inside = _work(begun, finished, at, start, end)
        behind = (work - inside).sum() > MISSED_SHARE * work.sum()
    return "device" if behind else "host"


def _work(begin: Int64, finish: Int64, at: Int64, start: Int64, end: Int64) -> tuple[Int64, Int64]:
    """How long the device works for each iteration, and how much of that from its begin to its finish, ns."""
    work, inside = np.zeros((2, len(begin)), np.int64)
    begin, finish = np.ascontiguousarray(begin), np.ascontiguousarray(finish)
    _add_work(at, start, end, begin, finish, work, inside)
    return work, inside


@kernel
def _add_work(
    at: Int64, start: Int64, end: Int64, begin: Int64, finish: Int64, work: Int64, inside: Int64
) -> None:
    for i in range(len(at)):
        of = at[i]
        work[of] += end[i] - start[i]
        inside[of] += max(0, min(end[i], finish[of]) - max(start[i], begin[of]))
