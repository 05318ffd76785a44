"""How much launched work waits on each stream, and how long queues are full."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from hta_widgets.analysis.core.entry import Analysis
from hta_widgets.analysis.core.kept import kept
from hta_widgets.analysis.core.step_function import quantile
from hta_widgets.analysis.launches.stream_queues import Queue, observed_windows, stream_queues
from hta_widgets.arrays import Int64
from hta_widgets.charts.spec import Bars, Lines
from hta_widgets.formatting import counted, duration, percent, significant
from hta_widgets.trace.model import Trace
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.scope import Scope

USUAL_LIMIT: Final = 1024  # entries of a CUDA stream's queue, as Holistic Trace Analysis assumes

_POINTS = ("rank", "device", "stream", "time_ns", "queue_length", "event_id", "device_event_id")
_SUMMARY = (
    "rank",
    "device",
    "stream",
    "launched",
    "window_ns",
    "queued_ns",
    "entry_ns",
    "max",
    "p50",
    "p95",
    "p99",
)
_BLOCKED = (
    "rank",
    "device",
    "stream",
    "limit",
    "max",
    "window_ns",
    "blocked_ns",
    "calls_at_limit",
    "calls_at_limit_ns",
)


@kept(by_rank=True)
def queue_length(trace: Trace, scope: Scope | None = None) -> pd.DataFrame:
    """The number of launched but not yet started pieces of work on each stream, over time.

    A launch call puts an entry into the queue when it begins; the entry leaves when its device event starts.
    All launch calls count, by correlation: kernels, copies, fills. A graph launch is one entry on each stream
    that it uses, which leaves when the graph's first event on that stream starts: a replayed graph is one
    command to the device, however many kernels it holds. The running event is not in the queue. At equal
    times, entries leave before others enter; an event that the clocks put before its own call leaves when it
    enters, so that no length is negative.

    With iterations or a time window, the points inside, each window beginning with the length at its start.

    Args:
        trace: the job.
        scope: ranks, iterations, time window, streams, names to look at; default everything. Names pick the
            entries by the name of the device event.

    Returns:
        One row per change, by rank, device, stream, time; the length holds until the next row. Columns
        (int64): rank, device, stream, time_ns (ns), queue_length, event_id (the call that came, or the device
        event that started; -1 at the start of a window), device_event_id (the device event of the entry, -1
        there too).

    Raises:
        MissingDataError: no selected rank has device events with a recorded launch.
    """
    scope = scope or Scope()
    parts = []
    for rank_trace, queue in stream_queues(trace, scope):
        timed = scope.iterations is not None or scope.window_ns is not None
        for first, last in rank_trace.windows(scope).tolist() if timed else [(None, None)]:
            parts.append(_points(rank_trace, queue, first, last))
    columns = (
        [np.concatenate(column) for column in zip(*parts, strict=True)]
        if parts
        else [np.empty(0, np.int64)] * len(_POINTS)
    )
    return pd.DataFrame(dict(zip(_POINTS, columns, strict=True)), copy=False)


@kept(by_rank=True)
def queue_summary(trace: Trace, scope: Scope | None = None) -> pd.DataFrame:
    """How long is each stream's queue? Statistics of `queue_length`, weighted by time.

    Args:
        trace, scope: as for `queue_length`. Without iterations and time window the time from the rank's first
            launch to the end of its device work counts.

    Returns:
        One row per rank, device and stream. Columns: rank, device, stream, launched (entries that came),
        window_ns, queued_ns (time with an entry in the queue, ns), entry_ns (waiting time of all entries
        together, ns), max, p50, p95, p99 (int64), mean (float64, entries; entry_ns / window_ns), queued_pct
        (float64, % of window_ns).

    Raises:
        MissingDataError: no selected rank has device events with a recorded launch.
    """
    scope = scope or Scope()
    rows = []
    for rank_trace, queue in stream_queues(trace, scope):
        windows = observed_windows(rank_trace, scope)
        value, held = _by_length(queue, windows)
        came = _sum_inside(queue.length.time, np.maximum(queue.change, 0), windows)
        numbers = (
            rank_trace.rank, queue.device, queue.stream, came, int(held.sum()),
            int(held[value > 0].sum()), int((value * held).sum()), int(value[held > 0].max(initial=0)),
            *(quantile(value, held, share) for share in (0.5, 0.95, 0.99)),
        )  # fmt: skip
        rows.append(numbers)
    frame = pd.DataFrame(rows, columns=list(_SUMMARY)).astype(np.int64)
    whole = frame["window_ns"].where(frame["window_ns"] > 0)
    frame["mean"] = frame["entry_ns"] / whole
    frame["queued_pct"] = 100.0 * frame["queued_ns"] / whole
    return frame


@kept(by_rank=True)
def blocked_on_full_queue(trace: Trace, scope: Scope | None = None, limit: int | None = None) -> pd.DataFrame:
    """How long was each stream's queue full, so that the next launch had to wait for a place?

    Without `limit`, the limit is estimated per stream: the greatest length, if it is a plateau, else 1024; if
    the queue grew beyond 1024 unhindered, a length that it never reached. The greatest length is a plateau if
    it is at least 128, at least 16 launches reached it, and their calls took at least 4 times as long as the
    others (medians) because each had to wait for a place. Holistic Trace Analysis assumes 1024, which a queue
    that is full at 1022 never reaches.

    Args:
        trace, scope: as for `queue_summary`.
        limit: the length at which a queue counts as full.

    Returns:
        One row per rank, device and stream, full or not. Columns: rank, device, stream, limit, max,
        window_ns, blocked_ns (time at or above the limit, ns), calls_at_limit (launches that took the queue
        there), calls_at_limit_ns (how long those calls lasted in all: the host's loss) (int64), limit_source
        (str: "given", "plateau", "usual", "not reached"), blocked_pct (float64, % of window_ns).

    Raises:
        MissingDataError: no selected rank has device events with a recorded launch.
        ValueError: `limit` is not positive.
    """
    if limit is not None and limit < 1:
        raise ValueError(f"limit must be at least 1, not {limit}")
    scope = scope or Scope()
    rows = []
    for rank_trace, queue in stream_queues(trace, scope):
        plateau = queue.plateau if limit is None else None
        full = limit or plateau or max(USUAL_LIMIT, int(queue.length.value.max()) + 1)
        windows = observed_windows(rank_trace, scope)
        value, held = queue.length.within(windows)
        waiting = np.flatnonzero((queue.change > 0) & (queue.length.value >= full))
        since, calls_ns = queue.length.time[waiting], rank_trace.dur[queue.row[waiting]]
        numbers = (
            rank_trace.rank, queue.device, queue.stream, full,
            int(value[held > 0].max(initial=0)), int(held.sum()), int(held[value >= full].sum()),
            _sum_inside(since, np.ones_like(since), windows), _sum_inside(since, calls_ns, windows),
        )  # fmt: skip
        source = (
            "given" if limit else "plateau" if plateau else "usual" if full == USUAL_LIMIT else "not reached"
        )
        rows.append((*numbers, source))
    frame = pd.DataFrame(rows, columns=[*_BLOCKED, "limit_source"])
    frame = frame.astype(dict.fromkeys(_BLOCKED, np.int64) | {"limit_source": "str"})
    frame["blocked_pct"] = 100.0 * frame["blocked_ns"] / frame["window_ns"].where(frame["window_ns"] > 0)
    return frame


def sentence(frame: pd.DataFrame) -> str:
    """The answer of `queue_summary` in words."""
    frame = frame[frame["window_ns"] > 0]
    if frame.empty:
        return "No stream's queue lies in the selection."
    most = frame.iloc[int(frame["entry_ns"].to_numpy().argmax())]
    return (
        f"The longest queue is on rank {most['rank']:.0f}, stream {most['stream']:.0f}: "
        f"{significant(most['mean'])} entries on average, at most {most['max']:,.0f}. "
        f"It held work for {percent(most['queued_pct'])} of {duration(most['window_ns'])}."
    )


def _by_length(queue: Queue, windows: Int64) -> tuple[Int64, Int64]:
    """Every length and how long it held (ns) inside the windows; sums of ns are exact floats for 100 days."""
    value, held = queue.length.within(windows)
    total = np.bincount(value, weights=held, minlength=1).astype(np.int64)
    return np.arange(len(total)), total


def _sum_inside(time: Int64, amount: Int64, windows: Int64) -> int:
    """The sum of amounts at ascending times that lie inside the windows."""
    low, high = np.searchsorted(time, windows.T, side="left")
    before = np.append(0, np.cumsum(amount))
    return int((before[high] - before[low]).sum())


def _points(rank_trace: RankTrace, queue: Queue, first: int | None, last: int | None) -> tuple[Int64, ...]:
    """The columns of `queue_length` for one stream and window."""
    length = queue.length
    low, high, head = 0, len(length.time), 0
    if first is not None and last is not None:
        low, high = (int(at) for at in np.searchsorted(length.time, (first, last), side="left"))
        head = 1

    def column(at_start: int, values: npt.NDArray[np.integer[Any]]) -> Int64:
        return np.concatenate([np.full(head, at_start, np.int64), values[low:high].astype(np.int64)])

    before = int(length.value[low - 1]) if low else 0
    time = column(first or 0, length.time)
    same = (np.full(len(time), number, np.int64) for number in (rank_trace.rank, queue.device, queue.stream))
    return (
        *same, time, column(before, length.value),
        column(-1, rank_trace.event_id[queue.row]), column(-1, rank_trace.event_id[queue.device_row]),
    )  # fmt: skip


def length_sentence(frame: pd.DataFrame) -> str:
    """The answer of `queue_length` in words."""
    if frame.empty:
        return "No launch lies in the selection."
    longest = frame.iloc[int(frame["queue_length"].to_numpy().argmax())]
    length = longest["queue_length"]
    return (
        f"At most {counted(length, 'launch', 'launches')} {'waits' if length == 1 else 'wait'} at once, "
        f"on stream {longest['stream']} of rank {longest['rank']}, {duration(longest['time_ns'])} after the "
        "start."
    )


def blocked_sentence(frame: pd.DataFrame) -> str:
    """The answer of `blocked_on_full_queue` in words."""
    if frame.empty:
        return "No stream's queue lies in the selection."
    full = frame[frame["blocked_ns"] > 0]
    if full.empty:
        longest = counted(frame["max"].max(), "launch", "launches")
        return f"No queue was full: the longest held {longest}."
    most = full.iloc[int(full["blocked_ns"].to_numpy().argmax())]
    return (
        f"The queue of stream {most['stream']} on rank {most['rank']} stood at its limit of "
        f"{most['limit']:,} for {duration(most['blocked_ns'])} ({percent(most['blocked_pct'])} of the time)."
    )


QUEUE_LENGTH = Analysis(
    label="Queue length",
    group="Host",
    title="How much work waits on each stream",
    function=queue_length,
    sentence=length_sentence,
    chart=Lines("time_ns", "queue_length", ("rank", "device", "stream"), "host"),
    requires=("launch calls of device events",),
)

QUEUE_SUMMARY = Analysis(
    label="Queues",
    group="Host",
    title="How full each queue is",
    function=queue_summary,
    sentence=sentence,
    chart=Bars("queued_ns", ("rank", "device", "stream"), "host", measure="Time with work queued"),
    requires=("launch calls of device events",),
)

FULL_QUEUES = Analysis(
    label="Full queues",
    group="Host",
    title="How long launches wait for a full queue",
    function=blocked_on_full_queue,
    sentence=blocked_sentence,
    chart=Bars("blocked_ns", ("rank", "device", "stream"), "host", measure="Time full"),
    requires=("launch calls of device events",),
)
