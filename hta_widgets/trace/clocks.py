"""Ranks on one time axis.

Each file counts from its own zero. If every file states that zero (`baseTimeNanoseconds`), absolute times put
the ranks on one axis. If none does but the recordings overlap, they share a clock. Otherwise each rank starts
at the job's start, so that durations can be compared but points in time cannot. The trace's health says which
case applies. Where ranks left the same numbered collectives at times that differ by more than the clocks of
hosts do, the clocks are wrong, and the axis is corrected by what was measured (`clock_offsets`).
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace

from hta_widgets.trace.clock_offsets import LEAST_NS, measured

# Recordings of one job start within this time of each other; a larger gap means unrelated files.
SAME_JOB_NS = 24 * 3600 * 1_000_000_000


@dataclass(frozen=True)
class Clock:
    """How the ranks were put on one axis."""

    # absolute time of the axis' zero: since the epoch for ``"base"``, else in the files' own clock
    origin_ns: int
    # rank -> what is subtracted from the file's times (ns) to get times on the axis
    offset_ns: dict[int, int]
    # ``"base"``, ``"shared"`` (one clock, zero unknown), ``"start"`` (each at its own start) or
    # ``"measured"`` (one of these, corrected)
    method: str
    detail: str  # the same as a sentence


def align(
    extents: Mapping[int, tuple[int, int]],
    bases: Mapping[int, int | None],
    meetings: Mapping[int, Mapping[Hashable, int]] | None = None,
) -> Clock:
    """Choose the axis.

    Args:
        extents: rank -> (first start, last end) in ns as in the file; ranks without events are absent.
        bases: rank -> ``baseTimeNanoseconds`` or None.
        meetings: rank -> when it left collectives, in ns as in the file, by what all ranks call them.
    """
    clock = _stated(extents, bases)
    return _corrected(clock, extents, meetings) if meetings else clock


def _corrected(
    clock: Clock, extents: Mapping[int, tuple[int, int]], meetings: Mapping[int, Mapping[Hashable, int]]
) -> Clock:
    """The axis with the clocks of all ranks set by the collectives that they left together."""
    offset = clock.offset_ns
    found = measured(
        {
            rank: {key: end - offset[rank] for key, end in ends.items()}
            for rank, ends in meetings.items()
            if rank in offset
        },
        0 if clock.method == "start" else LEAST_NS,  # without a common clock, any offset is better than none
    )
    if found is None:
        return clock
    moved = {rank: at + found.ahead_ns.get(rank, 0) for rank, at in offset.items()}
    first = min(extents[rank][0] - at for rank, at in moved.items())
    moved = {rank: at + first for rank, at in moved.items()}
    detail = f"{clock.detail}, corrected: {found.detail}"
    return replace(
        clock, origin_ns=clock.origin_ns + first, offset_ns=moved, method="measured", detail=detail
    )


def _stated(extents: Mapping[int, tuple[int, int]], bases: Mapping[int, int | None]) -> Clock:
    """The axis as the files state their times."""
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
