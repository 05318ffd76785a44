"""Ranks on one time axis.

Each file counts from its own zero. If every file states that zero (`baseTimeNanoseconds`), absolute times put
the ranks on one axis. If none does but the recordings overlap, they share a clock. Otherwise each rank starts
at the job's start, so that durations can be compared but points in time cannot. The trace's health says which
case applies. Clocks of different hosts may still differ by hundreds of microseconds, which is not corrected
here.
"""

from collections.abc import Mapping
from dataclasses import dataclass

# Recordings of one job start within this time of each other; a larger gap means unrelated files.
SAME_JOB_NS = 24 * 3600 * 1_000_000_000


@dataclass(frozen=True)
class Clock:
    """How the ranks were put on one axis.

    Attributes:
        origin_ns: absolute time of the axis' zero: since the epoch for ``"base"``, else in the files' own
            clock.
        offset_ns: rank -> what is subtracted from the file's times (ns) to get times on the axis.
        method: ``"base"``, ``"shared"`` (one clock, zero unknown) or ``"start"`` (each at its own start).
        detail: the same as a sentence.
    """

    origin_ns: int
    offset_ns: dict[int, int]
    method: str
    detail: str


def align(extents: Mapping[int, tuple[int, int]], bases: Mapping[int, int | None]) -> Clock:
    """Choose the axis.

    Args:
        extents: rank -> (first start, last end) in ns as in the file; ranks without events are absent.
        bases: rank -> ``baseTimeNanoseconds`` or None.
    """
    if not extents:
        return Clock(0, {}, "start", "no rank has events")
    known = {rank: base for rank in extents if (base := bases.get(rank)) is not None}
    if len(known) == len(extents):
        starts = {rank: extents[rank][0] + base for rank, base in known.items()}
        if max(starts.values()) - min(starts.values()) <= SAME_JOB_NS:
            origin = min(starts.values())
            return Clock(
                origin,
                {rank: origin - base for rank, base in known.items()},
                "base",
                "absolute times (baseTimeNanoseconds)",
            )
    if not known and _overlap(extents):
        origin = min(start for start, _ in extents.values())
        return Clock(
            origin, dict.fromkeys(extents, origin), "shared", "the files' own clock, which all ranks share"
        )
    why = (
        "the recordings lie more than a day apart"
        if len(known) == len(extents)
        else "the files have no common clock"
    )
    offsets = {rank: start for rank, (start, _) in extents.items()}
    return Clock(min(offsets.values()), offsets, "start", f"{why}: each rank is aligned at its own start")


def _overlap(extents: Mapping[int, tuple[int, int]]) -> bool:
    return max(start for start, _ in extents.values()) <= min(end for _, end in extents.values())
