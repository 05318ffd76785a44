"""The comparisons of runs that a panel can show, each described once, as `registry` describes analyses.

Their function takes runs by name instead of one trace, and a scope for all runs or one per run:
`(runs, scope=None, **options) -> DataFrame`. The first run is the base that the others are compared with.
"""

from __future__ import annotations

from hta_widgets.analysis.compare import compare, waterfall
from hta_widgets.analysis.compare.comparability import ANALYSIS as COMPARABILITY
from hta_widgets.analysis.compare.run_table import ANALYSIS as RUN_TABLE
from hta_widgets.analysis.core.entry import Analysis
from hta_widgets.analysis.strategy import table as strategy

__all__ = ["COMPARISONS"]

COMPARISONS: dict[str, Analysis] = {
    entry.kind: entry
    for entry in (
        RUN_TABLE,
        waterfall.ANALYSIS,
        compare.ANALYSIS,
        strategy.COMPARISON,
        COMPARABILITY,
    )
}
