"""One row per run: how long a step takes, what it spends that time on, and how much memory it needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from hta_widgets.analysis.compare.comparability import checked
from hta_widgets.analysis.compare.noise import INCONCLUSIVE, NEGLIGIBLE, SIGNIFICANT, difference, interval
from hta_widgets.analysis.compare.parts import communication, evenly, parts
from hta_widgets.analysis.compare.sampling import Scopes, Steps, check_runs, scope_of
from hta_widgets.analysis.core.entry import Analysis
from hta_widgets.analysis.idle.causes import CAUSES
from hta_widgets.analysis.idle.split import PARTS, SERIES
from hta_widgets.analysis.memory.usage import memory_peak
from hta_widgets.charts.spec import Stack
from hta_widgets.errors import MissingDataError
from hta_widgets.formatting import duration, percent
from hta_widgets.trace.scope import Scope

if TYPE_CHECKING:
    from hta_widgets.trace.model import Trace

_HOST = "cpu"


def run_table(runs: Mapping[str, Trace], scope: Scopes = None) -> pd.DataFrame:
    """How long does a step of each run take, and what does the device do in it?

    Values are per step and rank, over the steps that count (`sampling.sample`). `noise` gives intervals and
    significance, with one comparison per run.

    Args:
        runs: name -> job, at least one; the first is the base that the others are compared with.
        scope: ranks, iterations, window (steps that lie in it), streams and names (among device work); of
            all runs, or by run.

    Returns:
        One row per run, in the given order. Columns: run (str), ranks, steps, excluded (int64, the number of
        steps that do not count), clock (str), step_ns (int64), low_ns, high_ns (float64, 95 % interval of the
        step time; NaN with fewer than two steps), change_ns (int64), change_low_ns, change_high_ns (float64,
        its 95 % interval), change_pct (float64), significant (bool), verdict (str: as in `diff`), compute_ns,
        exposed_communication_ns, exposed_memory_ns, host_sync_ns, data_stall_ns, host_busy_ns,
        launch_latency_ns, kernel_wait_ns, device_wait_ns, unknown_ns, edge_ns (int64; these eleven add up to
        step_ns), idle_ns (int64, the last eight of them), communication_ns (int64, hidden or not),
        busiest_rank (int64, the one that computes most), imbalance_pct (float64, by how much more than the
        average rank), peak_bytes (Int64, the most memory that the allocator held at once on a device of one
        of the ranks within the recording, whatever the steps; NA if not recorded).

    Raises:
        NotComparableError: the numbers would mislead; see `comparability`.
        MissingDataError: a run has no device events.
        ValueError: no runs.
    """
    check_runs(runs, least=1)
    samples = checked(runs, scope)
    rows: list[dict[str, Any]] = []
    first: tuple[int, Any] | None = None
    for run, trace in runs.items():
        steps, own = samples[run], scope_of(scope, run)
        split = parts(trace, steps, own)
        units = len(steps) * len(steps.ranks)
        time = evenly(split.sum(axis=(0, 1)), units)
        durations = steps.durations / len(steps.ranks)
        step_ns = int(time.sum())
        first = first or (step_ns, durations)
        noise = difference(first[1][:, None], durations[:, None]) if rows else None
        low, high = interval(durations)
        computed = split[:, :, 0].sum(axis=0)
        rows.append(
            {
                "run": run,
                "ranks": len(steps.ranks),
                "steps": len(steps),
                "excluded": len(steps.excluded),
                "clock": steps.clock,
                "step_ns": step_ns,
                "low_ns": low,
                "high_ns": high,
                "change_ns": step_ns - first[0],
                "change_low_ns": float(noise.low[0]) if noise else 0.0,
                "change_high_ns": float(noise.high[0]) if noise else 0.0,
                "change_pct": 100.0 * (step_ns - first[0]) / first[0] if first[0] else np.nan,
                "significant": bool(noise.significant[0]) if noise else False,
                "verdict": noise.verdict[0] if noise else "",
                **{f"{part}_ns": int(ns) for part, ns in zip(PARTS, time, strict=True)},
                "idle_ns": int(time[-len(CAUSES) :].sum()),
                "communication_ns": int(
                    evenly(communication(trace, steps, own).sum(keepdims=True)[0], units)[0]
                ),
                "busiest_rank": steps.ranks[int(computed.argmax())],
                "imbalance_pct": 100.0 * (computed.max() / computed.mean() - 1) if computed.any() else 0.0,
                "peak_bytes": _peak(trace, steps),
            }
        )
    return pd.DataFrame(rows).astype({"run": "str", "clock": "str", "verdict": "str", "peak_bytes": "Int64"})


def sentence(frame: pd.DataFrame) -> str:
    """The answer of `run_table` in words."""
    base = frame.iloc[0]
    text = f"A step of {base['run']} takes {duration(base['step_ns'])}"
    others = frame.iloc[1:]
    if others.empty:
        return text + "."
    changes = []
    for _, row in others.iterrows():
        more = f"{percent(abs(row['change_pct']))} {'more' if row['change_ns'] > 0 else 'less'}"
        doubted = {
            SIGNIFICANT: more,
            INCONCLUSIVE: f"{more}, inconclusive",
            NEGLIGIBLE: f"{more}, negligible",
        }
        changes.append(
            f"of {row['run']} {duration(row['step_ns'])} ({doubted.get(row['verdict'], row['verdict'])})"
        )
    return f"{text}, {', '.join(changes)}."


def _peak(trace: Trace, steps: Steps) -> int | None:
    try:
        frame = memory_peak(trace, Scope(ranks=steps.ranks))
    except MissingDataError:
        return None
    frame = frame[frame["device"] != _HOST]
    return int(frame["peak_bytes"].max()) if len(frame) else None


ANALYSIS = Analysis(
    label="Runs",
    group="Step",
    title="What a step of each run consists of",
    function=run_table,
    sentence=sentence,
    chart=Stack(SERIES, "step_ns", ("run",), interval=("low_ns", "high_ns")),
    requires=("device events",),
)
