"""The comparisons of runs that a panel can show, each described once, as `registry` describes analyses.

Their function takes runs by name instead of one trace, and a scope for all runs or one per run:
`(runs, scope=None, **options) -> DataFrame`. The first run is the base that the others are compared with.
"""

from __future__ import annotations

from typing import Final

from hta_widgets.analysis.core.entry import Entries

COMPARISONS: Final = Entries(
    {
        "run_table": "compare.run_table",
        "step_waterfall": "compare.waterfall",
        "diff": "compare.compare",
        "training_strategy": "strategy.table:COMPARISON",
        "comparability": "compare.comparability",
    }
)
