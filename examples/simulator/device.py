"""One rank's GPU: streams that run their work in the order it was submitted.

Work starts when three things have happened: the host's launch has reached the device, the stream has
finished what came before, and the events the stream was told to wait for have been recorded.
A collective also needs the other ranks (`collective.py`), so work is only *submitted* here and gets
its times when the ranks are resolved together.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from examples.simulator.records import Slice

COMPUTE_STREAM = 7
COPY_STREAM = 20
NCCL_STREAM = 40
POST_BACKWARD_STREAM = 24


@dataclass(slots=True)
class Work:
    """A kernel, copy or memset. `start_ns` and `end_ns` are -1 until it is resolved.

    `gap_ns` is what the device needs between the end of earlier work and the start of this.
    """

    category: str
    name: str
    stream: int
    ready_ns: int
    duration_ns: int
    gap_ns: int
    args: dict[str, Any]
    launch: Slice
    annotations: tuple[Slice, ...]
    after: list[Work] = field(default_factory=list)
    collective: int | None = None
    start_ns: int = -1
    end_ns: int = -1


@dataclass(slots=True)
class Device:
    """Submitted work, in submission order; everything before `resolved` has its times."""

    index: int
    work: list[Work] = field(default_factory=list)
    resolved: int = 0
    _last: dict[int, Work] = field(default_factory=dict)
    _waits: dict[int, list[Work]] = field(default_factory=dict)

    def submit(self, work: Work) -> None:
        previous = self._last.get(work.stream)
        work.after = self._waits.pop(work.stream, [])
        if previous is not None:
            work.after.append(previous)
        self._last[work.stream] = work
        self.work.append(work)

    def last(self, stream: int) -> Work | None:
        """The work an event recorded on `stream` now would stand for."""
        return self._last.get(stream)

    def wait(self, stream: int, work: Work | None) -> None:
        """Whatever is submitted to `stream` next starts after `work` (cudaStreamWaitEvent)."""
        if work is not None:
            self._waits.setdefault(stream, []).append(work)


def begin(work: Work) -> None:
    """Give `work` its start: everything it waits for must have its end already."""
    work.start_ns = max([work.ready_ns, *(earlier.end_ns + work.gap_ns for earlier in work.after)])
