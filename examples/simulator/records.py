"""What the profiler of one rank writes down, before it becomes JSON.

Times are integer nanoseconds since the simulation began.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Slice:
    """Something with a beginning and an end (phase "X")."""

    category: str
    name: str
    pid: int
    tid: int
    start_ns: int
    end_ns: int = -1
    args: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Instant:
    """Something that happens at one moment (phase "i")."""

    category: str
    name: str
    pid: int
    tid: int
    at_ns: int
    args: dict[str, Any]


@dataclass(slots=True)
class Flow:
    """One end of an arrow: phase "s" where it starts, "f" where it finishes."""

    phase: str
    name: str
    flow_id: int
    pid: int
    tid: int
    at_ns: int


@dataclass(slots=True)
class Recorder:
    """The event buffers of one rank and the counters that number its events."""

    slices: list[Slice] = field(default_factory=list)
    instants: list[Instant] = field(default_factory=list)
    flows: list[Flow] = field(default_factory=list)
    thread_names: dict[tuple[int, int], str] = field(default_factory=dict)
    _counters: dict[str, int] = field(default_factory=dict)

    def number(self, counter: str) -> int:
        """The next number of a counter, from 1."""
        value = self._counters.get(counter, 0) + 1
        self._counters[counter] = value
        return value
