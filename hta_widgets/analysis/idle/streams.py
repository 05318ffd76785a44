"""How long each stream waits between its kernels, and for what: HTA's three categories, exactly."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from hta_widgets.analysis.core.entry import Analysis
from hta_widgets.analysis.core.kept import kept
from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.idle.breakdown import CONSECUTIVE_KERNEL_DELAY_NS
from hta_widgets.charts.spec import Series, Stack
from hta_widgets.engine import checkpoint
from hta_widgets.errors import RECORD_DEVICE, MissingDataError
from hta_widgets.formatting import duration, none_of, percent
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.model import Trace
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.reader.schema import NULL
from hta_widgets.trace.scope import Scope

CATEGORIES = ("host_wait", "kernel_wait", "other")
_STATISTICS = ("mean_ns", "std_ns", "min_ns", "p25_ns", "p50_ns", "p75_ns", "max_ns")
_KEYS = ("rank", "device", "stream", "category")
_COLUMNS = (*_KEYS, "start_ns", "dur_ns", "event_id", "launch_id")


class _Lanes:
    """A rank's device work stream by stream, in order of start, with the pause before each event.

    Attributes:
        rows: rows with a stream, by device, stream, start.
        free: when the stream became free: the latest end among all earlier rows of the stream.
        gap: max(0, start - free).
        late: the launch call began after the stream was free.
        follows: the row is not the first of its stream (only then the others mean anything).
    """

    def __init__(self, rank_trace: RankTrace) -> None:
        rows = np.flatnonzero(
            rank_trace.is_device & (rank_trace.event_class != EventClass.SYNC) & (rank_trace.stream != NULL)
        )
        order = np.lexsort(
            (
                rank_trace.event_id[rows],
                rank_trace.end[rows],
                rank_trace.start[rows],
                rank_trace.stream[rows],
                rank_trace.device[rows],
            )
        )
        self.rows: npt.NDArray[np.int64] = rows[order]
        lane_device, lane_stream = rank_trace.device[self.rows], rank_trace.stream[self.rows]
        first = np.ones(len(rows), np.bool_)
        first[1:] = (lane_device[1:] != lane_device[:-1]) | (lane_stream[1:] != lane_stream[:-1])
        self.follows = ~first
        self.lane = np.cumsum(first) - 1
        start, end = rank_trace.start[self.rows], rank_trace.end[self.rows]
        self.free = np.zeros(len(rows), np.int64)
        edges = np.append(np.flatnonzero(first), len(rows))
        for begin, stop in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
            self.free[begin + 1 : stop] = np.maximum.accumulate(end[begin:stop])[:-1]
        self.gap = np.maximum(start - self.free, 0)
        self.late = self.follows & (rank_trace.launched_at(self.rows) > self.free)


_lanes_of = memoize_per_rank()(_Lanes)


def stream_idle_intervals(
    trace: Trace,
    scope: Scope | None = None,
    *,
    consecutive_kernel_delay_ns: int = CONSECUTIVE_KERNEL_DELAY_NS,
) -> pd.DataFrame:
    """The pause before each device event on its stream: one row per event but the first of each stream.

    Args:
        trace, scope, consecutive_kernel_delay_ns: as for `stream_idle_breakdown`, which has the definitions.

    Returns:
        Columns: rank, device, stream (int64; device: the least int64 where unknown), category (categorical:
        host_wait, kernel_wait, other), start_ns (int64, when the stream became free, ns on the job's axis),
        dur_ns (int64, 0 where the event follows at once), event_id (int64, the event that ends the pause),
        launch_id (int64, its launching call, -1 for none); by rank, device, stream, time.

    Raises:
        MissingDataError: no selected rank has device events on a stream.
    """
    frames = []
    for rank_trace, lanes, chosen in _chosen(trace, scope or Scope()):
        rows = lanes.rows[chosen]
        launch = rank_trace.launch[rows]
        frames.append(
            pd.DataFrame(
                {
                    "rank": np.full(len(rows), rank_trace.rank, np.int64),
                    "device": rank_trace.device[rows],
                    "stream": rank_trace.stream[rows],
                    "category": pd.Categorical.from_codes(
                        _category(lanes, chosen, consecutive_kernel_delay_ns), categories=pd.Index(CATEGORIES)
                    ),
                    "start_ns": rank_trace.start[rows] - lanes.gap[chosen],
                    "dur_ns": lanes.gap[chosen],
                    "event_id": rank_trace.event_id[rows].astype(np.int64),
                    "launch_id": np.where(launch >= 0, rank_trace.event_id[launch], -1).astype(np.int64),
                }
            )
        )
    if not frames:
        empty = pd.DataFrame(columns=list(_COLUMNS)).astype("int64")
        return empty.assign(category=pd.Categorical([], categories=list(CATEGORIES)))
    return pd.concat(frames, ignore_index=True)


@kept(by_rank=True)
def stream_idle_breakdown(
    trace: Trace,
    scope: Scope | None = None,
    *,
    consecutive_kernel_delay_ns: int = CONSECUTIVE_KERNEL_DELAY_NS,
) -> pd.DataFrame:
    """How long does each stream wait between its device events, by category, with statistics?

    This is the idle time breakdown of Holistic Trace Analysis (Analysis > Idle Time Breakdown). A stream is
    free at t when all its events that began before have ended; the next one to start, k, ends a pause of
    max(0, start - t). The first that holds gives the category of the whole pause:

    1. `host_wait`: the launch call of k began after t;
    2. `kernel_wait`: the pause is shorter than `consecutive_kernel_delay_ns`;
    3. `other`: k was launched in time, or its launch was not recorded, and it starts late all the same.

    Streams are independent: a pause of one stream counts even while another works. For the idle time of the
    whole device use `idle_breakdown`. A whole pause belongs to the event that ends it, and with it to the
    scope: to its iteration (that of its launch) and to the time window it starts in. So neighbouring scopes
    add up. The filters of streams and names select events; the pause before an event is always that of its
    whole stream.

    Args:
        trace: the job.
        scope: ranks, iterations, time window, streams, names to look at; default everything.
        consecutive_kernel_delay_ns: see above.

    Returns:
        One row per rank, device, stream and category (always all three), ascending. Columns: rank, device,
        stream (int64; device: the least int64 where unknown), category (str), idle_ns (int64), idle_pct
        (float64, % of the stream's idle_ns; NaN if that is 0), count (int64, pauses, those of length 0
        included), mean_ns, std_ns (of the sample), min_ns, p25_ns, p50_ns, p75_ns, max_ns (float64, ns; NaN
        where undefined).

    Raises:
        MissingDataError: no selected rank has device events on a stream.
    """
    rows = []
    for rank_trace, lanes, chosen in _chosen(trace, scope or Scope()):
        group = lanes.lane[chosen] * len(CATEGORIES) + _category(lanes, chosen, consecutive_kernel_delay_ns)
        order = np.argsort(group, kind="stable")
        gaps, group = lanes.gap[chosen][order], group[order]
        for lane in _lanes_in(rank_trace, lanes, scope or Scope()):
            checkpoint()
            place = lanes.rows[np.searchsorted(lanes.lane, lane)]
            for code, category in enumerate(CATEGORIES):
                number = lane * len(CATEGORIES) + code
                chosen = gaps[np.searchsorted(group, number) : np.searchsorted(group, number, side="right")]
                where = (
                    rank_trace.rank,
                    int(rank_trace.device[place]),
                    int(rank_trace.stream[place]),
                    category,
                )
                rows.append((*where, int(chosen.sum()), *interval_statistics(chosen)))
    frame = pd.DataFrame(rows, columns=[*_KEYS, "idle_ns", "count", *_STATISTICS])
    frame = frame.astype(dict.fromkeys((*_KEYS[:3], "idle_ns", "count"), "int64") | {"category": "str"})
    frame = frame.astype(dict.fromkeys(_STATISTICS, np.float64))
    total = frame.groupby(["rank", "device", "stream"])["idle_ns"].transform("sum")
    frame.insert(5, "idle_pct", 100.0 * frame["idle_ns"] / total.where(total > 0))
    return frame


def interval_statistics(lengths: npt.NDArray[np.int64]) -> tuple[float, ...]:
    """(count, mean, std of the sample, min, 25 %, 50 %, 75 %, max), NaN where undefined."""
    nan = float("nan")
    if not len(lengths):
        return (0, *[nan] * 7)
    low, quarter, half, three, high = np.percentile(lengths, [0, 25, 50, 75, 100]).tolist()
    spread = float(lengths.std(ddof=1)) if len(lengths) > 1 else nan
    return (len(lengths), float(lengths.mean()), spread, low, quarter, half, three, high)


def sentence(frame: pd.DataFrame) -> str:
    """The answer of a stream idle breakdown in words."""
    total = int(frame["idle_ns"].sum())
    if not total:
        return "No stream waits in the selection."
    by_category = frame.groupby("category")["idle_ns"].sum()
    host = percent(100.0 * int(by_category["host_wait"]) / total)
    streams = frame.groupby(["rank", "device", "stream"], as_index=False)["idle_ns"].sum()
    most = streams.iloc[streams["idle_ns"].to_numpy().argmax()]
    return (
        f"Stream {most['stream']} of rank {most['rank']} waits longest between its kernels, "
        f"{duration(most['idle_ns'])}. "
        f"Over all streams, {host} of the waiting is for launches that came late."
    )


def _chosen(trace: Trace, scope: Scope) -> list[tuple[RankTrace, _Lanes, npt.NDArray[np.intp]]]:
    """Per rank its lanes and the positions in them of the events whose pauses lie in the scope."""
    found = []
    ranks = trace.ranks_of(scope)
    for rank in ranks:
        checkpoint()
        rank_trace = trace.rank(rank)
        lanes = _lanes_of(rank_trace)
        if not len(lanes.rows):
            continue
        chosen = lanes.follows
        if scope != Scope(ranks=scope.ranks):
            chosen = chosen & rank_trace.belong(lanes.rows, scope)
        found.append((rank_trace, lanes, np.flatnonzero(chosen)))
    if ranks and not found:
        raise MissingDataError(
            "device events on streams",
            RECORD_DEVICE,
            none_of(ranks),
        )
    return found


def _category(lanes: _Lanes, chosen: npt.NDArray[np.intp], delay: int) -> npt.NDArray[np.int8]:
    late, short = lanes.late[chosen], lanes.gap[chosen] < delay
    return np.where(late, 0, np.where(short, 1, 2)).astype(np.int8)


def _lanes_in(rank_trace: RankTrace, lanes: _Lanes, scope: Scope) -> list[int]:
    """The lanes that the scope's filter of streams lets through, with or without a pause in the scope."""
    first = np.flatnonzero(~lanes.follows)
    streams = rank_trace.stream[lanes.rows[first]]
    chosen = np.isin(streams, scope.streams) if scope.streams else np.ones(len(first), np.bool_)
    return np.flatnonzero(chosen).tolist()


ANALYSIS = Analysis(
    label="Stream idle",
    group="Time",
    title="What each stream waits for between its kernels",
    function=stream_idle_breakdown,
    sentence=sentence,
    chart=Stack(
        (
            Series("host_wait", "Host wait", "host"),
            Series("kernel_wait", "Kernel wait", "idle"),
            Series("other", "Other", "idle", "/"),
        ),
        "waiting_ns",
        ("rank", "device", "stream"),
        part="category",
        value="idle_ns",
    ),
    requires=("device events on streams",),
)
