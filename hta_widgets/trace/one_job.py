"""Whether the files that were opened together are the ranks of one job.

A folder may hold recordings of unrelated runs. Each of them is right, but ranks of different jobs have
nothing to be compared in: none is slow, none waits for another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from typing import Any

from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.reader.stated import whole_number

# Ranks of one job run the same program. Stages of a pipeline share more than half of the names of their
# device work; unrelated models less than a quarter.
_SHARED_NAMES = 0.25


def why_several_jobs(ranks: Sequence[RankTrace]) -> str:
    """What shows that these recordings are not of one job; "" if nothing does."""
    return several_jobs(
        [rank.label for rank in ranks],
        [world_size(rank.metadata) for rank in ranks],
        lambda: map(device_names, ranks),
    )


def several_jobs(
    labels: Sequence[str], sizes: Sequence[int], names: Callable[[], Iterable[frozenset[str]]]
) -> str:
    """`why_several_jobs`, of ranks' labels, `world_size` and `device_names` (asked for if need be)."""
    if len(labels) < 2:
        return ""
    stated = set(sizes) - {0}
    if len(stated) > 1:
        return f"their files state jobs of {' and '.join(f'{size:,}' for size in sorted(stated))} ranks"
    if len(set(sizes)) == 1 and stated and min(stated) >= len(labels):
        return ""
    first, *others = labels
    each = iter(names())
    mine = next(each)
    for other, theirs in zip(others, each, strict=True):
        if unrelated(mine, theirs):
            return f"ranks {first} and {other} hardly share a kernel"
    return ""


def unrelated(mine: Set[object], theirs: Set[object]) -> bool:
    """Whether two programs, as the names of their device work, hardly share one; False if one is unknown."""
    return bool(mine and theirs) and len(mine & theirs) < _SHARED_NAMES * len(mine | theirs)


def world_size(metadata: dict[str, Any]) -> int:
    """The number of ranks that a file states, 0 if none."""
    info = metadata.get("distributedInfo")
    return (whole_number(info.get("world_size")) if isinstance(info, dict) else None) or 0


def device_names(rank: RankTrace) -> frozenset[str]:
    """The names of a rank's compute and communication."""
    return rank.work_names
