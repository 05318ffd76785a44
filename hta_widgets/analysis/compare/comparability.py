"""Whether runs can be compared at all, and what else differs between them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pandas as pd

from hta_widgets.analysis.compare.checks import CHECKS, REFUSING, Runs, Samples
from hta_widgets.analysis.compare.sampling import Scopes, Steps, check_runs, sample
from hta_widgets.analysis.core.entry import Analysis
from hta_widgets.charts.spec import Table
from hta_widgets.engine import checkpoint
from hta_widgets.errors import NotComparableError

if TYPE_CHECKING:
    from hta_widgets.trace.model import Trace


def comparability(runs: Mapping[str, Trace], scope: Scopes = None) -> pd.DataFrame:
    """Check what the runs must have in common for their difference to mean something.

    Severity "refuse": the numbers would mislead, and `diff`, `step_waterfall` and `run_table` raise
    `NotComparableError`; "doubt": the numbers hold, but something other than the change in question may be
    their cause; "ok".

    The checks: steps (refused if no step counts; doubted with fewer than three, too few to estimate noise, or
    if a tenth or more, and at least two, are outliers), kind of steps (refused: training against serving, or
    steps against a whole recording; doubted: marked by something else), device work (refused: recorded in
    some runs only), devices, world size, recorded ranks, profiler options, python frames (all slow down the
    host), versions (those that several runs recorded), what a server did in its steps, and input shapes
    (doubted if fewer than 90 % of the operators' calls per step have the same name and shapes in both).

    Args:
        runs: name -> job; the first is the base that the others are compared with.
        scope: ranks, iterations, window, streams, names; of all runs, or by run.

    Returns:
        One row per check and run, in this order, runs as given. Columns: check, severity, run, value (what
        was found in the run), reason (why not ok, in a sentence; "" where ok) (str).

    Raises:
        ValueError: no runs.
    """
    check_runs(runs, least=1)
    return _frame(runs, sample(runs, scope))


def checked(runs: Mapping[str, Trace], scope: Scopes = None) -> dict[str, Steps]:
    """The sample of each run.

    Raises:
        NotComparableError: a check refuses.
    """
    samples = sample(runs, scope)
    found = [check(runs, samples) for check in REFUSING]
    reasons = [reason for _, severity, reason in found if severity == "refuse"]
    if reasons:
        raise NotComparableError(reasons)
    return samples


def sentence(frame: pd.DataFrame) -> str:
    """The answer of `comparability` in words."""
    worse = frame[frame["severity"] != "ok"].drop_duplicates("check")
    refused = worse[worse["severity"] == "refuse"]
    if len(refused):
        return f"These runs cannot be compared: {'; '.join(refused['reason'])}."
    if len(worse):
        return f"These runs can be compared, with doubts: {'; '.join(worse['reason'])}."
    return "Nothing that was recorded speaks against comparing these runs."


def _frame(runs: Runs, samples: Samples) -> pd.DataFrame:
    rows = []
    for name, check in CHECKS.items():
        checkpoint()
        values, severity, reason = check(runs, samples)
        rows += [(name, severity, run, values[run], reason) for run in runs]
    return pd.DataFrame(rows, columns=["check", "severity", "run", "value", "reason"]).astype("str")


ANALYSIS = Analysis(
    label="Checks",
    group="Runs",
    title="What speaks for and against comparing these runs",
    function=comparability,
    sentence=sentence,
    chart=None,
    requires=(),
    pictured=Table(across="run", value="value"),
)
