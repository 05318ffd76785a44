"""What changed between runs, line by line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from hta_widgets.analysis.diff.comparability import checked
from hta_widgets.analysis.diff.lines import By, Table, Time, occurs, tables
from hta_widgets.analysis.diff.noise import difference
from hta_widgets.analysis.diff.sampling import Scopes, Steps, check_runs, scope_of
from hta_widgets.analysis.words import brief, duration

if TYPE_CHECKING:
    from hta_widgets.trace.model import Trace

__all__ = ["diff", "sentence"]

_COLUMNS = {
    "kind": "str",
    "line": "str",
    "run": "str",
    "steps": "int64",
    "count": "float64",
    "total_ns": "float64",
    "exclusive_ns": "float64",
    "mean_ns": "float64",
    "change_count": "float64",
    "change_ns": "float64",
    "low_ns": "float64",
    "high_ns": "float64",
    "change_pct": "float64",
    "significant": "bool",
    "change": "str",
}


def diff(
    runs: Mapping[str, Trace], by: By = "kernel", scope: Scopes = None, time: Time | None = None
) -> pd.DataFrame:
    """What does each run spend its time on, and what of that differs from the first run?

    Runs are compared per step and rank: all values are sums over the steps that count (`sampling.sample` says
    which) and all ranks, divided by the number of both, so runs of different lengths and on different numbers
    of ranks compare. Events belong to the step of their launch (`RankTrace.iteration`) and count whole.

    The difference is that of ``exclusive_ns``: the differences of all lines add up to that of all time. Its
    interval and what is significant: `noise`.

    Args:
        runs: name -> job; the first is what the others are compared with.
        by: the lines. "kernel": device work by class and full name. "collective": communication kernels by
            operation, element type, process group. "op": operators by name; their exclusive_ns is without
            operators called inside, and an operator that calls one of its own name counts in the other's
            total_ns, too. "module": paths of `nn.Module` instances, likewise. "phase": forward, backward,
            optimizer, other (see `call_lines.phase_lines`).
        scope: ranks, iterations, window (steps that lie in it), streams and names (among device work); of
            all runs, or by run.
        time: of operators, modules and phases: "device": of the work that they launch; "host": of their
            calls. By default "device" if every run has device work.

    Returns:
        One row per line and run (with zeros where the run lacks it), the line that changed most first, then
        by kind and name; runs in the given order. Columns: kind, line, run (str), steps (int64), count,
        total_ns, exclusive_ns (float64, per step and rank), mean_ns (float64, total_ns per call; NaN without
        any), change_count, change_ns (float64, minus the first run's), low_ns, high_ns (float64, 95 %
        interval of change_ns; NaN if a run has fewer than two steps), change_pct (float64, of the first
        run's; NaN where that is 0), significant (bool), change (str: "added": the first run has none;
        "removed": this one has none; "changed": significantly in time or number; "same"; always "same" in
        the first run).

    Raises:
        NotComparableError: the numbers would mislead; see `comparability`.
        MissingDataError: no run has what the lines are made of.
        ValueError: fewer than two runs, or an unknown `by` or `time`.
    """
    check_runs(runs)
    if time not in (None, "device", "host"):
        raise ValueError(f'time is "device" or "host", not {time!r}')
    samples = checked(runs, scope)
    if time is None:
        recorded = (
            trace.rank(rank).device_span for run, trace in runs.items() for rank in samples[run].ranks
        )
        time = "device" if all(span is not None for span in recorded) else "host"
    lines, by_run = tables(runs, samples, {run: scope_of(scope, run) for run in runs}, by, time)
    present = np.logical_or.reduce([occurs(table) for table in by_run.values()])
    keys = pd.DataFrame(lines, columns=["kind", "line"])
    frames = []
    first = next(iter(runs))
    for place, (run, steps) in enumerate(samples.items()):
        values = _values(by_run[first], samples[first], by_run[run], steps, run == first)
        compared = pd.DataFrame(values).assign(run=run, place=place, steps=len(steps))
        frames.append(pd.concat([keys, compared], axis=1)[present])
    frame = pd.concat(frames, ignore_index=True)
    most = frame["change_ns"].abs().groupby([frame["kind"], frame["line"]]).transform("max")
    frame = frame.assign(most=-most).sort_values(["most", "kind", "line", "place"], kind="stable")
    return frame[list(_COLUMNS)].astype(_COLUMNS).reset_index(drop=True)


def sentence(frame: pd.DataFrame) -> str:
    """The answer of `diff` in one sentence."""
    lines = frame[["kind", "line"]].drop_duplicates()
    if frame.empty:
        return "Nothing ran in the steps compared."
    base = frame["run"].iloc[0]
    found = frame[frame["significant"]]
    unknown = bool(frame["low_ns"].isna().any())
    if found.empty and not unknown:
        return f"None of {len(lines):,} lines differs from {base} by more than its steps do among themselves."
    if found.empty:
        found = frame
    top = found.iloc[int(found["change_ns"].abs().to_numpy().argmax())]
    words = {"added": "is new", "removed": "is gone"}.get(top["change"], "changed most")
    sign = "+" if top["change_ns"] > 0 else "-"
    said = f"{brief(top['line'])} {words}: {sign}{duration(abs(top['change_ns']))} per step in {top['run']}."
    if not found["significant"].any():
        return f"With one step nothing tells a change from noise; {said}"
    count = len(found[["kind", "line"]].drop_duplicates())
    return f"{count:,} of {len(lines):,} lines differ from {base} beyond noise; {said}"


def _values(
    old: Table, old_steps: Steps, new: Table, new_steps: Steps, is_first: bool
) -> dict[str, npt.NDArray[Any]]:
    old_ranks, ranks = len(old_steps.ranks), len(new_steps.ranks)
    old_units, units = len(old_steps) * old_ranks, len(new_steps) * ranks
    count, total, own = (values.sum(axis=0) for values in (new.count, new.total, new.exclusive))
    before = old.exclusive.sum(axis=0) / old_units
    change = own / units - before
    change_count = count / units - old.count.sum(axis=0) / old_units
    time = difference(old.exclusive / old_ranks, new.exclusive / ranks)
    number = difference(old.count / old_ranks, new.count / ranks)
    low, high, significant = time.low, time.high, time.significant
    differs = significant | number.significant
    if min(len(old_steps), len(new_steps)) < 2:
        differs = change_count != 0
    if is_first:
        low, high = np.zeros_like(low), np.zeros_like(high)
        significant = differs = np.zeros_like(significant)
    had, has = occurs(old), occurs(new)
    with np.errstate(divide="ignore", invalid="ignore"):
        return {
            "count": count / units,
            "total_ns": total / units,
            "exclusive_ns": own / units,
            "mean_ns": np.where(count > 0, total / count, np.nan),
            "change_count": change_count,
            "change_ns": change,
            "low_ns": low,
            "high_ns": high,
            "change_pct": np.where(before > 0, 100.0 * change / before, np.nan),
            "significant": significant,
            "change": np.select(
                [~had & has, had & ~has, differs], ["added", "removed", "changed"], default="same"
            ),
        }
