"""Any stretch of a rank's time, split into disjoint parts: what its device does, and why it is idle."""

from __future__ import annotations

from typing import Final

import numpy as np

from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.device_time.busy import Busy
from hta_widgets.analysis.idle.breakdown import CONSECUTIVE_KERNEL_DELAY_NS, IDLE_CAUSES
from hta_widgets.analysis.idle.causes import CAUSES, idle_causes
from hta_widgets.arrays import Int64
from hta_widgets.charts.spec import Series
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.scope import Scope

BUSY: Final = ("compute", "exposed_communication", "exposed_memory")
PARTS: Final = (*BUSY, *CAUSES)
"""Every instant is in exactly one: those of `temporal_breakdown`, and the causes of idleness."""

SERIES: Final = (
    Series("compute_ns", "Compute", "compute"),
    Series("exposed_communication_ns", "Exposed communication", "communication"),
    Series("exposed_memory_ns", "Exposed memory", "memory"),
    *IDLE_CAUSES,
)
"""How a chart shows the parts."""


def split(rank_trace: RankTrace, work: Busy, filters: Scope, windows: Int64) -> Int64:
    """int64[W, len(PARTS)]: ns of each part in each of `windows` (int64[W, 2]); they add up to its length.

    `work` is the busy time of the rank under the filters of streams and names, which alone count.
    """
    sets = (when(part, rank_trace, work, filters) for part in PARTS)
    return np.stack([part.within_each(windows) for part in sets], axis=1)


def when(part: str, rank_trace: RankTrace, work: Busy, filters: Scope) -> Intervals:
    """The time that is in a part; arguments as of `split`."""
    if part in BUSY:
        return getattr(work, part)
    return idle_causes(rank_trace, filters, CONSECUTIVE_KERNEL_DELAY_NS).causes[part]
