"""Corresponding instants of two runs, so that their timelines can be shown side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hta_widgets.analysis.compare.alignment import aligned, longest_rise
from hta_widgets.analysis.compare.paths import call_paths
from hta_widgets.arrays import Int64
from hta_widgets.trace.classify import EventClass

if TYPE_CHECKING:
    from hta_widgets.trace.rank_trace import RankTrace

Window = tuple[int, int]


@dataclass(frozen=True, eq=False)
class _Sequence:
    """Events in the order in which the host issued them: what each is, as a position in `texts`, and when."""

    rows: Int64
    what: Int64
    texts: list[str]
    start: Int64
    end: Int64


def anchors(base: RankTrace, base_window: Window, other: RankTrace, other_window: Window) -> Int64:
    """Which instants of a window of one run correspond to which of a window of another?

    Device work that starts in the windows is paired in order of launch: the longest common subsequence of the
    operators that launched it, with the innermost module around them (`Paths.kinds`); work outside any is
    identified by its name. If one of the windows has no device work, operators are paired in the same way.
    The starts and the ends of paired events correspond, except those that would make time run backwards,
    since streams overtake each other.

    Args:
        base_window, other_window: start and end of the windows, ns.

    Returns:
        int64[n, 2] instants of base and other, ns; both columns rise strictly; the first row is the windows'
        start, the last one their end.

    Raises:
        ValueError: a window does not end after it starts.
    """
    edges = np.array([base_window, other_window], np.int64).T
    if (edges[0] >= edges[1]).any():
        raise ValueError(f"a window must end after it starts, unlike {base_window} or {other_window}")
    first, second = _device_work(base, base_window), _device_work(other, other_window)
    if not (len(first.what) and len(second.what)):
        first, second = _operators(base, base_window), _operators(other, other_window)
    at, to = aligned(*_common(first, second)).T
    times = np.stack(
        [
            np.concatenate([first.start[at], first.end[at]]),
            np.concatenate([second.start[to], second.end[to]]),
        ],
        axis=1,
    )
    times = times[((times > edges[0]) & (times < edges[1])).all(axis=1)]
    # Of equal times of the base, the later one of the other run comes first, so that only one is used.
    times = times[np.lexsort((-times[:, 1], times[:, 0]))]
    return np.concatenate([edges[:1], times[longest_rise(times[:, 1])], edges[1:]])


def counterpart(
    base: RankTrace, row: int, base_window: Window, other: RankTrace, other_window: Window
) -> int:
    """Which row of another run does what an event of this one does?

    Device work is paired with device work and operators with operators, as `anchors` pairs them.

    Args:
        base: the rank of the event.
        row: its row.
        base_window, other_window: start and end, ns, of the steps that correspond; it starts in the first.
        other: the rank of the other run.

    Returns:
        The row, or -1 where nothing corresponds.
    """
    sequence = _device_work if base.is_device[row] else _operators
    first, second = sequence(base, base_window), sequence(other, other_window)
    at, to = aligned(*_common(first, second)).T
    found = np.flatnonzero(first.rows[at] == row)
    return int(second.rows[to[found[0]]]) if len(found) else -1


def _device_work(rank_trace: RankTrace, window: Window) -> _Sequence:
    work = rank_trace.is_device & (rank_trace.event_class != EventClass.SYNC)
    rows = np.flatnonzero(work & (rank_trace.start >= window[0]) & (rank_trace.start < window[1]))
    launch = rank_trace.launch[rows]
    launched = np.where(launch >= 0, rank_trace.start[launch], rank_trace.start[rows])
    rows = rows[np.lexsort((rank_trace.start[rows], launched))]
    return _sequence(rank_trace, rows)


def _operators(rank_trace: RankTrace, window: Window) -> _Sequence:
    calls = call_paths(rank_trace).chosen & (rank_trace.event_class == EventClass.HOST_OP)
    rows = np.flatnonzero(calls & (rank_trace.start >= window[0]) & (rank_trace.start < window[1]))
    return _sequence(rank_trace, rows[np.lexsort((-rank_trace.end[rows], rank_trace.start[rows]))])


def _sequence(rank_trace: RankTrace, rows: Int64) -> _Sequence:
    paths = call_paths(rank_trace)
    path = paths.around[rows]
    known = len(paths.kinds)
    code = np.where(path >= 0, path, known + rank_trace.name[rows]).astype(np.int64)
    found, what = np.unique(code, return_inverse=True)
    texts = [
        paths.kinds[number] if number < known else rank_trace.names[number - known]
        for number in found.tolist()
    ]
    return _Sequence(rows, what.astype(np.int64), texts, rank_trace.start[rows], rank_trace.end[rows])


def _common(first: _Sequence, second: _Sequence) -> tuple[Int64, Int64]:
    """Both sequences as numbers, equal for equal texts."""
    numbers: dict[str, int] = {}
    for text in (*first.texts, *second.texts):
        numbers.setdefault(text, len(numbers))
    place = [np.array([numbers[text] for text in side.texts], np.int64) for side in (first, second)]
    return place[0][first.what], place[1][second.what]
