"""A hand-made job with the surface of `Trace` that the analyses read: small numbers, worked out on paper."""

from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.scope import Scope

COMPUTE, COMMUNICATION = EventClass.COMPUTE, EventClass.COMMUNICATION
COPY, SET, SYNC, HOST = EventClass.MEMORY_COPY, EventClass.MEMORY_SET, EventClass.SYNC, EventClass.HOST_OP

Event = tuple[int, int, EventClass]


@dataclass(eq=False)
class FakeRank:
    """One rank of (start, end, class) events, stream by position: event i runs on stream `streams[i]`."""

    events: list[Event]
    streams: list[int] = field(default_factory=list)
    steps: list[tuple[int, int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        columns = np.array(self.events, np.int64).reshape(-1, 3)
        self.start, self.end = columns[:, 0].copy(), columns[:, 1].copy()
        self.event_class = columns[:, 2].astype(np.uint8)
        self.is_device = self.event_class < SYNC
        self.stream = np.array(self.streams or [7] * len(self.events), np.int64)
        self.names = [member.label for member in EventClass]
        self.name = self.event_class.astype(np.int32)
        self.iterations = pd.DataFrame(self.steps, columns=["iteration", "start_ns", "end_ns"])

    @property
    def device_span(self) -> tuple[int, int] | None:
        if not self.is_device.any():
            return None
        return int(self.start[self.is_device].min()), int(self.end[self.is_device].max())

    def windows(self, scope: Scope) -> np.ndarray:
        windows = [step[1:] for step in self.steps if step[0] in (scope.iterations or ())]
        if not scope.iterations:
            windows = [scope.window_ns or self.device_span]
        elif scope.window_ns:
            low, high = scope.window_ns
            windows = [(max(a, low), min(b, high)) for a, b in windows if max(a, low) < min(b, high)]
        return np.array(windows, np.int64).reshape(-1, 2)


class FakeTrace:
    answers = None  # nothing is kept
    exceeds_memory = False

    def __init__(self, ranks: dict[int, FakeRank]) -> None:
        self._ranks = ranks
        self.ranks = sorted(ranks)

    def ranks_of(self, scope: Scope) -> list[int]:
        return [rank for rank in self.ranks if not scope.ranks or rank in scope.ranks]

    def rank(self, number: int) -> FakeRank:
        return self._ranks[number]
