"""Everything that `diff` reports about runs: computed once, for text and JSON alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from hta_widgets.analysis.compare.measures import measured
from hta_widgets.analysis.compare.registry import COMPARISONS
from hta_widgets.cli.limits import LINES, Limit
from hta_widgets.cli.verdicts import Verdict, verdicts
from hta_widgets.errors import MissingDataError
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope


@dataclass(frozen=True)
class Run:
    """A run as given on the command line."""

    name: str
    path: str
    trace: Trace
    scope: Scope


@dataclass(frozen=True, eq=False)
class Comparison:
    """The answers."""

    runs: Sequence[Run]  # the first is the base that the others are compared with
    by: str  # the kind of `lines`
    doubts: pd.DataFrame  # the answer of `comparability`
    # the answers of `run_table` and `step_waterfall`, or why there are none
    table: pd.DataFrame | MissingDataError
    waterfall: pd.DataFrame | MissingDataError
    measures: pd.DataFrame  # the answer of `step_measures`
    lines: pd.DataFrame  # the answer of `diff`
    verdicts: list[Verdict]  # the outcome of each limit, for each run but the first

    @property
    def failed(self) -> bool:
        """Whether a change is beyond a limit."""
        return any(verdict.outcome == "fails" for verdict in self.verdicts)

    def first_lines(self, top: int | None) -> pd.DataFrame:
        """The rows of the `top` lines that changed most; None: of all."""
        if top is None:
            return self.lines
        return self.lines[self.lines.groupby(["kind", "line"], sort=False).ngroup() < top]


def compared(runs: Sequence[Run], by: str | None, limits: Sequence[Limit]) -> Comparison:
    """The answers for these runs.

    Args:
        runs: at least two.
        by: what to compare line by line; None: kernels, or operators where no run has device events.
        limits: of `--fail-on`.

    Raises:
        NotComparableError: numbers would mislead.
        MissingDataError: the lines, or what a limit names, were not recorded.
        UsageError: a limit names no line, or several.
    """
    traces, scopes = {run.name: run.trace for run in runs}, {run.name: run.scope for run in runs}

    def answer(kind: str) -> pd.DataFrame | MissingDataError:
        try:
            return COMPARISONS[kind].function(traces, scopes)
        except MissingDataError as missing:
            return missing

    table, waterfall = answer("run_table"), answer("step_waterfall")
    measures = measured(traces, scopes, table, waterfall)
    if by is None:
        by = "op" if isinstance(table, MissingDataError) else "kernel"
    named = {limit.of for limit in limits} & set(LINES)
    lines = {name: COMPARISONS["diff"].function(traces, scopes, by=name) for name in sorted({by, *named})}
    return Comparison(
        runs,
        by,
        COMPARISONS["comparability"].function(traces, scopes),
        table,
        waterfall,
        measures,
        lines[by],
        verdicts(limits, measures, table, lines),
    )
