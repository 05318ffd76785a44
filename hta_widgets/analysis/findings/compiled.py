"""Which code torch.compile made: by the regions that the host is in, and by the names of its kernels.

Advice follows the place: what is compiled is not told to be compiled, and what is eager knows no modes of the
compiler, whatever else of the program is compiled.
"""

from __future__ import annotations

import re
from typing import Final

import numpy as np

from hta_widgets.analysis.core.intervals import Intervals
from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.findings.callers import begins_in
from hta_widgets.analysis.findings.finding import NOTE_PCT
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.idle.causes import named, rows_named
from hta_widgets.analysis.idle.places import INDUCTOR_FILE
from hta_widgets.arrays import Bool, Int64
from hta_widgets.trace.rank_trace import RankTrace

MOST: Final = 0.5
REGION: Final = re.compile(r"^Torch-Compiled Region|^CompiledFunction|CompiledFxGraph")
_KERNEL: Final = re.compile(r"^triton_(?:poi|red|per|tem|for|mm|bmm|helion)_")


@memoize_per_rank()
def _regions(rank_trace: RankTrace) -> Int64:
    """The calls of the host into compiled code."""
    rows = rows_named(rank_trace, _is_region)
    return rows[rank_trace.on_host[rows]]


def _is_region(name: str) -> bool:
    return bool(REGION.search(name) or INDUCTOR_FILE.search(name))


@memoize_per_rank()
def compiled_work(rank_trace: RankTrace) -> Bool:
    """For each row whether it is device work of compiled code: launched in it, or named by its compiler."""
    found = named(rank_trace, _KERNEL.match) & rank_trace.is_device
    rows = rank_trace.launched
    if len(regions := _regions(rank_trace)):
        found[rows] |= begins_in(rank_trace, rank_trace.issuer[rows].astype(np.int64), regions)
    return found


def compiles(inputs: Inputs, rank: int) -> bool:
    """Whether a part of the device work of the judged time that is worth a word is that of compiled code."""
    rank_trace = inputs.trace.rank(rank)
    rows = rank_trace.rows(inputs.scope)
    return compiled_part(inputs, rank, rows[rank_trace.is_device[rows]]) >= NOTE_PCT / 100


def compiled_part(inputs: Inputs, rank: int, rows: Int64) -> float:
    """How much (0 to 1) of the time of this device work is that of compiled code."""
    rank_trace = inputs.trace.rank(rank)
    time = rank_trace.dur[rows]
    return float(time[compiled_work(rank_trace)[rows]].sum()) / max(int(time.sum()), 1)


def host_compiled(inputs: Inputs, rank: int, idle: Intervals) -> bool:
    """Whether most of an idle time the host is in compiled code, or before one of its own kernels."""
    rank_trace = inputs.trace.rank(rank)
    codes, code = np.unique(rank_trace.name[_following(inputs, rank, idle)], return_inverse=True)
    own = np.array([bool(_KERNEL.match(rank_trace.names[each])) for each in codes.tolist()] or [False])[code]
    regions = _regions(rank_trace)
    inside = Intervals.union(rank_trace.start[regions], rank_trace.end[regions])
    return _most(idle, inside | Intervals(idle.start[own], idle.end[own]))


def device_compiled(inputs: Inputs, rank: int, idle: Intervals) -> bool:
    """Whether most of an idle time comes before work of compiled code."""
    own = compiled_work(inputs.trace.rank(rank))[_following(inputs, rank, idle)]
    return _most(idle, Intervals(idle.start[own], idle.end[own]))


def _following(inputs: Inputs, rank: int, idle: Intervals) -> Int64:
    """The work that ends the gap in which each piece of an idle time lies."""
    causes = inputs.idle_causes(rank)
    return causes.next_row[np.searchsorted(causes.gaps.end, idle.end)]


def _most(idle: Intervals, part: Intervals) -> bool:
    return 0 < MOST * idle.length <= (idle & part).length
