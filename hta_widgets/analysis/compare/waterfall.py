"""Why a step is longer than before: its change, in parts that add up to the nanosecond."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd

from hta_widgets.analysis.compare.comparability import checked
from hta_widgets.analysis.compare.noise import difference
from hta_widgets.analysis.compare.parts import BUSY, PARTS, SERIES, evenly, parts
from hta_widgets.analysis.compare.sampling import Scopes, check_runs, scope_of
from hta_widgets.analysis.core.entry import Analysis
from hta_widgets.charts.spec import Waterfall
from hta_widgets.formatting import duration

if TYPE_CHECKING:
    from hta_widgets.trace.model import Trace

__all__ = ["ANALYSIS", "STEP", "sentence", "step_waterfall"]

Int64 = npt.NDArray[np.int64]
Number = TypeVar("Number", Int64, npt.NDArray[np.float64])

STEP = "step"
"""The part that is the whole: the last row of each run."""

_WORDS = {
    "compute": "compute",
    "exposed_communication": "communication that nothing hides",
    "exposed_memory": "copies that nothing hides",
    "host_sync": "waiting while the host is blocked in a synchronising call",
    "data_stall": "waiting for the data loader",
    "host_busy": "waiting for the host to launch",
    "launch_latency": "launches on their way",
    "kernel_wait": "pauses between kernels",
    "device_wait": "launched work that does not start",
    "unknown": "idleness without a recorded launch",
    "edge": "time without device work due",
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
        (bool; the step as a single comparison, the parts as one comparison each). Σ time_ns and Σ change_ns
        over the parts are those of the step, to the nanosecond.

    Raises:
        NotComparableError: the numbers would mislead; see `comparability`.
        MissingDataError: a run has no device events.
        ValueError: fewer than two runs, or an unknown `by`.
    """
    check_runs(runs)
    if by not in ("job", "rank"):
        raise ValueError(f'by is "job" or "rank", not {by!r}')
    samples = checked(runs, scope)
    split = {run: parts(trace, samples[run], scope_of(scope, run)) for run, trace in runs.items()}
    first = next(iter(runs))
    base, base_ranks = split[first], samples[first].ranks
    frames = []
    for run, steps in samples.items():
        columns: dict[str, Any] = {"run": run, "clock": steps.clock, "steps": len(steps)}
        if by == "job":
            compared = _compared(base, split[run])
            frames.append(compared.assign(**columns, ranks=len(steps.ranks)))
            continue
        for at, rank in enumerate(steps.ranks):
            if rank in base_ranks:
                of_base, own = base_ranks.index(rank), slice(at, at + 1)
                compared = _compared(base[:, of_base : of_base + 1], split[run][:, own])
                frames.append(compared.assign(**columns, rank=np.int64(rank), ranks=1))
    order = ["run", *(["rank"] if by == "rank" else []), "part", "kind", "clock", "steps", "ranks", "sum_ns",
             "time_ns", "change_ns", "low_ns", "high_ns", "significant"]  # fmt: skip
    frame = pd.concat(frames, ignore_index=True)
    return frame[order].astype({"run": "str", "part": "str", "kind": "str", "clock": "str"})


def sentence(frame: pd.DataFrame) -> str:
    """The answer of `step_waterfall` in one sentence: the greatest change of a step, and its main part."""
    steps = frame[frame["part"] == STEP]
    changed = steps[steps["significant"]]
    base = frame["run"].iloc[0]
    unknown = ""
    if changed.empty and steps["low_ns"].isna().any() and steps["change_ns"].any():
        unknown, changed = " (one step: noise unknown)", steps
    if changed.empty:
        return f"No step time differs from {base} by more than the steps do among themselves."
    top = changed.iloc[int(changed["change_ns"].abs().to_numpy().argmax())]
    own = frame[(frame["run"] == top["run"]) & (frame["part"] != STEP)]
    where = ""
    if "rank" in frame:
        own, where = own[own["rank"] == top["rank"]], f" on rank {top['rank']}"
    share = own["change_ns"].to_numpy() * np.sign(top["change_ns"])
    part = own.iloc[int(share.argmax())]
    longer = "longer" if top["change_ns"] > 0 else "shorter"
    return (
        f"A step of {top['run']}{where} is {duration(abs(top['change_ns']))} {longer} than of {base}, "
        f"{duration(abs(part['change_ns']))} of that by {_WORDS[part['part']]}{unknown}."
    )


def _compared(old: Int64, new: Int64) -> pd.DataFrame:
    """One row per part and the step of int64[S, R, parts] measures, compared with those of the first run."""
    same = old is new or np.shares_memory(old, new)
    totals = new.sum(axis=(0, 1))
    before = _with_step(evenly(old.sum(axis=(0, 1)), old.shape[0] * old.shape[1]))
    after = _with_step(evenly(totals, new.shape[0] * new.shape[1]))
    # The step is one comparison, as in `run_table`; its parts are as many comparisons as there are parts.
    was, now = old.mean(axis=1), new.mean(axis=1)
    whole = was.sum(axis=1, keepdims=True), now.sum(axis=1, keepdims=True)
    noise = [] if same else [difference(was, now), difference(*whole)]
    kinds = [*("busy" if part in BUSY else "idle" for part in PARTS), STEP]
    return pd.DataFrame(
        {
            "part": [*PARTS, STEP],
            "kind": kinds,
            "sum_ns": _with_step(totals),
            "time_ns": after,
            "change_ns": after - before,
            "low_ns": np.concatenate([interval.low for interval in noise]) if noise else 0.0,
            "high_ns": np.concatenate([interval.high for interval in noise]) if noise else 0.0,
            "significant": np.concatenate([interval.significant for interval in noise]) if noise else False,
        }
    )


def _with_step(values: Number) -> Number:
    return np.concatenate([values, values.sum(axis=-1, keepdims=True)], axis=-1)


ANALYSIS = Analysis(
    kind="step_waterfall",
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
        whole=STEP,
        whole_label="Step",
    ),
    requires=("device events",),
)
