"""Queue length and memory bandwidth over time: HTA's frames and their summaries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from hta_widgets.analysis.copies.bandwidth import memory_bandwidth
from hta_widgets.analysis.idle.streams import interval_statistics
from hta_widgets.analysis.launches.queue import queue_length
from hta_widgets.hta.common.constants import CUDA_MAX_LAUNCH_QUEUE_PER_STREAM
from hta_widgets.hta.methods.conventions import chosen_ranks, microseconds, or_else
from hta_widgets.trace.model import Trace
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.scope import Scope

_DESCRIPTION = ("count", "mean", "std", "min", "25%", "50%", "75%", "max")


@or_else(dict[int, pd.DataFrame])
def queue_length_time_series(job: Trace, ranks: Iterable[int] | None = None) -> dict[int, pd.DataFrame]:
    """How many launches wait in the queue of each stream, over time?

    Returns:
        {rank: frame}, one row per change: ts (us), pid, tid, stream, queue_length, by stream. The index is
        the event that changed it: the launch call that entered, or the device event that left. Ranks without
        launches are left out. Defined in `analysis.queue_length`.
    """
    points = queue_length(job, Scope(ranks=tuple(chosen_ranks(job, ranks))))
    return {rank: _queue_frame(job, rank, rows) for rank, rows in _by_rank(points)}


def queue_length_summary(job: Trace, ranks: Iterable[int] | None = None) -> pd.DataFrame | None:
    """Statistics of the queue length per rank and stream, over its changes (as pandas' `describe`)."""
    return queue_length_summary_from_time_series(queue_length_time_series(job, ranks))


def queue_length_summary_from_time_series(
    queue_length_dict: dict[int, pd.DataFrame],
) -> pd.DataFrame | None:
    """As `queue_length_summary`, of series already computed; None without any.

    Each point counts once, as in HTA; `analysis.queue_summary` weights lengths by time.
    """
    return _described(queue_length_dict, "stream", "queue_length")


def time_spent_blocked_on_full_queue(
    job: Trace,
    queue_length_dict: dict[int, pd.DataFrame],
    max_queue_length: int = CUDA_MAX_LAUNCH_QUEUE_PER_STREAM,
) -> pd.DataFrame:
    """How long was the queue of each stream full?

    Returns:
        rank, stream, duration_at_max_queue_length (us), relative_duration_at_max_queue_length (of the
        rank's recording); streams that never reached `max_queue_length` are left out. Defined in
        `analysis.blocked_on_full_queue`.
    """
    rows = []
    for rank, points in queue_length_dict.items():
        first, last = _extent(job.rank(rank))
        # Streams of several devices may share a number, not a process.
        for (stream, _), of_stream in points.groupby(["stream", "pid"], sort=True):
            full = of_stream["queue_length"].to_numpy()[:-1] >= max_queue_length
            if not full.any() and not (of_stream["queue_length"] >= max_queue_length).any():
                continue
            time_ns = np.rint(of_stream["ts"].to_numpy(np.float64) * 1000.0).astype(np.int64)
            held_ns = int(np.diff(time_ns)[full].sum())
            share = held_ns / (last - first) if last > first else float("nan")
            rows.append((rank, stream, held_ns / 1000.0, share))
    columns = ["rank", "stream", "duration_at_max_queue_length", "relative_duration_at_max_queue_length"]
    kinds = dict.fromkeys(columns[:2], "int64") | dict.fromkeys(columns[2:], "float64")
    return pd.DataFrame(rows, columns=columns).astype(kinds)


@or_else(dict[int, pd.DataFrame])
def memory_bw_time_series(job: Trace, ranks: Iterable[int] | None = None) -> dict[int, pd.DataFrame]:
    """How fast is memory copied and set, over time?

    Returns:
        {rank: frame}, one row per change: ts (us), pid, name (kind of copy), memory_bw_gbps (GB/s), by kind
        and time. Ranks without copies of known bandwidth are left out. Defined in
        `analysis.memory_bandwidth`.
    """
    points = memory_bandwidth(job, Scope(ranks=tuple(chosen_ranks(job, ranks))))
    return {rank: _bandwidth_frame(job, rank, rows) for rank, rows in _by_rank(points)}


def memory_bw_summary(job: Trace, ranks: Iterable[int] | None = None) -> pd.DataFrame | None:
    """Statistics of the bandwidth per rank and kind of copy while above 0 (as pandas' `describe`)."""
    frames = memory_bw_time_series(job, ranks)
    positive = {rank: frame[frame["memory_bw_gbps"] > 0] for rank, frame in frames.items()}
    return _described(positive, "name", "memory_bw_gbps")


def _by_rank(points: pd.DataFrame) -> Iterator[tuple[int, pd.DataFrame]]:
    for rank in points["rank"].unique().tolist():
        yield rank, points[points["rank"] == rank]


def _queue_frame(job: Trace, rank: int, points: pd.DataFrame) -> pd.DataFrame:
    rank_trace = job.rank(rank)
    rows = _rows(rank_trace, points["device_event_id"])
    frame = pd.DataFrame(
        {
            "ts": microseconds(points["time_ns"].to_numpy() - _zero_ns(job)),
            "pid": _as_in_file(rank_trace.pids, rank_trace.pid[rows]),
            "tid": _as_in_file(rank_trace.tids, rank_trace.tid[rows]),
            "stream": points["stream"].to_numpy(),
            "queue_length": points["queue_length"].to_numpy(),
        },
        index=pd.Index(points["event_id"].to_numpy(), name="index"),
    )
    return frame.sort_values("stream", kind="stable")


def _bandwidth_frame(job: Trace, rank: int, points: pd.DataFrame) -> pd.DataFrame:
    rank_trace = job.rank(rank)
    rows = _rows(rank_trace, points["event_id"])
    # HTA numbers the starts of all copies in file order, then their ends.
    copies, copy = np.unique(points["event_id"].to_numpy(), return_inverse=True)
    is_end = points.groupby("event_id").cumcount().to_numpy() > 0
    frame = pd.DataFrame(
        {
            "ts": microseconds(points["time_ns"].to_numpy() - _zero_ns(job)),
            "pid": _as_in_file(rank_trace.pids, rank_trace.pid[rows]),
            "name": points["kind"].to_numpy(),
            "memory_bw_gbps": points["gbps"].to_numpy(),
        },
        index=copy + len(copies) * is_end,
    )
    return frame.sort_values("name", kind="stable")


def _described(frames: dict[int, pd.DataFrame], group: str, value: str) -> pd.DataFrame | None:
    """The frame of ``groupby(["rank", group])[[value]].describe()``, in a tenth of the time."""
    if not frames:
        return None
    places, rows = [], []
    for rank, frame in frames.items():
        values = frame[value].to_numpy()
        code, names = pd.factorize(frame[group], sort=True)
        for number, name in enumerate(names):
            places.append((rank, name))
            rows.append(interval_statistics(values[code == number]))
    index = pd.MultiIndex.from_tuples(places, names=["rank", group])
    columns = pd.MultiIndex.from_product([[value], _DESCRIPTION])
    return pd.DataFrame(np.array(rows, np.float64).reshape(len(places), -1), index=index, columns=columns)


def _zero_ns(job: Trace) -> int:
    """HTA's time 0: the first event of any rank."""
    return min((_extent(job.rank(rank))[0] for rank in job.ranks if job.rank(rank).n), default=0)


def _extent(rank_trace: RankTrace) -> tuple[int, int]:
    """First start and last end of a rank's events, except the profiler's record of itself."""
    read = np.array([text != "Trace" for text in rank_trace.categories], np.bool_)[rank_trace.category]
    return (
        (int(rank_trace.start[read].min()), int(rank_trace.end[read].max()))
        if read.any()
        else rank_trace.extent
    )


def _rows(rank_trace: RankTrace, event_id: pd.Series) -> npt.NDArray[np.int32]:
    row = np.zeros(rank_trace.table.n, np.int32)
    row[rank_trace.event_id] = np.arange(rank_trace.n, dtype=np.int32)
    return row[event_id.to_numpy()]


def _as_in_file(texts: list[str], codes: npt.NDArray[np.int32]) -> npt.NDArray[Any]:
    """Process or thread ids: numbers, among texts such as "stream 7" objects."""
    values = [int(text) if text.isdecimal() and len(text) < 19 else text for text in texts]
    used = {type(values[code]) for code in np.unique(codes).tolist()}
    if used <= {int}:
        return np.array([value if isinstance(value, int) else 0 for value in values], np.int64)[codes]
    return np.array(values, object)[codes]
