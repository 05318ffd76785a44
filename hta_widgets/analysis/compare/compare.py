"""What changed between runs, line by line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from hta_widgets.analysis.compare.agreement import judged, parts_of
from hta_widgets.analysis.compare.comparability import checked
from hta_widgets.analysis.compare.entries import Line
from hta_widgets.analysis.compare.lines import By, Table, Time, compared, most_changed, occurs, tables
from hta_widgets.analysis.compare.moves import at, origins
from hta_widgets.analysis.compare.noise import INCONCLUSIVE
from hta_widgets.analysis.compare.parts import parts
from hta_widgets.analysis.compare.sampling import Scopes, Steps, check_runs, scope_of
from hta_widgets.analysis.core.entry import Analysis, Option
from hta_widgets.charts.spec import Changes
from hta_widgets.formatting import counted, duration, signed
from hta_widgets.kernel_names import short_kernel_name

if TYPE_CHECKING:
    from hta_widgets.trace.model import Trace

Split = tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]

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
    "verdict": "str",
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
    `noise` gives its interval, significance and verdict; by kernel and by collective, `agreement` with the
    part of the step that a line belongs to counts, too.

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
        that the interval leaves out 0), verdict (str: "significant"; "within noise": the interval contains
        0; "negligible": it does not, but the change is less than one percent; "inconclusive": neither, but
        among so many lines chance may be the reason; "noise unknown"; "" in the first run), change (str:
        "added": the first run has none; "removed": this one has none; "moved": the first run has it
        elsewhere; "changed": significantly in time or number; "same": none of these; always "same" in the
        first run), moved_from (str, the line where the first run has it; else
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
    split = {}
    if by in ("kernel", "collective"):
        whole = {run: parts(trace, samples[run], scope_of(scope, run)) for run, trace in runs.items()}
        split = {run: of_step.mean(axis=1) for run, of_step in whole.items()}
    first = next(iter(runs))
    found: list[dict[str, Any]] = []
    for place, (run, steps) in enumerate(samples.items()):
        both = (split[first], split[run]) if split else None
        values = _values(lines, by_run[first], samples[first], by_run[run], steps, both)
        found.append({**values, "run": run, "place": place, "steps": len(steps)})
    present = np.logical_or.reduce([occurs(table) for table in by_run.values()])
    keys: dict[str, Any] = {"kind": [line.kind for line in lines], "line": [line.name for line in lines]}
    keys["most"] = -np.max([np.abs(values["change_ns"]) for values in found], axis=0)
    frame = pd.concat([pd.DataFrame({**keys, **values})[present] for values in found], ignore_index=True)
    frame = frame.sort_values(["most", "kind", "line", "place"], kind="stable", ignore_index=True)
    return frame[list(_COLUMNS)].astype(_COLUMNS)


def sentence(frame: pd.DataFrame) -> str:
    """The answer of `diff` in words."""
    if frame.empty:
        return "Nothing ran in the steps compared."
    lines, base = _number_of_lines(frame), frame["run"].iloc[0]
    if not frame["change_ns"].any() and not frame["change_count"].any():
        same = "The only line is" if lines == 1 else f"All {lines:,} lines are"
        return f"{same} the same as in {base}."
    found = frame[frame["significant"]]
    if found.empty and frame["low_ns"].isna().any():
        return f"One step cannot separate a change from noise; {_greatest(frame)}."
    if found.empty:
        unsure = frame[frame["verdict"] == INCONCLUSIVE]
        none = "The only line does not differ" if lines == 1 else f"None of {lines:,} lines differs"
        none += f" from {base} beyond noise"
        if unsure.empty:
            return f"{none}."
        why = ": beyond noise by itself, as some of so many lines are by chance" if lines > 1 else ""
        return f"{none}; {_greatest(unsure)} (inconclusive{why})."
    number = _number_of_lines(found)
    differ = "differs" if number == 1 else "differ"
    return f"{number:,} of {counted(lines, 'line')} {differ} from {base} beyond noise; {_greatest(found)}."


def _number_of_lines(frame: pd.DataFrame) -> int:
    return len(frame[["kind", "line"]].drop_duplicates())


def _greatest(frame: pd.DataFrame) -> str:
    """The line that changed most, by how much, and in which run."""
    top = most_changed(frame)
    words = {"added": "is new", "removed": "is gone", "moved": "has moved"}.get(top["change"], "changed most")
    change = signed(top["change_ns"], duration(top["change_ns"]))
    return f"{short_kernel_name(top['line'])} {words}: {change} per step in {top['run']}"


def _values(
    lines: list[Line], base: Table, base_steps: Steps, new: Table, steps: Steps, split: Split | None
) -> dict[str, Any]:
    """The columns of one run, line by line; `split`: the parts of both runs' steps, if there are any."""
    origin = origins(lines, base, base_steps.units, new, steps.units)
    old = at(base, origin)
    count, total, own = (values.sum(axis=0) for values in (new.count, new.total, new.exclusive))
    before, before_count = (values.sum(axis=0) / base_steps.units for values in (old.exclusive, old.count))
    change, change_count = own / steps.units - before, count / steps.units - before_count
    with np.errstate(divide="ignore", invalid="ignore"):
        values = {
            "count": count / steps.units,
            "total_ns": total / steps.units,
            "exclusive_ns": own / steps.units,
            "mean_ns": np.where(count > 0, total / count, np.nan),
            "before_count": before_count,
            "before_ns": before,
            "change_count": change_count,
            "change_ns": change,
            "change_pct": np.where(before > 0, 100.0 * change / before, np.nan),
            "moved_from": np.full(len(lines), "", object),
            "kernels": [", ".join(names) for names in new.kernels],
        }
    if new is base:
        return {**values, **_OF_THE_FIRST_RUN}
    time, number = compared(old, base_steps, new, steps)
    if split is not None:
        _, _, time = judged(*split, time, parts_of(lines))
    differs = time.significant | number
    if min(len(base_steps), len(steps)) < 2:
        differs = change_count != 0
    had, has = occurs(old), occurs(new)
    kind = np.select([~had & has, had & ~has, differs], ["added", "removed", "changed"], "same").astype(
        object
    )
    for place in np.flatnonzero((origin >= 0) & (origin != np.arange(len(lines)))).tolist():
        values["moved_from"][place] = lines[origin[place]].name
        kind[place] = "moved"
    return {
        **values,
        "low_ns": time.low,
        "high_ns": time.high,
        "significant": time.significant,
        "verdict": time.verdict,
        "change": kind,
    }


_OF_THE_FIRST_RUN: Final = {
    "low_ns": 0.0, "high_ns": 0.0, "significant": False, "verdict": "", "change": "same",
}  # fmt: skip

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
