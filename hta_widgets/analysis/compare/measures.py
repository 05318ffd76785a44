"""The changes of a step and its parts, which a gate checks against limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from hta_widgets.analysis.compare.comparability import checked
from hta_widgets.analysis.compare.noise import difference
from hta_widgets.analysis.compare.parts import communication, parts
from hta_widgets.analysis.compare.run_table import run_table
from hta_widgets.analysis.compare.sampling import Scopes, check_runs, scope_of
from hta_widgets.analysis.compare.waterfall import STEP, step_waterfall
from hta_widgets.analysis.idle.causes import CAUSES
from hta_widgets.errors import MissingDataError

if TYPE_CHECKING:
    from hta_widgets.trace.model import Trace

STEP_TIME: Final = "step_time"

_COLUMNS = {
    "run": "str",
    "measure": "str",
    "before_ns": "int64",
    "time_ns": "int64",
    "change_ns": "int64",
    "low_ns": "float64",
    "high_ns": "float64",
    "significant": "bool",
    "verdict": "str",
}
_NOISE = ["low_ns", "high_ns", "significant", "verdict"]


def step_measures(runs: Mapping[str, Trace], scope: Scopes = None) -> pd.DataFrame:
    """How did each measure of a step change: the step time, its parts, and sums of parts?

    The step time is that of `run_table`, its parts are those of `step_waterfall`, with their intervals and
    significance. Two measures are not parts and are compared by themselves: "idle", all causes together, and
    "communication", hidden or not. Runs without device events have a step time only, by the host's marks.

    Args:
        runs: name -> job; the first is the base that the others are compared with.
        scope: ranks, iterations, window (steps that lie in it), streams and names (among device work); of
            all runs, or by run.

    Returns:
        One row per run, but the first, and measure. Columns: run, measure (str), before_ns, time_ns,
        change_ns (int64, per step and rank, in the first run and in this one), low_ns, high_ns (float64, 95 %
        interval of change_ns; NaN if a run has fewer than two steps), significant (bool), verdict (str: as in
        `diff`).

    Raises:
        NotComparableError: the numbers would mislead; see `comparability`.
        ValueError: fewer than two runs.
    """
    check_runs(runs)
    try:
        table, waterfall = run_table(runs, scope), step_waterfall(runs, scope)
    except MissingDataError as missing:
        return measured(runs, scope, missing, missing)
    return measured(runs, scope, table, waterfall)


def measured(
    runs: Mapping[str, Trace],
    scope: Scopes,
    table: pd.DataFrame | MissingDataError,
    waterfall: pd.DataFrame | MissingDataError,
) -> pd.DataFrame:
    """`step_measures` from answers of `run_table` and `step_waterfall`, or the errors that they raised."""
    if isinstance(table, MissingDataError) or isinstance(waterfall, MissingDataError):
        frame = _of_host(runs, scope)
    else:
        frame = pd.concat([_steps(table), _parts(waterfall), _wholes(runs, scope, table)])
    order = {run: place for place, run in enumerate(runs)}
    frame = frame[frame["run"] != next(iter(runs))]
    frame = frame.sort_values("run", key=lambda names: names.map(order), kind="stable")
    return frame[list(_COLUMNS)].astype(_COLUMNS).reset_index(drop=True)


def _steps(table: pd.DataFrame) -> pd.DataFrame:
    columns = ["step_ns", "change_ns", "change_low_ns", "change_high_ns", "significant", "verdict"]
    return table[["run", *columns]].set_axis(
        ["run", "time_ns", "change_ns", *_NOISE], axis=1
    ).assign(measure=STEP_TIME, before_ns=table["step_ns"].iloc[0])  # fmt: skip


def _parts(waterfall: pd.DataFrame) -> pd.DataFrame:
    of_parts = waterfall[waterfall["part"] != STEP].rename(columns={"part": "measure"})
    before = of_parts["time_ns"] - of_parts["change_ns"]
    return of_parts[["run", "measure", "time_ns", "change_ns", *_NOISE]].assign(before_ns=before)


def _wholes(runs: Mapping[str, Trace], scope: Scopes, table: pd.DataFrame) -> pd.DataFrame:
    samples = checked(runs, scope)
    idle = {
        run: parts(trace, samples[run], scope_of(scope, run))[:, :, -len(CAUSES) :].sum(axis=2).mean(axis=1)
        for run, trace in runs.items()
    }
    collective = {
        run: communication(trace, samples[run], scope_of(scope, run)).mean(axis=1)
        for run, trace in runs.items()
    }
    return pd.concat(
        [
            _compared("idle", idle, table["idle_ns"].to_numpy(np.int64)),
            _compared("communication", collective, table["communication_ns"].to_numpy(np.int64)),
        ]
    )


def _of_host(runs: Mapping[str, Trace], scope: Scopes) -> pd.DataFrame:
    samples = checked(runs, scope)
    durations = {run: steps.durations / len(steps.ranks) for run, steps in samples.items()}
    means = np.array([np.rint(values.mean()) for values in durations.values()], np.int64)
    return _compared(STEP_TIME, durations, means)


def _compared(
    measure: str, samples: Mapping[str, npt.NDArray[np.float64]], means: npt.NDArray[np.int64]
) -> pd.DataFrame:
    """One row per run of a measure whose value in each step is given, and whose mean in whole ns, too."""
    first, *_ = samples.values()
    noise = [difference(first[:, None], values[:, None]) for values in samples.values()]
    return pd.DataFrame(
        {
            "run": list(samples),
            "measure": measure,
            "before_ns": means[0],
            "time_ns": means,
            "change_ns": means - means[0],
            "low_ns": [float(interval.low[0]) for interval in noise],
            "high_ns": [float(interval.high[0]) for interval in noise],
            "significant": [bool(interval.significant[0]) for interval in noise],
            "verdict": [interval.verdict[0] for interval in noise],
        }
    )
