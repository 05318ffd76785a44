"""What changed between runs, line by line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from hta_widgets.analysis.compare.comparability import checked
from hta_widgets.analysis.compare.entries import Line
from hta_widgets.analysis.compare.lines import By, Table, Time, occurs, tables
from hta_widgets.analysis.compare.moves import at, origins
from hta_widgets.analysis.compare.noise import LEAST_CHANGE, difference
from hta_widgets.analysis.compare.sampling import Scopes, Steps, check_runs, scope_of
from hta_widgets.analysis.core.entry import Analysis, Option
from hta_widgets.charts.spec import Changes
from hta_widgets.formatting import duration, signed
from hta_widgets.kernel_names import short_kernel_name

if TYPE_CHECKING:
    from hta_widgets.trace.model import Trace

__all__ = ["ANALYSIS", "diff", "sentence"]

_COLUMNS = {
    "kind": "str",
    "line": "str",
    "run": "str",
    "steps": "int64",
    "count": "float64",
    "total_ns": "float64",
    "exclusive_ns": "float64",
    "mean_ns": "float64",
    "before_count": "float64",
    "before_ns": "float64",
    "change_count": "float64",
    "change_ns": "float64",
    "low_ns": "float64",
    "high_ns": "float64",
    "change_pct": "float64",
    "significant": "bool",
    "change": "str",
    "moved_from": "str",
    "kernels": "str",
}


def diff(
    runs: Mapping[str, Trace], by: By = "kernel", scope: Scopes = None, time: Time | None = None
) -> pd.DataFrame:
    """What does each run spend its time on, and what of that differs from the first run?

    Runs are compared per step and rank: all values are sums over the steps that count (`sampling.sample`) and
    all ranks, divided by the number of both, so that runs of different lengths and on different numbers of
    ranks can be compared. Events belong to the step of their launch (`RankTrace.iteration`) and count whole.

    The difference is that of ``exclusive_ns``: the differences of all lines add up to that of all time.
    `noise` gives its interval and significance.

    Args:
        runs: name -> job; the first is the base that the others are compared with.
        by: the lines. "kernel": device work by class and full name. "collective": communication kernels by
            operation, element type, process group. "op": operators by name; their exclusive_ns is without
            operators called inside, and an operator that calls one of its own name counts in the other's
            total_ns, too. "call_path": likewise, by the path of operators from the outermost, within the
            `nn.Module` instances around them where recorded: an operator that launches other kernels than in
            the first run is still one line. "module": paths of `nn.Module` instances. "phase": forward,
            backward, optimizer, other (see `call_lines.phase_lines`).
        scope: ranks, iterations, window (steps that lie in it), streams and names (among device work); of
            all runs, or by run.
        time: of operators, modules and phases: "device": of the work that they launch; "host": of their
            calls. By default "device" if every run has device work.

    Returns:
        One row per line and run (with zeros where the run lacks it), the line that changed most first, then
        by kind and name; runs in the given order. Columns: kind, line, run (str), steps (int64), count,
        total_ns, exclusive_ns (float64, per step and rank), mean_ns (float64, total_ns per call; NaN without
        any), before_count, before_ns (float64, count and exclusive_ns of the first run), change_count,
        change_ns (float64, minus those), low_ns, high_ns (float64, 95 % interval of change_ns; NaN if a run
        has fewer than two steps), change_pct (float64, of before_ns; NaN where that is 0), significant
        (bool: the time differs beyond noise, see `noise`; where the number of calls does too, it is enough
        that the interval leaves out 0), change (str: "added": the first run has none; "removed": this one
        has none; "moved": the first run has it elsewhere; "changed": significantly in time or number;
        "same"; always "same" in the first run), moved_from (str, the line where the first run has it; else
        ""), kernels (str: names of the device work that makes up exclusive_ns on the device in this run, most
        time first; "" by kernel).

        A moved line (see `moves.origins`; by call path and module) is compared with the line that it was
        moved from. That line's time in the first run is thus accounted for, and its before_ns in this run is
        0: before_ns and change_ns of a run still add up to the time of the first run, and to the difference.

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
    first = next(iter(runs))
    found = []
    for place, (run, steps) in enumerate(samples.items()):
        values = _compared(lines, by_run[first], samples[first], by_run[run], steps, run == first)
        found.append({**values, "run": run, "place": place, "steps": len(steps)})
    present = np.logical_or.reduce([occurs(table) for table in by_run.values()])
    keys: dict[str, Any] = {"kind": [line.kind for line in lines], "line": [line.name for line in lines]}
    keys["most"] = -np.max([np.abs(values["change_ns"]) for values in found], axis=0)
    frame = pd.concat([pd.DataFrame({**keys, **values})[present] for values in found], ignore_index=True)
    frame = frame.sort_values(["most", "kind", "line", "place"], kind="stable", ignore_index=True)
    return frame[list(_COLUMNS)].astype(_COLUMNS)


def sentence(frame: pd.DataFrame) -> str:
    """The answer of `diff` in one sentence."""
    lines = frame[["kind", "line"]].drop_duplicates()
    if frame.empty:
        return "Nothing ran in the steps compared."
    base = frame["run"].iloc[0]
    if not frame["change_ns"].any() and not frame["change_count"].any():
        return f"All {len(lines):,} lines are the same as in {base}."
    found = frame[frame["significant"]]
    unknown = bool(frame["low_ns"].isna().any())
    if found.empty and not unknown:
        return f"None of {len(lines):,} lines differs from {base} by more than its steps do among themselves."
    if found.empty:
        found = frame
    top = found.iloc[int(found["change_ns"].abs().to_numpy().argmax())]
    words = {"added": "is new", "removed": "is gone", "moved": "has moved"}.get(top["change"], "changed most")
    change = signed(top["change_ns"], duration(top["change_ns"]))
    text = f"{short_kernel_name(top['line'])} {words}: {change} per step in {top['run']}."
    if not found["significant"].any():
        return f"One step cannot tell a change from noise; {text}"
    count = len(found[["kind", "line"]].drop_duplicates())
    return f"{count:,} of {len(lines):,} lines differ from {base} beyond noise; {text}"


def _compared(
    lines: list[Line], base: Table, base_steps: Steps, new: Table, steps: Steps, is_first: bool
) -> dict[str, Any]:
    """The columns of one run, line by line."""
    origin = origins(lines, base, base_steps.units, new, steps.units)
    values = _values(at(base, origin), base_steps, new, steps, is_first)
    moved_from = np.full(len(lines), "", object)
    for place in np.flatnonzero((origin >= 0) & (origin != np.arange(len(lines)))).tolist():
        moved_from[place] = lines[origin[place]].name
        values["change"][place] = "moved"
    return {**values, "moved_from": moved_from, "kernels": [", ".join(names) for names in new.kernels]}


def _values(
    old: Table, old_steps: Steps, new: Table, new_steps: Steps, is_first: bool
) -> dict[str, npt.NDArray[Any]]:
    old_ranks, ranks = len(old_steps.ranks), len(new_steps.ranks)
    old_units, units = old_steps.units, new_steps.units
    count, total, own = (values.sum(axis=0) for values in (new.count, new.total, new.exclusive))
    before = old.exclusive.sum(axis=0) / old_units
    change = own / units - before
    before_count = old.count.sum(axis=0) / old_units
    change_count = count / units - before_count
    low = high = np.zeros(len(own))
    significant = differs = np.zeros(len(own), np.bool_)
    if not is_first:
        time = difference(old.exclusive / old_ranks, new.exclusive / ranks)
        number = difference(old.count / old_ranks, new.count / ranks)
        low, high = time.low, time.high
        # Where calls were added or removed, a different time is no surprise: its own interval decides.
        enough = np.abs(change) >= LEAST_CHANGE * np.maximum(before, own / units)
        significant = time.significant | (number.significant & enough & ((low > 0) | (high < 0)))
        differs = significant | number.significant
        if min(len(old_steps), len(new_steps)) < 2:
            differs = change_count != 0
    had, has = occurs(old), occurs(new)
    with np.errstate(divide="ignore", invalid="ignore"):
        return {
            "count": count / units,
            "total_ns": total / units,
            "exclusive_ns": own / units,
            "mean_ns": np.where(count > 0, total / count, np.nan),
            "before_count": before_count,
            "before_ns": before,
            "change_count": change_count,
            "change_ns": change,
            "low_ns": low,
            "high_ns": high,
            "change_pct": np.where(before > 0, 100.0 * change / before, np.nan),
            "significant": significant,
            "change": np.select(
                [~had & has, had & ~has, differs], ["added", "removed", "changed"], default="same"
            ).astype(object),
        }


_BY = Option("by", "Lines", ("kernel", "op", "call_path", "module", "phase", "collective"), "kernel")
_TIME = Option("time", "Time of", ("auto", "device", "host"), "auto")


def _diff(
    runs: Mapping[str, Trace], scope: Scopes = None, by: Any = "kernel", time: Any = None
) -> pd.DataFrame:
    """`diff` with arguments in the order of the other comparisons; "auto" time is its own choice."""
    return diff(runs, by, scope, None if time == "auto" else time)


ANALYSIS = Analysis(
    kind="diff",
    label="Changes",
    group="Lines",
    title="What changed, line by line",
    function=_diff,
    sentence=sentence,
    chart=None,
    requires=("device events", "operators", "modules", "phases", "communication kernels"),
    options=(_BY, _TIME),
    pictured=Changes(
        run="run",
        kind="kind",
        line="line",
        time="exclusive_ns",
        change="change_ns",
        low="low_ns",
        high="high_ns",
        significant="significant",
    ),
)
