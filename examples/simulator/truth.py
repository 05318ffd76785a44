"""What the simulation knows to be true, computed from its own records and nothing that reads a trace.

Tests compare the analyses with it to the nanosecond, so it shares no code with them: it walks the boundaries
of all work from left to right and looks at what is running between one boundary and the next.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from examples.simulator.collective import Collective
from examples.simulator.device import Work

Kind = Literal["compute", "communication", "memory"]


@dataclass(frozen=True)
class Occupation:
    """How one window of one device was spent. Exposed means: with nothing more valuable running.

    `compute_ns + exposed_communication_ns + exposed_memory_ns + idle_ns == window_ns`; `communication_ns` and
    `memory_ns` count all of it, hidden behind other work or not.
    """

    start_ns: int
    end_ns: int
    compute_ns: int
    communication_ns: int
    memory_ns: int
    exposed_communication_ns: int
    exposed_memory_ns: int
    idle_ns: int

    @property
    def window_ns(self) -> int:
        return self.end_ns - self.start_ns


@dataclass(frozen=True)
class RankTruth:
    """One rank: its work as intervals, its steps by number, and its whole device span."""

    intervals: Mapping[Kind, tuple[tuple[int, int], ...]]
    steps: Mapping[int, Occupation]
    device_span: Occupation


@dataclass(frozen=True)
class JobTruth:
    """The whole job. Times are ns since the simulation began, on one true clock.

    `unit_parameters` counts the model's parameters outside its blocks, then those of each block, without
    padding. `held_bytes` is what each rank keeps for good: weights and, in training, the optimizer's moments.
    """

    ranks: Mapping[int, RankTruth]
    collectives: tuple[Collective, ...]
    straggler: int | None
    unit_parameters: tuple[int, ...]
    held_bytes: int


def rank_truth(work: Iterable[Work], steps: Mapping[int, tuple[int, int]]) -> RankTruth:
    """The truth of a rank whose steps are these; a step lasts until the next one begins."""
    intervals: dict[Kind, list[tuple[int, int]]] = {"compute": [], "communication": [], "memory": []}
    for item in work:
        intervals[_kind(item)].append((item.start_ns, item.end_ns))
    everything = [interval for found in intervals.values() for interval in found]
    span = min(start for start, _ in everything), max(end for _, end in everything)
    begins = sorted(start for start, _ in steps.values())
    windows = {
        number: (start, next((begin for begin in begins if begin > start), end))
        for number, (start, end) in steps.items()
    }
    return RankTruth(
        {kind: tuple(sorted(found)) for kind, found in intervals.items()},
        {number: occupation(intervals, window) for number, window in windows.items()},
        occupation(intervals, span),
    )


def _kind(work: Work) -> Kind:
    if work.collective is not None:
        return "communication"
    return "compute" if work.category == "kernel" else "memory"


def occupation(intervals: Mapping[Kind, list[tuple[int, int]]], window: tuple[int, int]) -> Occupation:
    """Sweep over `window` and charge each stretch to what runs in it."""
    first, last = window
    changes: list[tuple[int, Kind | None, int]] = [(first, None, 0), (last, None, 0)]
    for kind, found in intervals.items():
        for start, end in found:
            start, end = max(start, first), min(end, last)
            if start < end:
                changes += [(start, kind, 1), (end, kind, -1)]
    changes.sort(key=lambda change: change[0])

    running: Counter[Kind] = Counter()
    spent: Counter[str] = Counter()
    previous = first
    for moment, changed, by in changes:
        stretch = moment - previous
        for kind in intervals:
            if running[kind]:
                spent[kind] += stretch
        spent["exposed " + _most_valuable(running)] += stretch
        previous = moment
        if changed is not None:
            running[changed] += by
    return Occupation(
        first,
        last,
        spent["compute"],
        spent["communication"],
        spent["memory"],
        spent["exposed communication"],
        spent["exposed memory"],
        spent["exposed idle"],
    )


def _most_valuable(running: Mapping[Kind, int]) -> str:
    if running["compute"]:
        return "compute"
    if running["communication"]:
        return "communication"
    return "memory" if running["memory"] else "idle"
