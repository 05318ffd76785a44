"""The gaps in each device's work one by one: how long, why, and which launch ended them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from hta_widgets.analysis.core.entry import Analysis
from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.core.kept import kept
from hta_widgets.analysis.core.text_columns import stacked, text_column
from hta_widgets.analysis.device_time.busy import busy_ranks
from hta_widgets.analysis.idle.breakdown import CONSECUTIVE_KERNEL_DELAY_NS
from hta_widgets.analysis.idle.causes import CAUSES, IdleCauses, idle_causes
from hta_widgets.arrays import Int64
from hta_widgets.charts.spec import Bars
from hta_widgets.formatting import counted, decapitalised, duration
from hta_widgets.kernel_names import short_kernel_name
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.model import Trace
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.reader.schema import NULL
from hta_widgets.trace.scope import Scope

_INTEGERS = (
    "rank", "start_ns", "end_ns", "dur_ns", *(f"{cause}_ns" for cause in CAUSES),
    "event_id", "stream", "launch_id", "operator_id",
)  # fmt: skip
_TEXTS = ("cause", "name", "launch_name", "operator_name", "thread")


@kept(by_rank=True)
def idle_gaps(
    trace: Trace,
    scope: Scope | None = None,
    *,
    consecutive_kernel_delay_ns: int = CONSECUTIVE_KERNEL_DELAY_NS,
) -> pd.DataFrame:
    """Which gaps are in the work of each rank's device, with which causes, and what ended them?

    These are the gaps that `idle_breakdown` adds up, with the causes defined there, clipped to the windows of
    the scope.

    Args:
        trace: the job.
        scope: ranks, iterations, time window, streams, names to look at; default everything.
        consecutive_kernel_delay_ns: as in `idle_breakdown`.

    Returns:
        One row per gap, by rank and time. Columns: rank, start_ns, end_ns (ns on the job's axis), dur_ns,
        host_sync_ns, data_stall_ns, host_busy_ns, launch_latency_ns, kernel_wait_ns, device_wait_ns,
        unknown_ns, edge_ns (these add up to dur_ns), event_id of the device work that ends the gap, its
        stream, launch_id, its launching call, operator_id, the innermost operator around that call (int64;
        ids and stream are -1 where there is none), cause (the longest part), name, launch_name,
        operator_name, thread of the launch (category, empty where there is none).

    Raises:
        MissingDataError: no selected rank has device events.
    """
    scope = scope or Scope()
    frames = [
        _gaps(rank_trace, idle_causes(rank_trace, scope, consecutive_kernel_delay_ns), scope)
        for _, rank_trace, _ in busy_ranks(trace, scope)
    ]
    if not frames:
        return pd.DataFrame(columns=[*_INTEGERS, *_TEXTS]).astype(
            dict.fromkeys(_INTEGERS, "int64")
            | dict.fromkeys(_TEXTS, pd.CategoricalDtype(pd.Index([], dtype="str")))
        )
    return stacked(frames)


def explain(gap: pd.Series) -> str:
    """One row of `idle_gaps` in sentences."""
    length = duration(gap["dur_ns"])
    if not gap["name"]:
        return f"Idle for {length}: no device work follows."
    parts = sorted(
        ((int(gap[f"{cause}_ns"]), cause) for cause in CAUSES if gap[f"{cause}_ns"] > 0),
        key=lambda part: -part[0],
    )
    passed = [f"{duration(part)} passed {_REASONS[cause]}." for part, cause in parts]
    if len(passed) == 1:
        passed = [f"All of it passed {_REASONS[parts[0][1]]}."]
    text = f"Idle for {length} until {short_kernel_name(gap['name'])}"
    if gap["launch_id"] >= 0:
        launch = f"{gap['operator_name']} -> {gap['launch_name']}".removeprefix(" -> ")
        text += f", launched by {launch} on thread {gap['thread']}"
    return " ".join([f"{text}.", *passed])


def sentence(frame: pd.DataFrame) -> str:
    """The answer of a gap list in words: its longest gap."""
    if frame.empty:
        return "The device is never idle in the selection."
    longest = frame.iloc[frame["dur_ns"].to_numpy().argmax()]
    gaps = f"{counted(len(frame), 'gap')} {'takes' if len(frame) == 1 else 'take'}"
    total = duration(int(frame["dur_ns"].sum()))
    return f"{gaps} {total} in all. The longest: {decapitalised(explain(longest))}"


_REASONS = {
    "host_sync": "while the host was blocked in a synchronising call",
    "data_stall": "while the host waited for the data loader",
    "host_busy": "before the host began the launch",
    "launch_latency": "from the launch call to the start",
    "kernel_wait": "between two queued kernels",
    "device_wait": "while it was launched but blocked",
    "unknown": "without a recorded launch",
    "edge": "outside the recorded device work",
}


def _gaps(rank_trace: RankTrace, idle: IdleCauses, scope: Scope) -> pd.DataFrame:
    windows = Intervals.union(*rank_trace.windows(scope).T)
    pieces = windows & idle.gaps
    row = idle.next_row[np.searchsorted(idle.gaps.end, pieces.end)]
    launch = np.where(row >= 0, rank_trace.launch[row], -1)
    operator = _operator(rank_trace, np.where(row >= 0, rank_trace.issuer[row], -1))
    parts = {cause: _length_in_each(windows & part, pieces) for cause, part in idle.causes.items()}
    longest = np.argmax(np.stack([parts[cause] for cause in CAUSES]), axis=0)
    stream = _or(-1, rank_trace.stream, row)
    columns = {
        "rank": np.full(len(pieces), rank_trace.rank, np.int64),
        "start_ns": pieces.start,
        "end_ns": pieces.end,
        "dur_ns": pieces.end - pieces.start,
        **{f"{cause}_ns": parts[cause] for cause in CAUSES},
        "event_id": _or(-1, rank_trace.event_id, row),
        "stream": np.where(stream == NULL, -1, stream),
        "launch_id": _or(-1, rank_trace.event_id, launch),
        "operator_id": _or(-1, rank_trace.event_id, operator),
        "cause": _text(longest, list(CAUSES)),
        "name": _text(_or(-1, rank_trace.name, row), rank_trace.names),
        "launch_name": _text(_or(-1, rank_trace.name, launch), rank_trace.names),
        "operator_name": _text(_or(-1, rank_trace.name, operator), rank_trace.names),
        "thread": _text(_or(-1, rank_trace.tid, launch), rank_trace.tids),
    }
    return pd.DataFrame(columns, copy=False)


def _operator(rank_trace: RankTrace, call: npt.NDArray[np.integer]) -> Int64:
    """The innermost host operator around each call, -1 for none."""
    found = np.where(call >= 0, rank_trace.parent[call], -1).astype(np.int64)
    while len(
        climbing := np.flatnonzero((found >= 0) & (rank_trace.event_class[found] != EventClass.HOST_OP))
    ):
        found[climbing] = rank_trace.parent[found[climbing]]
    return found


def _length_in_each(part: Intervals, pieces: Intervals) -> Int64:
    """Length in each of the pieces of what is part of them: no interval of it lies in two."""
    count = np.bincount(np.searchsorted(pieces.end, part.start, side="right"), minlength=len(pieces))
    stop = np.cumsum(count)
    before = np.append(0, np.cumsum(part.end - part.start))
    return before[stop] - before[stop - count]


def _or(otherwise: int, column: npt.NDArray[np.integer], row: npt.NDArray[np.integer]) -> Int64:
    return np.where(row >= 0, column[row].astype(np.int64), otherwise)


def _text(code: npt.NDArray[np.integer], texts: list[str]) -> pd.Categorical[str]:
    """The texts of the codes; -1 is the empty text."""
    return text_column(np.where(code >= 0, code, len(texts)), [*texts, ""])


ANALYSIS = Analysis(
    label="Idle gaps",
    group="Time",
    title="Which gaps each device waits in",
    function=idle_gaps,
    sentence=sentence,
    chart=Bars("dur_ns", ("rank", "name"), "cause", window=("start_ns", "end_ns"), measure="Idle time"),
    requires=("device events",),
)
