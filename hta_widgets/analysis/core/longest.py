"""What takes longest, of equals by time or name: never by the place in a file."""

from __future__ import annotations

import numpy as np

from hta_widgets.arrays import Int64
from hta_widgets.trace.ordering import longest_at
from hta_widgets.trace.rank_trace import RankTrace


def longest_row(rank_trace: RankTrace, rows: Int64) -> int:
    """Which of these rows takes longest, of equals the one that begins first."""
    return int(rows[longest_at(rank_trace.start[rows], rank_trace.dur[rows])])


def longest_name(rank_trace: RankTrace, rows: Int64) -> str:
    """The name of those of these rows that take most time together, of equals the first by the alphabet."""
    time = np.bincount(rank_trace.name[rows], rank_trace.dur[rows])
    return min(rank_trace.names[code] for code in np.flatnonzero(time == time.max()).tolist())
