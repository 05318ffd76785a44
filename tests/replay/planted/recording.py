"""A recording of a program, and what it would have shown if the program had been changed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Literal

from examples.simulator.truth import Occupation
from hta_widgets.trace.model import Trace
from tests.replay.planted.changes import Change, later
from tests.replay.planted.kineto import record
from tests.replay.planted.machine import Run, run
from tests.replay.planted.program import Enter, Program

__all__ = ["Clock", "Recording", "Truth"]

Clock = Literal["host", "device", "device period"]


@dataclass(frozen=True)
class Truth:
    """How long a changed program takes.

    Attributes:
        whole: all that was recorded, and how its device spends it.
        steps_ns: each step by its number, ns.
    """

    whole: Occupation
    steps_ns: dict[int, int]

    @property
    def extent_ns(self) -> int:
        return self.whole.window_ns


@dataclass(frozen=True)
class Recording:
    """What the profiler sees of a program.

    Attributes:
        waits: as for `kineto.record`.
        late_ns: as for `kineto.record`.
        first_step: recorded from the beginning of this step.
    """

    program: Program
    waits: bool = True
    late_ns: int = 0
    first_step: int = 0

    @property
    def run(self) -> Run:
        return _run(self.program)

    @cached_property
    def since_ns(self) -> int:
        """When the recording begins."""
        return self.run.steps()[self.first_step][0]

    def trace(self, folder: Path) -> Trace:
        return record(self.run, folder, self.waits, self.late_ns, self.since_ns)

    def truth(self, change: Change, clock: Clock) -> Truth:
        """The program run again, changed from the beginning of the recording on.

        Args:
            clock: what times the steps. On the device a step begins with its first work on the stream that
                was the busiest when it was recorded. A step lasts until the next one begins.
        """
        since = self.program.operations.index(Enter("user_annotation", f"ProfilerStep#{self.first_step}"))
        recorded = [done for done in self.run.work if done.end > self.since_ns]
        under_way = {done.operation for done in recorded if done.operation < since}
        changed = _changed_run(self.program, change, since, frozenset(under_way))
        begin = min([self.since_ns, *(done.begin for done in recorded)])
        steps = changed.steps()
        if clock != "host":
            steps = changed.device_steps(self.run.busiest_stream())
        else:  # the time between two steps belongs to the first
            begins = [start for start, _ in steps.values()]
            ends = [*begins[1:], *[end for _, end in steps.values()][-1:]]
            steps = dict(zip(steps, zip(begins, ends, strict=True), strict=True))
        return Truth(
            changed.occupation((begin, changed.last.ns)),
            {step: end - start for step, (start, end) in steps.items() if step >= self.first_step},
        )


@lru_cache(maxsize=16)
def _run(program: Program) -> Run:
    return run(program)


# Recordings of one program differ in what the profiler saw of it, not in what a change of it does.
@lru_cache(maxsize=64)
def _changed_run(program: Program, change: Change, since: int, under_way: frozenset[int]) -> Run:
    return run(later(change, since, under_way)(program))
