"""Why a step is longer than before: its change, in parts that add up to the nanosecond."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
import pandas as pd

from hta_widgets.analysis.compare.agreement import judged, parts_of
from hta_widgets.analysis.compare.comparability import checked
from hta_widgets.analysis.compare.lines import compared, most_changed, tables
from hta_widgets.analysis.compare.noise import (
    INCONCLUSIVE,
    NEGLIGIBLE,
    NOISE,
    SIGNIFICANT,
    UNKNOWN,
)
from hta_widgets.analysis.compare.parts import evenly, parts
from hta_widgets.analysis.compare.sampling import Scopes, Steps, check_runs, scope_of
from hta_widgets.analysis.core.entry import Analysis
from hta_widgets.analysis.idle.split import BUSY, PARTS, SERIES
from hta_widgets.arrays import Float64, Int64
from hta_widgets.charts.spec import Waterfall
from hta_widgets.formatting import duration

if TYPE_CHECKING:
    from hta_widgets.trace.model import Trace

Number = TypeVar("Number", Int64, Float64)

STEP = "step"
"""The part that is the whole: the last row of each run."""

_MOST_NAMED = 3
_LEFT_OUT = 0.1  # of the whole change: what smaller changes, added up without their signs, need not be named

_WORDS = {
    "compute": "compute",
    "exposed_communication": "communication that nothing hides",
    "exposed_memory": "copying that nothing hides",
    "host_sync": "waiting while the host is blocked in a synchronising call",
    "data_stall": "waiting for the data loader",
    "host_busy": "waiting for the host to launch",
    "launch_latency": "waiting for launches on their way",
    "kernel_wait": "pausing between kernels",
    "device_wait": "waiting with launched work that does not start",
    "unknown": "idling without a recorded launch",
    "edge": "time without device work due",
}
_DOUBTS = {
    NOISE: "within noise",
    INCONCLUSIVE: "inconclusive",
    NEGLIGIBLE: "less than 1 % of it",
    UNKNOWN: "one step: noise unknown",
}


def step_waterfall(
    runs: Mapping[str, Trace], scope: Scopes = None, by: Literal["job", "rank"] = "job"
) -> pd.DataFrame:
    """Split the time of a step, and its change from the first run, into what the device did.

    Each instant of a step is compute, communication or copies that nothing more important hides (as in
    `temporal_breakdown`), or idle by one cause (as in `idle_breakdown`). Each part per step (and rank) is
    rounded to whole ns, less than one ns from its mean, such that all parts add up to the time of the step;
    so do the changes. `sampling.sample` decides which steps count, and by which clock; `noise` gives
    intervals and significance.

    Args:
        runs: name -> job; the first is the base that the others are compared with.
        scope: ranks, iterations, window (steps that lie in it), streams and names (among device work); of
            all runs, or by run.
        by: "job": the average rank; "rank": each rank, compared with the same rank of the first run. (A rank
            that the first run lacks is left out.)

    Returns:
        One row per run, [rank] and part, in the given order, the step itself as the last part. Columns: run
        (str), [rank int64], part, kind ("busy", "idle", "step") (str), clock (str), steps, ranks (int64),
        sum_ns (int64, over these steps and ranks), time_ns, change_ns (int64, per step and rank), low_ns,
        high_ns (float64, 95 % interval of change_ns; NaN if a run has fewer than two steps), significant
        (bool; the step as a single comparison, the parts as one comparison each, with the `agreement` of the
        step and of the kernels), verdict (str: as in `diff`). Σ time_ns and Σ change_ns over the parts
        are those of the step, to the nanosecond.

    Raises:
        NotComparableError: the numbers would mislead; see `comparability`.
        MissingDataError: a run has no device events.
        ValueError: fewer than two runs, or an unknown `by`.
    """
    check_runs(runs)
    if by not in ("job", "rank"):
        raise ValueError(f'by is "job" or "rank", not {by!r}')
    samples = checked(runs, scope)
    if by == "job":
        frames = [_compared(runs, samples, scope)]
    else:
        first = next(iter(samples.values()))
        frames = []
        for rank in first.ranks:
            own = {run: steps.of_rank(rank) for run, steps in samples.items() if rank in steps.ranks}
            frames.append(_compared(runs, own, scope).assign(rank=np.int64(rank)))
    order = ["run", *(["rank"] if by == "rank" else []), "part", "kind", "clock", "steps", "ranks", "sum_ns",
             "time_ns", "change_ns", "low_ns", "high_ns", "significant", "verdict"]  # fmt: skip
    frame = pd.concat(frames, ignore_index=True)
    places = {run: place for place, run in enumerate(runs)}
    frame = frame.sort_values("run", key=lambda names: names.map(places), kind="stable", ignore_index=True)
    return frame[order].astype(dict.fromkeys(["run", "part", "kind", "clock", "verdict"], "str"))


def sentence(frame: pd.DataFrame) -> str:
    """The answer of `step_waterfall` in words: the greatest change of a step, and its main parts."""
    base = frame["run"].iloc[0]
    top, verdict = greatest_change(frame)
    if top is None:
        return f"No step time differs from {base} by more than the steps do among themselves{_but(frame)}."
    own = frame[(frame["run"] == top["run"]) & (frame["part"] != STEP)]
    where = ""
    if "rank" in frame:
        own, where = own[own["rank"] == top["rank"]], f" on rank {top['rank']}"
    longer = "longer than one of" if top["change_ns"] > 0 else "shorter than one of"
    doubt = "" if verdict == SIGNIFICANT else f" ({_DOUBTS[verdict]})"
    return (
        f"A step of {top['run']}{where} is {duration(abs(top['change_ns']))} {longer} {base}{doubt}: "
        f"{_made_of(own, top)}."
    )


def greatest_change(frame: pd.DataFrame) -> tuple[pd.Series | None, str]:
    """The row of the step that changed most, among the surest changes, and its verdict; None if none did."""
    steps = frame[frame["part"] == STEP]
    for verdict in (SIGNIFICANT, UNKNOWN, INCONCLUSIVE):
        changed = steps[(steps["verdict"] == verdict) & (steps["change_ns"] != 0)]
        if len(changed):
            return most_changed(changed), verdict
    return None, ""


def _but(frame: pd.DataFrame) -> str:
    """`; but a step of B has 8.85 ms more copies`: the part that changed most for certain, if one did."""
    parts = frame[(frame["part"] != STEP) & (frame["verdict"] == SIGNIFICANT)]
    if parts.empty:
        return ""
    most = most_changed(parts)
    where = f" on rank {most['rank']}" if "rank" in frame else ""
    return f"; but a step of {most['run']}{where} has {_more(most['change_ns'], _WORDS[most['part']])}"


def _made_of(parts: pd.DataFrame, whole: pd.Series) -> str:
    """The parts that changed most, longer and shorter ones alike, and what is left: together the whole."""
    parts = parts.sort_values("change_ns", key=lambda change: -change.abs(), kind="stable")
    unnamed, enough = parts["change_ns"].abs().sum(), _LEFT_OUT * abs(whole["change_ns"])
    rest, named = int(whole["change_ns"]), list[str]()
    for part in parts.to_dict("records"):
        if len(named) == _MOST_NAMED or (named and unnamed <= enough):
            break
        change = part["change_ns"]
        doubt = _DOUBTS.get(part["verdict"], "") if part["verdict"] != whole["verdict"] else ""
        named.append(_more(change, _WORDS[part["part"]]) + (f" ({doubt})" if doubt else ""))
        rest, unnamed = rest - change, unnamed - abs(change)
    return ", ".join([*named, _more(rest, "of everything else")] if rest else named)


def _more(change: int, what: str) -> str:
    return f"{duration(abs(change))} {'more' if change > 0 else 'less'} {what}"


def _compared(runs: Mapping[str, Trace], samples: Mapping[str, Steps], scope: Scopes) -> pd.DataFrame:
    """One row per run, part and the step, on the ranks of the samples, compared with the first run."""
    scopes = {run: scope_of(scope, run) for run in samples}
    split = {run: parts(runs[run], steps, scopes[run]) for run, steps in samples.items()}
    lines, by_run = tables({run: runs[run] for run in samples}, samples, scopes, "kernel", "device")
    part_of = parts_of(lines)
    first = next(iter(samples))
    before = _with_step(evenly(split[first].sum(axis=(0, 1)), samples[first].units))
    frames = []
    for run, steps in samples.items():
        totals = split[run].sum(axis=(0, 1))
        after = _with_step(evenly(totals, steps.units))
        columns: dict[str, Any] = {
            "run": run,
            "part": [*PARTS, STEP],
            "kind": [*("busy" if part in BUSY else "idle" for part in PARTS), STEP],
            "clock": steps.clock,
            "steps": len(steps),
            "ranks": len(steps.ranks),
            "sum_ns": _with_step(totals),
            "time_ns": after,
            "change_ns": after - before,
            "low_ns": 0.0,
            "high_ns": 0.0,
            "significant": False,
            "verdict": "",
        }
        if run != first:
            was, now = split[first].mean(axis=1), split[run].mean(axis=1)
            of_lines, _ = compared(by_run[first], samples[first], by_run[run], steps)
            of_step, of_parts, _ = judged(was, now, of_lines, part_of)
            columns |= {
                "low_ns": np.concatenate([of_parts.low, of_step.low]),
                "high_ns": np.concatenate([of_parts.high, of_step.high]),
                "significant": np.concatenate([of_parts.significant, of_step.significant]),
                "verdict": np.concatenate([of_parts.verdict, of_step.verdict]),
            }
        frames.append(pd.DataFrame(columns))
    return pd.concat(frames, ignore_index=True)


def _with_step(values: Number) -> Number:
    return np.concatenate([values, values.sum(axis=-1, keepdims=True)], axis=-1)


ANALYSIS = Analysis(
    label="Step time",
    group="Step",
    title="Why a step takes longer or shorter",
    function=step_waterfall,
    sentence=sentence,
    chart=Waterfall(
        tuple(replace(part, column=part.column.removesuffix("_ns")) for part in SERIES),
        run="run",
        part="part",
        time="time_ns",
        change="change_ns",
        low="low_ns",
        high="high_ns",
        significant="significant",
        verdict="verdict",
        whole=STEP,
        whole_label="Step",
    ),
    requires=("device events",),
)
