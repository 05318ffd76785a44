"""The events of a file read with `json` alone, and slow answers about them: a second opinion."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any

Plain = dict[str, Any]

CALLS = {"cpu_op", "cuda_runtime", "python_function", "user_annotation"}
DEVICE = {"kernel", "gpu_memcpy", "gpu_memset"}


class Recording:
    """All slices of a file: `at` is the place in the file, `start` and `end` are ns."""

    def __init__(self, path: Path) -> None:
        self.events: list[Plain] = []
        content = json.loads(gzip.decompress(path.read_bytes()), parse_float=Decimal)
        for at, event in enumerate(content["traceEvents"]):
            if event.get("ph") == "X":
                start = int(event["ts"] * 1000)
                end = start + int(event["dur"] * 1000)
                self.events.append({**event, "at": at, "start": start, "end": end})

    def of(self, *categories: str) -> list[Plain]:
        return [event for event in self.events if event["cat"] in categories]

    @cached_property
    def work(self) -> list[Plain]:
        return self.of(*DEVICE)

    @cached_property
    def _launches(self) -> dict[int, Plain]:
        return {call["args"]["correlation"]: call for call in self.of("cuda_runtime")}

    @cached_property
    def _threads(self) -> dict[tuple[object, object], list[Plain]]:
        threads = defaultdict(list)
        for event in self.of(*CALLS):
            threads[event["pid"], event["tid"]].append(event)
        return threads

    def launch(self, work: Plain) -> Plain | None:
        return self._launches.get(work["args"]["correlation"])

    def around(self, event: Plain) -> list[Plain]:
        """The calls of its thread that hold it, shortest first; of device work its launch and those."""
        if event["cat"] in DEVICE:
            launch = self.launch(event)
            return [launch, *self.around(launch)] if launch else []
        holding = [
            other
            for other in self._threads[event["pid"], event["tid"]]
            if other is not event and other["start"] <= event["start"] and event["end"] <= other["end"]
        ]
        return sorted(holding, key=lambda other: other["end"] - other["start"])

    @cached_property
    def _inside(self) -> dict[int, list[Plain]]:
        inside = defaultdict(list)
        for event in self.of(*CALLS):
            for caller in self.around(event)[:1]:
                inside[caller["at"]].append(event)
        return inside

    def inside(self, event: Plain) -> list[Plain]:
        """The calls whose innermost caller is this one, by start."""
        return sorted(self._inside[event["at"]], key=lambda other: other["start"])

    @cached_property
    def _work_in(self) -> dict[int, list[Plain]]:
        inside = defaultdict(list)
        for event in self.work:
            for caller in self.around(event):
                inside[caller["at"]].append(event)
        return inside

    def work_in(self, call: Plain) -> list[Plain]:
        """The device work that a call and those in it launched, by start."""
        return sorted(self._work_in[call["at"]], key=lambda event: event["start"])

    def on_stream(self, stream: int) -> list[Plain]:
        work = [event for event in self.work if event["args"]["stream"] == stream]
        return sorted(work, key=lambda event: event["start"])


def covered(spans: list[tuple[int, int]], start: int, end: int) -> int:
    """How much of a window some of the spans cover, by a walk from one end to the next."""
    total, at = 0, start
    for low, high in sorted(spans):
        low, high = max(low, at), min(high, end)
        if high > low:
            total, at = total + high - low, high
    return total
