"""The whole recording of a rank as steps and named stretches between them, which add up to it."""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd

from hta_widgets.analysis.device_time.step_times import step_times
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope

_COLUMNS: Final = {
    "rank": "int64",
    "stretch": "str",
    "iteration": "Int64",
    "start_ns": "int64",
    "end_ns": "int64",
    "dur_ns": "int64",
}


def stretches(trace: Trace, scope: Scope | None = None) -> pd.DataFrame:
    """What does the recording of each rank consist of, in time?

    Args:
        scope: the ranks; default all.

    Returns:
        One row per stretch, rank after rank in time order. Columns: rank (int64), stretch ("before" the first
        step, "step", "start-up" (a step that holds it), "partial" (a step that the recording cuts), "open" (a
        step whose end is not recorded), "guessed" (what repeats, without marks), "between" two runs of the
        profiler, "tail" (of the last step's mark, in which the profiler stopped), "after" the last) (str),
        iteration (Int64, of steps), start_ns, end_ns (ns on the job's axis), dur_ns (int64, ns). The
        durations of a rank add up to its recording, to the nanosecond.
    """
    steps = step_times(trace, Scope(ranks=None if scope is None else scope.ranks))
    rows: list[tuple[int, str, int | None, int, int]] = []
    for rank in trace.ranks_of(scope):
        rows += _of_rank(trace, rank, steps[steps["rank"] == rank])
    frame = pd.DataFrame(rows, columns=list(_COLUMNS)[:-1])
    frame["dur_ns"] = frame["end_ns"] - frame["start_ns"]
    return frame.astype(_COLUMNS)


def _of_rank(trace: Trace, rank: int, steps: pd.DataFrame) -> list[tuple[int, str, int | None, int, int]]:
    rank_trace = trace.rank(rank)
    if not rank_trace.n:
        return []
    at, last = rank_trace.extent
    steps = steps.sort_values(["start_ns", "end_ns"], kind="stable")
    rows: list[tuple[int, str, int | None, int, int]] = []
    aside = "before"
    for name, number, start, end in zip(
        _names(steps), steps["iteration"], steps["start_ns"], steps["end_ns"], strict=True
    ):
        # a whole recording reaches 1 ns beyond an event without length, to hold it
        begin, until = max(at, int(start)), min(int(end), last)
        if begin > at:
            rows.append((rank, aside, None, at, begin))
        if until > begin:
            rows.append((rank, name, int(number), begin, until))
        at, aside = max(at, begin, until), "between"
    tail = _tail(rank_trace.iterations, at, last)
    if tail > at and len(steps):
        rows.append((rank, "tail", None, at, tail))
        at = tail
    if last > at:
        rows.append((rank, "after" if len(steps) else "before", None, at, last))
    return rows


def _names(steps: pd.DataFrame) -> list[str]:
    kinds = [steps["known"] == "guessed", steps["partial"], steps["open"], steps["start_up"]]
    names = ["guessed", "partial", "open", "start-up"]
    return np.select([kind.to_numpy(np.bool_) for kind in kinds], names, "step").tolist()


def _tail(iterations: pd.DataFrame, at: int, last: int) -> int:
    """Until when the last step's mark goes on, in which nothing else is recorded; `at` if it does not."""
    row = iterations.iloc[-1]
    stopped = row["clock"] == "host" and row["recorded_until_ns"] < row["host_end_ns"]
    return min(int(row["host_end_ns"]), last) if stopped else at
