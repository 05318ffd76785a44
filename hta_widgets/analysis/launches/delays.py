"""The delay from the host's call to the device's work, and calls that take longer than the work."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from hta_widgets.analysis.core.entry import Analysis
from hta_widgets.analysis.core.kept import kept
from hta_widgets.analysis.core.text_columns import stacked, text_column
from hta_widgets.analysis.launches.launched import Launched, launched_ranks
from hta_widgets.charts.spec import Bars, Histogram, Series
from hta_widgets.formatting import counted, duration, percent
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.model import Trace
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.scope import Scope

_NUMBERS = (
    "rank", "correlation", "launch_id", "event_id", "device", "stream", "call_start_ns", "start_ns",
    "cpu_dur_ns", "gpu_dur_ns", "launch_delay_ns", "latency_ns", "queued_ns", "overhead_ns",
)  # fmt: skip
_TEXTS = ("api", "name", "device_class")
_WAITS = ("latency_ns", "queued_ns", "overhead_ns", "launch_delay_ns")
_MEANS = {
    "cpu": "calls",
    "gpu": "launched",
    "launch_delay": "launched",
    "queued": "launched",
    "overhead": "launched",
}


@kept(by_rank=True)
def launch_stats(
    trace: Trace,
    scope: Scope | None = None,
    runtime_cutoff_ns: int = 50_000,
    launch_delay_cutoff_ns: int = 100_000,
) -> pd.DataFrame:
    """How long after its launch call does each kernel, copy, fill or graph start?

    Calls and events are paired by their correlation id. The time from the start of the call to the start of
    the event is split: while earlier work of the same stream still ran, the event was queued; the rest is
    launch overhead. `launch_delay_ns` counts from the end of the call, as in Holistic Trace Analysis; it is
    negative if the event started before the call returned.

    An event counts if it belongs to the scope: to an iteration through its launch, to a window if it starts
    in it. It counts with its full length; neighbouring scopes share no event.

    Args:
        trace: the job.
        scope: ranks, iterations, time window, streams, names to look at; default everything.
        runtime_cutoff_ns: calls that take longer are slow.
        launch_delay_cutoff_ns: events that start later than this after their call are delayed.

    Returns:
        One row per device event with a recorded launch, by rank, then start of the call. Columns: rank,
        correlation, launch_id (event id of the call), event_id, device, stream (int64), api (name of the
        call), name (of the event), device_class (`EventClass` label) (category), call_start_ns, start_ns,
        cpu_dur_ns, gpu_dur_ns, launch_delay_ns, latency_ns, queued_ns, overhead_ns (int64, ns; latency_ns ==
        queued_ns + overhead_ns), is_graph (the call launched several events), short_kernel (runs shorter than
        its call), slow_call, delayed (bool).

    Raises:
        MissingDataError: no selected rank has device events with a recorded launch.
    """
    scope = scope or Scope()
    frames = [
        measured(rank_trace, work, work.members(rank_trace, scope))
        for _, rank_trace, work in launched_ranks(trace, scope)
    ]
    frame = stacked(frames) if frames else _nothing()
    frame["short_kernel"] = frame["gpu_dur_ns"] < frame["cpu_dur_ns"]
    frame["slow_call"] = frame["cpu_dur_ns"] > runtime_cutoff_ns
    frame["delayed"] = frame["launch_delay_ns"] > launch_delay_cutoff_ns
    return frame


@kept(by_rank=True)
def launch_summary(
    trace: Trace,
    scope: Scope | None = None,
    runtime_cutoff_ns: int = 50_000,
    launch_delay_cutoff_ns: int = 100_000,
) -> pd.DataFrame:
    """How many launches did each host call make, and what did they cost? `launch_stats` by name of call.

    Args:
        trace, scope, runtime_cutoff_ns, launch_delay_cutoff_ns: as for `launch_stats`.

    Returns:
        One row per rank and call name, by rank, then name. Columns: rank int64, api (str), calls, graph_calls
        (calls that launched several events), launched (events) (int64), cpu_ns (all calls, each once),
        gpu_ns, latency_ns, queued_ns, overhead_ns, launch_delay_ns (all events) (int64, ns), mean_cpu_ns,
        mean_gpu_ns, mean_launch_delay_ns, mean_queued_ns, mean_overhead_ns (float64, ns), short_kernels,
        slow_calls, delayed (int64; events, calls, events).

    Raises:
        MissingDataError: no selected rank has device events with a recorded launch.
    """
    frame = launch_stats(trace, scope, runtime_cutoff_ns, launch_delay_cutoff_ns)
    ranks, rank = np.unique(frame["rank"].to_numpy(), return_inverse=True)
    apis = frame["api"].cat.categories
    # Few groups: a stable sort of small numbers, then exact sums of int64 over runs.
    group = (rank * len(apis) + frame["api"].cat.codes.to_numpy()).astype(np.int32)
    order = np.argsort(group, kind="stable")
    found, runs = np.unique(group[order], return_index=True)

    def total(values: npt.NDArray[np.generic]) -> npt.NDArray[np.int64]:
        return np.add.reduceat(values.astype(np.int64)[order], runs) if len(runs) else runs.astype(np.int64)

    # The events of one call are neighbours.
    call = frame["launch_id"].to_numpy()
    first = np.ones(len(frame), np.bool_)
    first[1:] = (call[1:] != call[:-1]) | (rank[1:] != rank[:-1])
    columns = {column: frame[column].to_numpy() for column in frame if column not in _TEXTS}
    summary = pd.DataFrame(
        {
            "rank": ranks[found // max(1, len(apis))].astype(np.int64),
            "api": pd.Series([apis[code % max(1, len(apis))] for code in found.tolist()], dtype="str"),
            "calls": total(first),
            "graph_calls": total(first & columns["is_graph"]),
            "launched": total(np.ones(len(frame), np.bool_)),
            "cpu_ns": total(np.where(first, columns["cpu_dur_ns"], 0)),
            "gpu_ns": total(columns["gpu_dur_ns"]),
            **{column: total(columns[column]) for column in _WAITS},
            "short_kernels": total(columns["short_kernel"]),
            "slow_calls": total(first & columns["slow_call"]),
            "delayed": total(columns["delayed"]),
        }
    )
    for part, whole in _MEANS.items():
        summary[f"mean_{part}_ns"] = summary[f"{part}_ns"] / summary[whole]
    return summary


def sentence(frame: pd.DataFrame) -> str:
    """The answer of `launch_stats` in words."""
    if frame.empty:
        return "No launched device work lies in the selection."
    apis, latency = frame["api"].value_counts(), duration(float(frame["latency_ns"].median()))
    if len(frame) == 1:
        return f"1 device event was launched, by {apis.index[0]}. It starts {latency} after its call began."
    most = "all" if len(apis) == 1 else "most"
    text = (
        f"{len(frame):,} device events were launched, {most} by {apis.index[0]}. The median starts {latency} "
        "after its call began."
    )
    own = frame[~frame["is_graph"]]  # a call that launches many is longer than most of them
    if len(own) < 2:
        return text
    short = percent(100.0 * float(own["short_kernel"].mean()))
    if len(own) == len(frame):
        return f"{text} {short} run shorter than the call that launched them."
    return f"{text} {short} of the {len(own):,} that a call launched alone run shorter than it."


def measured(rank_trace: RankTrace, work: Launched, chosen: npt.NDArray[np.intp]) -> pd.DataFrame:
    """The rows of `launch_stats` for these events of a rank, without what depends on cut-offs."""
    rows, calls = work.rows[chosen], work.calls[chosen]
    start, call_start = work.start[chosen], work.call_start[chosen]
    latency = start - call_start
    queued = np.clip(np.minimum(work.free_ns[chosen], start) - call_start, 0, np.maximum(latency, 0))
    lanes = work.lanes[work.lane[chosen]]
    numbers = dict(
        zip(
            _NUMBERS,
            (
                np.full(len(rows), rank_trace.rank, np.int64), rank_trace.correlation[rows],
                rank_trace.event_id[calls].astype(np.int64), rank_trace.event_id[rows].astype(np.int64),
                lanes[:, 0], lanes[:, 1], call_start, start, rank_trace.dur[calls], rank_trace.dur[rows],
                start - rank_trace.end[calls], latency, queued, latency - queued,
            ),
            strict=True,
        )
    )  # fmt: skip
    texts = _names(rank_trace, rows, calls)
    return pd.DataFrame({**numbers, **texts, "is_graph": work.siblings[chosen] > 1}, copy=False)


def _names(
    rank_trace: RankTrace, rows: npt.NDArray[np.int64], calls: npt.NDArray[np.int64]
) -> dict[str, object]:
    labels = [member.label for member in EventClass]
    return {
        "api": text_column(rank_trace.name[calls], rank_trace.names),
        "name": text_column(rank_trace.name[rows], rank_trace.names),
        "device_class": text_column(rank_trace.event_class[rows], labels),
    }


def _nothing() -> pd.DataFrame:
    """The frame of a job without ranks."""
    frame = pd.DataFrame(columns=[*_NUMBERS, *_TEXTS, "is_graph"])
    kinds = dict.fromkeys(_NUMBERS, "int64") | dict.fromkeys(_TEXTS, "category") | {"is_graph": "bool"}
    return frame.astype(kinds)


def summary_sentence(frame: pd.DataFrame) -> str:
    """The answer of `launch_summary` in words."""
    calls = frame.groupby("api", sort=True)[["calls", "cpu_ns"]].sum()
    if not calls["calls"].sum():
        return "No launch call lies in the selection."
    most = calls.sort_values("cpu_ns", ascending=False, kind="stable").iloc[0]
    number = counted(int(calls["calls"].sum()), "launch call")
    text = f"{number} took {duration(calls['cpu_ns'].sum())} of host time"
    if most["calls"] == calls["calls"].sum():
        return f"{text}, all of it {most.name}."
    largest = f"{duration(most['cpu_ns'])} in {counted(most['calls'], 'call')}"
    return f"{text}. The largest part is {most.name}: {largest}."


LAUNCH_STATS = Analysis(
    label="Launch delays",
    group="Host",
    title="How long launches take to start",
    function=launch_stats,
    sentence=sentence,
    chart=Histogram(
        "latency_ns",
        "host",
        part=Series("queued_ns", "Mostly behind earlier work", "compute"),
        rest="Mostly launching",
        measure="From start of call to start of event",
    ),
    requires=("launch calls of device events",),
)

LAUNCH_SUMMARY = Analysis(
    label="Launch calls",
    group="Host",
    title="Which calls launch device work",
    function=launch_summary,
    sentence=summary_sentence,
    chart=Bars("cpu_ns", ("api",), "host", names="api", measure="Host time"),
    requires=("launch calls of device events",),
)
