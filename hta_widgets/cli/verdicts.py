"""Whether changes are within the limits of `diff --fail-on`, and more than noise."""

from __future__ import annotations

import difflib
import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import pandas as pd

from hta_widgets.analysis.compare.noise import beyond_alone
from hta_widgets.cli.exits import UsageError
from hta_widgets.cli.limits import LINES, Limit
from hta_widgets.errors import MissingDataError
from hta_widgets.formatting import brief

Outcome = Literal["holds", "within noise", "fails"]


@dataclass(frozen=True)
class Changed:
    """A change of one run from the first."""

    line: str  # the full name of the line, where it is that of one; "" elsewhere
    # in ns or bytes
    before: float
    after: float
    change: float
    # 95 % interval of the change; NaN where noise is unknown
    low: float = math.nan
    high: float = math.nan
    significant: bool = False  # more than its own noise, as far as that is known

    @property
    def pct(self) -> float:
        """Of the first run's; NaN where that is 0."""
        return 100 * self.change / self.before if self.before else math.nan


@dataclass(frozen=True)
class Verdict:
    """The outcome of one limit in one run.

    A change beyond the limit fails if it is significant. If noise is unknown, as between single steps and for
    the peak of memory, it fails, too: a gate that cannot decide must not pass.
    """

    limit: Limit
    run: str
    changed: Changed

    @property
    def noise_known(self) -> bool:
        """Whether there are enough steps to distinguish a change from noise."""
        return not math.isnan(self.changed.low)

    @property
    def outcome(self) -> Outcome:
        """Whether the limit holds, and if not, whether that may be noise."""
        if not self.limit.beyond(self.changed.before, self.changed.change):
            return "holds"
        return "fails" if self.changed.significant or not self.noise_known else "within noise"


def verdicts(
    limits: Sequence[Limit],
    measures: pd.DataFrame,
    run_table: pd.DataFrame | MissingDataError,
    lines: Mapping[str, pd.DataFrame],
) -> list[Verdict]:
    """Every limit for every run but the first.

    Args:
        measures: of `step_measures`.
        run_table: of `run_table`, for its memory; or why there is none.
        lines: of `diff`, for each way of comparing that a limit names.

    Raises:
        MissingDataError: what a limit names was not recorded.
        UsageError: it names no line, or several.
    """
    return [
        Verdict(limit, run, changed)
        for limit in limits
        for run, changed in (
            _of_line(limit, lines[limit.of])
            if limit.of in LINES
            else _of_memory(run_table)
            if limit.of == "peak_memory"
            else _of_measure(limit, measures, run_table)
        )
    ]


def _of_measure(
    limit: Limit, measures: pd.DataFrame, run_table: pd.DataFrame | MissingDataError
) -> Iterator[tuple[str, Changed]]:
    rows = measures[measures["measure"] == limit.of]
    if isinstance(run_table, MissingDataError):
        if rows.empty:
            raise run_table
        steps: list[int] = [0] * (len(rows) + 1)  # unknown; but the step, the only measure, is compared alone
    else:
        steps = run_table["steps"].tolist()
    for row, count in zip(rows.to_dict("records"), steps[1:], strict=True):
        yield row["run"], _changed(row, "time_ns", min(steps[0], count))


def _of_memory(run_table: pd.DataFrame | MissingDataError) -> Iterator[tuple[str, Changed]]:
    if isinstance(run_table, MissingDataError):
        raise run_table
    peaks = run_table["peak_bytes"]
    if peaks.isna().any():
        raise MissingDataError(
            "memory events",
            "Record with torch.profiler.profile(profile_memory=True).",
            f"--fail-on names peak_memory, and {run_table['run'][peaks.isna()].iloc[0]} has none",
        )
    before = int(peaks.iloc[0])
    for run, peak in zip(run_table["run"].iloc[1:], peaks.iloc[1:], strict=True):
        yield str(run), Changed("", before, int(peak), int(peak) - before)


def _of_line(limit: Limit, frame: pd.DataFrame) -> Iterator[tuple[str, Changed]]:
    """If a run has moved the line elsewhere, the limit applies there."""
    kind, line = _named(limit, frame)
    own = frame[frame["kind"] == kind]
    base, *rows = own[own["line"] == line].to_dict("records")
    moved = {row["run"]: row for row in own[own["moved_from"] == line].to_dict("records")}
    for row in (moved.get(row["run"], row) for row in rows):
        changed = _changed(row, "exclusive_ns", min(base["steps"], row["steps"]))
        yield row["run"], replace(changed, line=row["line"])


def _changed(row: Mapping[Hashable, Any], now: str, steps: int) -> Changed:
    """The limit is about this line only, so it is not corrected for the number of lines compared."""
    before, after, low, high = (row[name] for name in ("before_ns", now, "low_ns", "high_ns"))
    significant = row["significant"] or beyond_alone(before, after, low, high, steps)
    return Changed("", before, after, row["change_ns"], low, high, significant)


def _named(limit: Limit, frame: pd.DataFrame) -> tuple[str, str]:
    """The only line with this name, or with a name that contains it."""
    known = frame[["kind", "line"]].drop_duplicates()
    found = known[known["line"] == limit.line]
    if found.empty:
        found = known[known["line"].str.contains(limit.line, regex=False)]
    if len(found) == 1:
        kind, line = found.iloc[0]
        return str(kind), str(line)
    if len(found):
        some = "; ".join(brief(line) for line in found["line"].head(3))
        raise UsageError(
            f"{len(found)} lines match {limit.of}:{limit.line!r}: {some}{'; …' if len(found) > 3 else ''}"
        )
    similar = difflib.get_close_matches(limit.line, known["line"].head(2000), 3, 0.3)
    hint = f"; there is {'; '.join(map(brief, similar))}" if similar else ""
    raise UsageError(f"no run has a line {limit.of}:{limit.line!r}{hint}")
