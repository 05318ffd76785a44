"""How far the replay of a recording can be trusted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.idle.pauses import telling
from hta_widgets.analysis.idle.places import short_place
from hta_widgets.analysis.replay.edge_list import targets
from hta_widgets.analysis.replay.graph import Graph, graph_of
from hta_widgets.analysis.replay.kinds import (
    COLLECTIVE,
    EVENT_STARTS,
    HANDOFF,
    HOST,
    LATE,
    LAUNCH,
    LAUNCH_FIRST,
    ORIGIN,
    ORPHAN,
    STREAM,
    WAIT,
)
from hta_widgets.analysis.replay.passes import WHOLE, binding_chain, happens
from hta_widgets.arrays import Int64
from hta_widgets.engine import checkpoint
from hta_widgets.errors import RECORD_DEVICE, MissingDataError
from hta_widgets.formatting import brief, percent
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.model import Trace
from hta_widgets.trace.ordering import among
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.scope import Scope

WORST_ERROR_PCT = 5.0
"""A graph that misses the recorded time by more does not explain it."""
WORST_UNLAUNCHED_PCT = 50.0
WORST_UNSEEN_PCT = 20.0
"""Of the critical path: work from before the recording, or host time in which nothing was recorded."""
MODEL_GAP = 50_000
"""The longest gap before an event without a launch that the model takes for granted, ns."""
LONGEST_CALL = 0.5
"""A call as long as this share of the recording says nothing about what happened in it."""
_MENTIONED_PCT = 1.0
_NEARLY_ALL = 0.9
_CALLS = (EventClass.HOST_OP, EventClass.RUNTIME, EventClass.PYTHON)


@dataclass(frozen=True)
class Quality:
    """How far a replay can be trusted; the columns of `replay_quality`."""

    reason: str
    exact_error_ns: int
    model_error_pct: float
    unlaunched_pct: float
    unexplained: int
    unexplained_ns: int
    inferred: int
    edges: int
    before_recording_pct: float
    unrecorded_host_pct: float

    @property
    def trusted(self) -> bool:
        return not self.reason


_DTYPES = {"str": "str", "int": "int64", "float": "float64"}


def replay_quality(trace: Trace, scope: Scope | None = None) -> pd.DataFrame:
    """Can the replay of these recordings be trusted, and if not, why?

    Args:
        trace: the job.
        scope: the ranks to look at; the rest of it is ignored, since a replay is of a whole recording.

    Returns:
        One row per rank with device work. Columns: rank int64; trusted bool; reason str, why not, else empty;
        exact_error_ns int64, by how much the replay of the unchanged recording differs from it at most (0);
        model_error_pct float64, how far its extent is off without what the graph does not explain (% of the
        extent); unlaunched_pct float64, device time (or events, if that is more) without a recorded launch
        (%); unexplained int64, device events that start late for no known cause, and unexplained_ns int64 by
        how much in all; inferred int64, dependencies that no event records, of edges int64 in all;
        before_recording_pct, unrecorded_host_pct float64, what the critical path spends waiting for work of
        before the recording, and on the host while nothing was recorded there (% of the path).

    Raises:
        MissingDataError: no selected rank has device work.
    """
    rows = []
    for rank in trace.ranks_of(scope or Scope()):
        found = quality_of(trace.rank(rank))
        if found is not None:
            rows.append({"rank": rank, "trusted": found.trusted, **vars(found)})
    if not rows:
        raise MissingDataError("device events", RECORD_DEVICE)
    return pd.DataFrame(rows).astype({each.name: _DTYPES[str(each.type)] for each in fields(Quality)})


@memoize_per_rank()
def quality_of(rank_trace: RankTrace) -> Quality | None:
    """How far the replay of a rank can be trusted; None without device work."""
    graph = graph_of(rank_trace)
    if graph is None:
        return None
    weight = graph.weight + graph.residual
    exact = happens(graph.first, graph.source, weight)
    chain = binding_chain(graph.first, graph.source, weight, graph.time, graph.last, WHOLE)
    model = happens(graph.first, graph.source, _model_weights(rank_trace, graph))
    late = np.flatnonzero(graph.residual > graph.latency)
    late = late[graph.node_kind[targets(graph.first, late)] == EVENT_STARTS]
    extent = max(graph.extent, 1)
    error_pct = 100.0 * (int(model.max()) - graph.extent) / extent
    unlaunched_pct = _unlaunched(rank_trace, graph)
    before_pct = 100.0 * _before_recording(graph, chain, weight) / extent
    unrecorded = _unrecorded(rank_trace, graph, chain)
    unrecorded_pct = 100.0 * unrecorded.ns / extent
    return Quality(
        reason=_reason(rank_trace, unlaunched_pct, error_pct, before_pct)
        or (unrecorded.reason(extent) if unrecorded_pct > WORST_UNSEEN_PCT else ""),
        exact_error_ns=0 if np.array_equal(exact, graph.time) else int(np.abs(exact - graph.time).max()),
        model_error_pct=error_pct,
        unlaunched_pct=unlaunched_pct,
        unexplained=len(late),
        unexplained_ns=int(graph.residual[late].sum()),
        inferred=int(graph.inferred.sum()),
        edges=len(graph.kind),
        before_recording_pct=before_pct,
        unrecorded_host_pct=unrecorded_pct,
    )


def trusted_ranks(trace: Trace, ranks: Sequence[int]) -> list[int]:
    """Those of the ranks whose replay can be trusted.

    Raises:
        MissingDataError: none has device work, or none can be trusted.
    """
    found, reasons = [], []
    for rank in ranks:
        checkpoint()
        quality = quality_of(trace.rank(rank))
        if quality is not None and quality.trusted:
            found.append(rank)
        elif quality is not None:
            reasons.append(f"rank {rank}: {quality.reason}" if len(ranks) > 1 else quality.reason)
    if found:
        return found
    if reasons:
        raise MissingDataError(
            "recording whose replay can be trusted",
            "Record whole iterations with host and device: "
            "torch.profiler.profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]).",
            reasons[0],
        )
    raise MissingDataError("device events", RECORD_DEVICE)


def first_trusted(trace: Trace, ranks: Sequence[int]) -> int:
    """The first of these ranks whose replay can be trusted, else the first with device work (or at all)."""
    with_work = []
    for rank in ranks:
        checkpoint()
        quality = quality_of(trace.rank(rank))
        if quality is not None:
            if quality.trusted:
                return rank
            with_work.append(rank)
    return (with_work or ranks)[0]


def _reason(rank_trace: RankTrace, unlaunched: float, error: float, before: float) -> str:
    """Why a replay is not to be trusted, empty if it is; all but the rank in % as in `Quality`."""
    recording = rank_trace.recording
    if recording.kind == "graph capture":
        return "most of what it launches is captured into a graph and does not run"
    if recording.filtered:
        return "events were removed from the file"
    if recording.lacks_device_work:
        return f"{recording.unanswered} of {recording.launches} launches have no device work"
    if unlaunched > WORST_UNLAUNCHED_PCT:
        return f"{percent(unlaunched)} of the device work has no recorded launch"
    if abs(error) > WORST_ERROR_PCT:
        return f"simulated without changes, its time is off by {percent(abs(error))}"
    if before > WORST_UNSEEN_PCT:
        return f"{percent(before)} of the recording waits for work from before it"
    return ""


def _model_weights(rank_trace: RankTrace, graph: Graph) -> Int64:
    """Weights without residuals and with the usual latency and gaps: what the graph alone explains."""
    weight = graph.weight.copy()
    launch = np.flatnonzero(graph.kind == LAUNCH)
    calls = np.sort(rank_trace.launch[rank_trace.launch >= 0], kind="stable")  # quick: almost in order
    graphs = np.zeros(rank_trace.n, np.bool_)
    graphs[calls[1:][calls[1:] == calls[:-1]]] = True
    of_graph = graphs[graph.row[graph.source[launch]]]
    weight[launch] = np.where(of_graph, graph.graph_latency, graph.latency)
    weight[among(graph.kind, (STREAM, WAIT, COLLECTIVE, LATE))] = graph.gap
    orphan = graph.kind == ORPHAN
    weight[orphan] = np.minimum(weight[orphan], MODEL_GAP)
    return weight


def _unlaunched(rank_trace: RankTrace, graph: Graph) -> float:
    rows = graph.row[graph.node_kind == EVENT_STARTS]
    missing = rank_trace.launch[rows] < 0
    time, whole = int(rank_trace.dur[rows[missing]].sum()), int(rank_trace.dur[rows].sum())
    return 100.0 * max(time / max(whole, 1), float(missing.mean()))


def _before_recording(graph: Graph, chain: Int64, weight: Int64) -> int:
    """What the critical path spends before the first thing that the recording explains, ns."""
    early = chain[np.isin(graph.kind[chain], (ORIGIN, LAUNCH_FIRST))]
    return max(int(weight[early].sum()) - graph.latency, 0)


class _Unrecorded(NamedTuple):
    """What the critical path spends on host threads with nothing recorded that is short enough to tell."""

    ns: int  # all of it
    silent_ns: int  # in no call
    call: str  # the innermost one that most of the rest lies in, and in_call_ns: how much
    in_call_ns: int

    def reason(self, extent: int) -> str:
        silent, in_call = (100.0 * ns / extent for ns in (self.silent_ns, self.in_call_ns))
        if in_call < _MENTIONED_PCT:
            on_host = "the critical path is on the host, where nothing is recorded"
            return f"for {percent(silent)} of the time {on_host}"
        rest = f". For {percent(silent)} of it nothing is recorded" if silent >= _MENTIONED_PCT else ""
        where = f"the critical path is in one call of the host ({self.call})"
        return f"for {percent(in_call)} of the time {where}{rest}"


def _unrecorded(rank_trace: RankTrace, graph: Graph, chain: Int64) -> _Unrecorded:
    """What the critical path spends on host threads while no call is open on them, or only long ones."""
    on_host = chain[np.isin(graph.kind[chain], (HOST, HANDOFF)) & (graph.weight[chain] > 0)]
    short = ~rank_trace.is_device & (rank_trace.dur < LONGEST_CALL * graph.extent)
    long = among(rank_trace.event_class, _CALLS)
    long[telling(rank_trace)] = True
    long &= ~short
    short &= (rank_trace.parent < 0) | ~short[rank_trace.parent]  # what they call lies within them
    lost = silent = 0
    held: list[tuple[int, int]] = []
    for index, thread in enumerate(graph.threads.tolist()):
        mine = on_host[graph.thread[on_host] == index]
        if not len(mine):
            continue
        on_thread = rank_trace.thread == thread
        begin = graph.origin_ns + graph.time[graph.source[mine]]
        left = Intervals.union(begin, begin + graph.weight[mine]) - _open(rank_trace, short & on_thread)
        lost += left.length
        silent += (left - _open(rank_trace, long & on_thread)).length
        for row in np.flatnonzero(long & on_thread).tolist():
            held.append(((left & _open(rank_trace, np.array([row]))).length, row))
    most = max(held, default=(0, 0))[0]
    inner = [(int(rank_trace.dur[row]), row, ns) for ns, row in held if ns and ns >= _NEARLY_ALL * most]
    if not inner:
        return _Unrecorded(lost, silent, "", 0)
    _, row, in_call = min(inner)
    return _Unrecorded(lost, silent, brief(short_place(rank_trace.names[rank_trace.name[row]])), in_call)


def _open(rank_trace: RankTrace, chosen: npt.NDArray[np.generic]) -> Intervals:
    return Intervals.union(rank_trace.start[chosen], rank_trace.end[chosen])
