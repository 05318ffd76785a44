"""How far the clocks of ranks are apart, measured by the collectives that they leave together."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from itertools import chain

import numpy as np

from hta_widgets.formatting import duration

# Fewer prove nothing, and clocks of hosts that are set over the network differ by less than this.
_LEAST_MEETINGS = 3
LEAST_NS = 100_000
# An offset counts if it is many times as large as the moments at which ranks leave collectives scatter.
_CERTAIN = 10.0
_MINUTE_NS = 60 * 1_000_000_000
_LEAST_SPAN_NS = 1_000_000_000
_NAMED = 3


@dataclass(frozen=True)
class Measured:
    """How far the clocks of ranks are ahead of one rank's."""

    ahead_ns: Mapping[int, int]  # of each rank, 0 for those that agree or met nobody
    detail: str  # the same as a sentence


def measured(meetings: Mapping[int, Mapping[Hashable, int]], least_ns: int = LEAST_NS) -> Measured | None:
    """The offsets of clocks that differ by more than networks let them; None if none is known to.

    Args:
        meetings: of each rank the moments at which it left collectives, in ns, by what all ranks call them.
        least_ns: smaller offsets count as none.
    """
    ahead: dict[int, int] = {}
    texts: list[str] = []
    # Of each collective the ranks that left it and are not known yet: of thousands most never meet.
    unknown: defaultdict[Hashable, set[int]] = defaultdict(set)
    for rank, left in meetings.items():
        if len(left) >= _LEAST_MEETINGS:
            for key in left:
                unknown[key].add(rank)

    def reach(rank: int, offset: int) -> None:
        ahead[rank] = offset
        reached.append(rank)
        for key in meetings[rank]:
            unknown[key].discard(rank)

    for first in sorted(meetings):
        if first in ahead:
            continue
        reached: list[int] = []
        reach(first, 0)
        for known in reached:  # which grows: those that met somebody who is known
            met = Counter(chain.from_iterable(unknown[key] for key in meetings[known]))
            for other in sorted(rank for rank, times in met.items() if times >= _LEAST_MEETINGS):
                offset, error, drift, count = _pair(meetings[known], meetings[other])
                certain = abs(offset) > max(least_ns, _CERTAIN * error)
                reach(other, ahead[known] + (offset if certain else 0))
                if certain:
                    texts.append(_in_words(other, known, offset, error, drift, count))
    if not texts:
        return None
    more = f", and {len(texts) - _NAMED} more" if len(texts) > _NAMED else ""
    return Measured(ahead, "; ".join(texts[:_NAMED]) + more)


def _pair(one: Mapping[Hashable, int], other: Mapping[Hashable, int]) -> tuple[int, int, float, int]:
    """(how far the other's clock is ahead, its error, its drift per minute in ns, collectives in common)."""
    shared = one.keys() & other.keys()
    at = np.array([one[key] for key in shared], np.int64)
    apart = np.array([other[key] for key in shared], np.int64) - at
    offset = int(np.median(apart))
    rest = (apart - offset).astype(np.float64)
    span = int(at.max() - at.min())
    drift = 0.0
    if span >= _LEAST_SPAN_NS:
        slope, level = np.polyfit((at - at.min()).astype(np.float64), rest, 1)
        remaining = rest - slope * (at - at.min()) - level
        if abs(slope) * span > _CERTAIN * (np.median(np.abs(remaining)) + 1):
            drift, rest = slope * _MINUTE_NS, remaining
    return offset, int(np.median(np.abs(rest))), drift, len(shared)


def _in_words(rank: int, reference: int, offset: int, error: int, drift: float, count: int) -> str:
    side = "ahead of" if offset > 0 else "behind"
    drifts = f", drifting by {duration(abs(drift))} per minute" if drift else ""
    return (
        f"the clock of rank {rank} is {duration(abs(offset))} {side} rank {reference}'s "
        f"(± {duration(error)}){drifts}. It was measured by {count} collectives that both left together"
    )
