"""The comparisons of runs that a panel can show, each described once, as `registry` describes analyses.

Their function takes runs by name instead of one trace, and a scope of all runs or one per run:
`(runs, scope=None, **options) -> DataFrame`. The first run is what the others are compared with.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pandas as pd

from hta_widgets.analysis.catalogue.device import IDLE_CAUSES
from hta_widgets.analysis.charts import Series, Stack, Waterfall
from hta_widgets.analysis.diff import comparability, run_table, step_waterfall
from hta_widgets.analysis.diff import diff as changed_lines
from hta_widgets.analysis.diff.comparability import sentence as comparability_in_words
from hta_widgets.analysis.diff.compare import sentence as diff_in_words
from hta_widgets.analysis.diff.run_table import sentence as runs_in_words
from hta_widgets.analysis.diff.sampling import Scopes
from hta_widgets.analysis.diff.waterfall import STEP
from hta_widgets.analysis.diff.waterfall import sentence as waterfall_in_words
from hta_widgets.analysis.entry import Analysis, Option
from hta_widgets.analysis.strategy import strategies
from hta_widgets.analysis.strategy.table import runs_sentence as strategies_in_words

if TYPE_CHECKING:
    from hta_widgets.trace.model import Trace

__all__ = ["COMPARISONS"]

_DEVICE = ("device events",)

_PARTS = (
    Series("compute_ns", "Compute", "compute"),
    Series("exposed_communication_ns", "Exposed communication", "communication"),
    Series("exposed_memory_ns", "Exposed memory", "memory"),
    *IDLE_CAUSES,
)

_BY = Option("by", "Lines", ("kernel", "op", "call_path", "module", "phase", "collective"), "kernel")
_TIME = Option("time", "Time of", ("auto", "device", "host"), "auto")


def _diff(
    runs: Mapping[str, Trace], scope: Scopes = None, by: Any = "kernel", time: Any = None
) -> pd.DataFrame:
    """`diff` with arguments in the order of the other comparisons; "auto" time is its own choice."""
    return changed_lines(runs, by, scope, None if time == "auto" else time)


COMPARISONS: dict[str, Analysis] = {
    analysis.kind: analysis
    for analysis in (
        Analysis(
            kind="run_table",
            label="Runs",
            group="Step",
            title="What a step of each run consists of",
            function=run_table,
            sentence=runs_in_words,
            chart=Stack(_PARTS, "step_ns", ("run",)),
            requires=_DEVICE,
        ),
        Analysis(
            kind="step_waterfall",
            label="Step time",
            group="Step",
            title="Why a step takes longer or shorter",
            function=step_waterfall,
            sentence=waterfall_in_words,
            chart=Waterfall(
                tuple(replace(part, column=part.column.removesuffix("_ns")) for part in _PARTS),
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
            requires=_DEVICE,
        ),
        Analysis(
            kind="diff",
            label="Changes",
            group="Lines",
            title="What changed, line by line",
            function=_diff,
            sentence=diff_in_words,
            chart=None,
            requires=("device events", "operators", "modules", "phases", "communication kernels"),
            options=(_BY, _TIME),
        ),
        Analysis(
            kind="training_strategy",
            label="Strategy",
            group="Runs",
            title="How each run is parallelised",
            function=strategies,
            sentence=strategies_in_words,
            chart=None,
            requires=(),
        ),
        Analysis(
            kind="comparability",
            label="Checks",
            group="Runs",
            title="What speaks for and against comparing these runs",
            function=comparability,
            sentence=comparability_in_words,
            chart=None,
            requires=(),
        ),
    )
}
