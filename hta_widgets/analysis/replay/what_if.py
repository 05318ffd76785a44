"""How long the iterations take after a change: the recording replayed under it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
import pandas as pd

from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.device_time.busy import busy_of, iterations_in
from hta_widgets.analysis.job.replayed import Change, replayed_job_rows
from hta_widgets.analysis.kernels.peaks import peaks_of_rank
from hta_widgets.analysis.operators.formulas import registered
from hta_widgets.analysis.operators.roofs import roofs_of
from hta_widgets.analysis.replay.edit import Edit
from hta_widgets.analysis.replay.graph import Graph, graph_of
from hta_widgets.analysis.replay.kinds import EVENT_STARTS
from hta_widgets.analysis.replay.passes import ESTIMATE, MOST, PINNED
from hta_widgets.analysis.replay.plan import Plan
from hta_widgets.analysis.replay.quality import quality_of, trusted_ranks
from hta_widgets.analysis.replay.windows import falls_behind_ns, replayed_windows
from hta_widgets.arrays import Bool, Int64
from hta_widgets.engine import checkpoint
from hta_widgets.trace.model import Trace
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.scope import Scope

LEAST_PCT: Final = 0.5
"""A smaller change of the time is none: the model's own error is of this size."""

_PERIOD = "device period"
# A finding or two dozen ask for some thirty, the same in each selection; their answers are small.
_REPLAYS = 128
PARTS = ("compute_ns", "exposed_communication_ns", "exposed_memory_ns", "idle_ns")
_COLUMNS = {
    "rank": "int64",
    "iteration": "Int64",
    "clock": "str",
    "before_ns": "int64",
    "low_ns": "int64",
    "after_ns": "int64",
    "high_ns": "int64",
    **dict.fromkeys(PARTS, "int64"),
    "model_error_pct": "float64",
    "inferred": "int64",
}


def answered(trace: Trace, edits: Edit | Sequence[Edit], scope: Scope | None = None) -> pd.DataFrame:
    """The rows of `what_if` without its critical path; arguments and errors are its own."""
    scope = scope or Scope()
    changes = (edits,) if isinstance(edits, Edit) else tuple(edits)
    across = [edit.across for edit in changes if edit.across]
    if across:
        if len(across) < len(changes):
            other = next(edit.expression for edit in changes if not edit.across)
            raise ValueError(
                f"edits of several ranks are replayed apart from those within a rank, such as {other}"
            )
        return _of_job(trace, across, scope)
    frames = []
    for rank in trusted_ranks(trace, trace.ranks_of(scope)):
        checkpoint()
        rank_trace = trace.rank(rank)
        quality = quality_of(rank_trace)
        assert quality is not None  # it is trusted
        rows = replayed(rank_trace, changes, parts=True)
        if scope.iterations is not None or scope.window_ns is not None:
            rows = rows[rows["iteration"].isin(_reported(rank_trace, scope))]
        frames.append(
            rows.assign(rank=rank, model_error_pct=quality.model_error_pct, inferred=quality.inferred)
        )
    return pd.concat(frames, ignore_index=True)[list(_COLUMNS)].astype(_COLUMNS)


def within_ranks(edits: Iterable[Edit]) -> None:
    """Refuse edits of several ranks.

    Raises:
        ValueError: one of them is; the message names it.
    """
    for edit in edits:
        if edit.across:
            raise ValueError(f"{edit.expression} is of several ranks: what_if answers it for a whole job")


def _of_job(trace: Trace, changes: Sequence[Change], scope: Scope) -> pd.DataFrame:
    """The rows for changes of several ranks."""
    ranks = trace.ranks_of(scope)
    chosen = None
    if scope.iterations is not None or scope.window_ns is not None:
        chosen = sorted({number for rank in ranks for number in _reported(trace.rank(rank), scope)})
    return replayed_job_rows(trace, changes, ranks, chosen)[list(_COLUMNS)].astype(_COLUMNS)


def _reported(rank_trace: RankTrace, scope: Scope) -> list[int]:
    """The iterations that a scope asks for."""
    chosen = iterations_in(rank_trace, scope)
    if scope.window_ns is None:
        return chosen
    begin, end = scope.window_ns
    frame = rank_trace.iterations
    overlaps = frame["iteration"][(frame["start_ns"] < end) & (frame["end_ns"] > begin)]
    return sorted({*chosen} & {*overlaps.tolist()})


def replayed(
    rank_trace: RankTrace, edits: tuple[Edit, ...], clock: str = "", parts: bool = False
) -> pd.DataFrame:
    """The rows of `what_if` for a rank whose replay is trusted, without what `quality_of` knows of it.

    Of edits that are compared with others, `clock` is what times those. `parts`: with the columns `PARTS`,
    which take as long as the replay. start_ns (int64, ns) is when the time after_ns begins.
    """
    stated = registered(), roofs_of(peaks_of_rank(rank_trace))  # which some edits go by
    return _replayed(rank_trace, edits, clock, parts, stated)


@memoize_per_rank(last=_REPLAYS)
def _replayed(
    rank_trace: RankTrace, edits: tuple[Edit, ...], clock: str, parts: bool, _stated: object
) -> pd.DataFrame:
    """`replayed`, with formulas and peaks as they are stated now."""
    plan = planned(rank_trace, edits)
    graph = plan.graph
    runs = plan.replays((ESTIMATE, PINNED, MOST))
    if any(edit.bound for edit in edits):
        runs.append(graph.time)
    estimate = runs[0]
    clock = clock or _clock(rank_trace, graph, estimate, plan.moved)
    timed = [_recorded(rank_trace, graph, clock)]
    timed += [_timed(rank_trace, graph, run, clock, plan.moved) for run in runs]
    windows = np.stack(timed)
    iterations = rank_trace.iterations
    known = ~iterations["partial"].to_numpy(np.bool_) & (windows[:, :, 1] >= 0).all(axis=0)
    whole = np.array([[[graph.origin_ns, graph.origin_ns + run.max()]] for run in (graph.time, *runs)])
    windows = np.concatenate([whole, windows[:, known]], axis=1)
    before, *after = windows[:, :, 1] - windows[:, :, 0]
    numbers = iterations["iteration"].to_numpy(np.int64)[known]
    spent = _parts(rank_trace, graph, estimate, windows[1]) if parts else ()
    return pd.DataFrame(
        {
            "iteration": pd.array([pd.NA, *numbers.tolist()], "Int64"),
            "clock": ["", *[clock] * len(numbers)],
            "before_ns": before,
            "low_ns": np.min(after, axis=0),
            "after_ns": after[0],
            "high_ns": np.max(after, axis=0),
            "start_ns": windows[1][:, 0],
            **dict(zip(PARTS if parts else (), spent, strict=True)),
        }
    )


def planned(rank_trace: RankTrace, edits: Sequence[Edit]) -> Plan:
    """The replay of a rank under edits; its replay is known to be trusted, so there is a graph.

    Raises:
        ValueError: one of them is of several ranks.
    """
    within_ranks(edits)
    graph = graph_of(rank_trace)
    assert graph is not None  # there is no quality without a graph
    plan = Plan(graph, rank_trace)
    for edit in edits:
        edit.apply(plan)
    return plan


@memoize_per_rank()
def _fell_behind_ns(rank_trace: RankTrace, graph: Graph) -> int:
    return falls_behind_ns(rank_trace, graph, graph.time)


def _clock(rank_trace: RankTrace, graph: Graph, time: Int64, moved: Bool) -> str:
    """What times the iterations of a recording and of its replay.

    The host's windows do, unless the device falls so far behind in them that what they miss would matter.
    """
    if rank_trace.iteration_clock == "device":
        return "device"
    missed = falls_behind_ns(rank_trace, graph, time) - _fell_behind_ns(rank_trace, graph)
    windows = replayed_windows(rank_trace, graph, time, "host", moved)
    whole = ~rank_trace.iterations["partial"].to_numpy(np.bool_) & (windows[:, 1] >= 0)
    taken = int((windows[whole, 1] - windows[whole, 0]).sum())
    return _PERIOD if 100 * missed > LEAST_PCT * taken else "host"


@memoize_per_rank(last=2)
def _recorded(rank_trace: RankTrace, graph: Graph, clock: str) -> Int64:
    """The iterations as they were recorded, which no edit changes."""
    return _timed(rank_trace, graph, graph.time, clock, None)


def _timed(rank_trace: RankTrace, graph: Graph, time: Int64, clock: str, moved: Bool | None) -> Int64:
    """The windows of a rank's iterations at replayed times, int64[n, 2]."""
    return replayed_windows(rank_trace, graph, time, "host" if clock == "host" else "device", moved)


def _parts(rank_trace: RankTrace, graph: Graph, time: Int64, windows: Int64) -> tuple[Int64, ...]:
    """Where windows of a replay go: compute, exposed communication, exposed memory, idle."""
    starts = np.flatnonzero(graph.node_kind == EVENT_STARTS)
    begin, end = graph.origin_ns + time[starts], graph.origin_ns + time[starts + 1]
    work = busy_of(rank_trace.event_class[graph.row[starts]], begin, end)
    idle = windows[:, 1] - windows[:, 0] - work.any.within_each(windows)
    used = (work.compute, work.exposed_communication, work.exposed_memory)
    return *(part.within_each(windows) for part in used), idle
