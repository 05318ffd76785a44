"""How far the clocks of ranks are apart, measured by the collectives that they leave together."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

import numpy as np

from hta_widgets.formatting import duration

__all__ = ["Measured", "measured"]

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
    """How far the clocks of ranks are ahead of one rank's.

    Attributes:
        ahead_ns: of each rank, 0 for those that agree or met nobody.
        detail: the same as a sentence.
    """

    ahead_ns: Mapping[int, int]
    detail: str


def measured(meetings: Mapping[int, Mapping[Hashable, int]], least_ns: int = LEAST_NS) -> Measured | None:
    """The offsets of clocks that differ by more than networks let them; None if none is known to.

    Args:
        meetings: of each rank the moments at which it left collectives, in ns, by what all ranks call them.
        least_ns: smaller offsets count as none.
    """
    ahead: dict[int, int] = {}
    told: list[str] = []
    for first in sorted(meetings):
        if first in ahead:
            continue
        ahead[first] = 0
        reached = [first]
        for known in reached:  # which grows: those that met somebody who is known
            for other in sorted(meetings.keys() - ahead.keys()):
                found = _pair(meetings[known], meetings[other])
                if found is None:
                    continue
                offset, error, drift, count = found
                certain = abs(offset) > max(least_ns, _CERTAIN * error)
                ahead[other] = ahead[known] + (offset if certain else 0)
                reached.append(other)
                if certain:
                    told.append(_in_words(other, known, offset, error, drift, count))
    if not told:
        return None
    more = f", and {len(told) - _NAMED} more" if len(told) > _NAMED else ""
    return Measured(ahead, "; ".join(told[:_NAMED]) + more)


def _pair(one: Mapping[Hashable, int], other: Mapping[Hashable, int]) -> tuple[int, int, float, int] | None:
    """(how far the other's clock is ahead, its error, its drift per minute in ns, collectives in common)."""
    shared = one.keys() & other.keys()
    if len(shared) < _LEAST_MEETINGS:
        return None
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
        f"(± {duration(error)}, by {count} collectives that both left together){drifts}"
    )
