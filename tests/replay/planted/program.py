"""A program of one rank as data: what its host threads do in order, and how long everything takes by itself.

Nothing here has a time yet: `machine.run` gives the times, and `changes` turns a program into the one that a
change of the job would have made of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = [
    "DEVICE",
    "MAIN",
    "Allocate",
    "Call",
    "Enter",
    "HandOver",
    "Launch",
    "Leave",
    "Operation",
    "Program",
    "Record",
    "Spend",
    "Synchronise",
    "Wait",
    "Work",
]

DEVICE = -1  # instead of a stream: all of them
MAIN = 1  # the thread that begins

Kind = Literal["compute", "communication", "copy", "fill"]


@dataclass(frozen=True, slots=True)
class Spend:
    """The thread does something that is not a call of the runtime."""

    ns: int


@dataclass(frozen=True, slots=True)
class Enter:
    """An operator or annotation begins; all until its `Leave` on this thread lies inside."""

    category: Literal["cpu_op", "user_annotation"]
    name: str


@dataclass(frozen=True, slots=True)
class Leave:
    """The innermost open operator or annotation of the thread ends."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call of the runtime that neither launches nor waits."""

    name: str
    own_ns: int


@dataclass(frozen=True, slots=True)
class Allocate:
    """A call that allocates or frees memory: if it waits, it does its own part when the device is done."""

    name: str
    own_ns: int
    waits: bool


@dataclass(frozen=True, slots=True)
class Work:
    """A kernel, copy or fill.

    Attributes:
        ns: how long it runs.
        stream: where.
        latency_ns: from the beginning of its launch to its start, if nothing holds it up. Of a graph, only
            that of the first counts.
        gap_ns: from the end of what held it up to its start.
        elements: of a collective.
    """

    kind: Kind
    name: str
    ns: int
    stream: int
    latency_ns: int
    gap_ns: int
    elements: int = 0


@dataclass(frozen=True, slots=True)
class Launch:
    """A call that launches work: one piece, or those of a graph, one after the other on a stream.

    A blocking one returns `tail_ns` after its work has ended.
    """

    name: str
    own_ns: int
    work: tuple[Work, ...]
    blocking: bool = False
    tail_ns: int = 0


@dataclass(frozen=True, slots=True)
class Record:
    """cudaEventRecord: the event stands for all that has been launched on the stream so far."""

    event: int
    stream: int
    own_ns: int


@dataclass(frozen=True, slots=True)
class Wait:
    """cudaStreamWaitEvent: what is launched on the stream from now on waits for the event."""

    event: int
    stream: int
    own_ns: int


@dataclass(frozen=True, slots=True)
class Synchronise:
    """A call that returns `tail_ns` after a stream, the device or an event is done.

    Attributes:
        stream: number of the stream, or `DEVICE`; None if it waits for `event`.
        waits: False for one that a change keeps from waiting.
    """

    name: str
    own_ns: int
    tail_ns: int
    stream: int | None = None
    event: int | None = None
    waits: bool = True


@dataclass(frozen=True, slots=True)
class HandOver:
    """Another thread goes on so much later, and this one stops until it is handed over to again."""

    thread: int
    ns: int


Operation = Spend | Enter | Leave | Call | Allocate | Launch | Record | Wait | Synchronise | HandOver


@dataclass(frozen=True)
class Program:
    """What a rank does.

    Attributes:
        operations: in order, beginning on the thread `MAIN`.
        queue: so many launches may be under way before the next one has to wait.
    """

    operations: tuple[Operation, ...]
    queue: int = 1024
