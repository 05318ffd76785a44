"""Whether the files that were opened together are the ranks of one job.

A folder may hold recordings of unrelated runs. Each of them is right, but ranks of different jobs have
nothing to be compared in: none is slow, none waits for another.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.reader.stated import whole_number

__all__ = ["why_several_jobs"]

# Ranks of one job run the same program. Stages of a pipeline share more than half of the names of their
# device work; unrelated models less than a quarter.
_SHARED_NAMES = 0.25
_WORK = (EventClass.COMPUTE, EventClass.COMMUNICATION)


def why_several_jobs(ranks: Sequence[RankTrace]) -> str:
    """What shows that these recordings are not of one job; "" if nothing does."""
    if len(ranks) < 2:
        return ""
    sizes = {_world_size(rank.metadata) for rank in ranks}
    stated = sizes - {0}
    if len(stated) > 1:
        return f"their files state jobs of {' and '.join(f'{size:,}' for size in sorted(stated))} ranks"
    if len(sizes) == 1 and stated and min(stated) >= len(ranks):
        return ""
    first, *others = ranks
    mine = _names(first)
    for other in others:
        theirs = _names(other)
        if mine and theirs and len(mine & theirs) < _SHARED_NAMES * len(mine | theirs):
            return f"ranks {first.label} and {other.label} hardly share a kernel"
    return ""


def _world_size(metadata: dict[str, Any]) -> int:
    """The number of ranks that a file states, 0 if none."""
    info = metadata.get("distributedInfo")
    return (whole_number(info.get("world_size")) if isinstance(info, dict) else None) or 0


def _names(rank: RankTrace) -> set[str]:
    present = np.unique(rank.name[np.isin(rank.event_class, _WORK)]).tolist()
    return {rank.names[code] for code in present}
