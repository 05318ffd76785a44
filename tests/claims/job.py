"""A recording as a person reads it with a pencil: its events, rank by rank, and the time that is judged.

Which file is which rank, how clocks of ranks relate and which windows the judged steps have is taken from the
package (the tests of discovery, clocks and iterations hold those); all else is read here from plain JSON.
"""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from hta_widgets.analysis.findings import judged_scope
from hta_widgets.trace import Scope, Trace
from tests.verdicts.plain_reader import (
    Event,
    Rank,
    Window,
    length,
    nanoseconds,
    overlap,
    union,
)

__all__ = ["Job", "PlainRank", "Record", "Window", "length", "overlap", "union"]


@dataclass(frozen=True)
class Record(Event):
    """An event with its arguments, and its number in the file, which is its `event_id`."""

    number: int = -1
    args: dict[str, Any] = field(default_factory=dict, compare=False, hash=False)

    @property
    def dur(self) -> int:
        return self.end - self.start

    @property
    def stream(self) -> Any:
        return self.args.get("original_stream", self.args.get("stream", self.thread))


class PlainRank(Rank):
    """One rank: `tests.verdicts.plain_reader.Rank`, and the time of it that is judged."""

    def __init__(self, number: int, records: list[Record], windows: list[Window], steps: list[int]) -> None:
        super().__init__(records)
        self.number, self.windows, self.judged_steps = number, windows, steps

    @cached_property
    def by_number(self) -> dict[int, Record]:
        return {record.number: record for record in self.events}

    @property
    def judged_ns(self) -> int:
        return length(self.windows)

    def within(self, windows: list[Window]) -> int:
        """How much of the judged time these windows take, ns; `windows` need not be a union."""
        whole = union(windows)
        return sum(length(overlap(whole, window)) for window in self.windows)

    def judged(self, events: list[Record]) -> list[Record]:
        """Those that run in the judged time."""
        return [each for each in events if overlap(self.windows, each.window)]

    def named(self, name: str, events: list[Record] | None = None) -> list[Record]:
        return [each for each in (self.events if events is None else events) if each.name == name]

    @cached_property
    def kernels(self) -> list[Record]:
        """Compute kernels."""
        return [each for each in self.work if each.kind == "computing"]

    @cached_property
    def children(self) -> dict[int, list[Record]]:
        """By number of a host event: the events right inside it, on its thread."""
        found: dict[int, list[Record]] = defaultdict(list)
        for thread in self.all_threads.values():
            open_: list[Record] = []
            for each in thread:
                while open_ and open_[-1].end <= each.start:
                    open_.pop()
                if open_:
                    found[open_[-1].number].append(each)
                open_.append(each)
        return found

    @cached_property
    def parents(self) -> dict[int, Record]:
        """By number of a host event: the event right around it."""
        return {
            inner.number: self.by_number[outer] for outer, inside in self.children.items() for inner in inside
        }

    @cached_property
    def all_threads(self) -> dict[tuple[object, object], list[Record]]:
        """What each host thread did, in order; what begins together the longest first."""
        threads: dict[tuple[object, object], list[Record]] = defaultdict(list)
        for each in self.events:
            if each.category in HOST:
                threads[each.process, each.thread].append(each)
        return threads

    def around(self, record: Record) -> list[Record]:
        """What is open around a host event, the innermost first."""
        found = []
        outer = self.parents.get(record.number)
        while outer is not None:
            found.append(outer)
            outer = self.parents.get(outer.number)
        return found


HOST = {
    "cuda_runtime", "cuda_driver", "mtia_runtime", "mlu_runtime", "runtime", "xpu_runtime", "hpu_op",
    "cpu_op", "operator", "user_annotation", "python_function",
}  # fmt: skip


class Job:
    """All ranks of a recording.

    Attributes:
        announced: the steps are marked, so that shares are of step time.
        steps: the judged iterations; [] where none are marked.
        ranks: those that are judged. recorded: all of the scope.
        headers: what the file of each rank says beside its events.
    """

    def __init__(self, trace: Trace, scope: Scope | None = None) -> None:
        self.trace = trace
        judged = judged_scope(trace, scope)
        marked = trace.iterations[~trace.iterations["partial"]] if len(trace.iterations) else trace.iterations
        self.steps = sorted(judged.iterations) if judged.iterations else []
        self.announced = bool(self.steps) and len(marked) > 0
        self.recorded: dict[int, PlainRank] = {}
        self.headers: dict[int, dict[str, Any]] = {}
        documents: dict[Path, tuple[list[dict[str, Any]], dict[str, Any]]] = {}
        for number in trace.ranks_of(scope or Scope()):
            rank = trace.rank(number)
            path = Path(str(rank.path))
            if path not in documents:
                documents[path] = read(path)
            offset = trace.clock.offset_ns.get(number, 0)
            windows = [(int(start), int(end)) for start, end in rank.windows(judged).tolist()]
            own = set(trace.iterations.loc[trace.iterations["rank"] == number, "iteration"].tolist())
            numbers = set(rank.event_id.tolist())
            events, self.headers[number] = documents[path]
            records = [each for each in records_of(events, offset) if each.number in numbers]
            self.recorded[number] = PlainRank(
                number, records, windows, [step for step in self.steps if step in own]
            )
        self.ranks = {number: self.recorded[number] for number in trace.ranks_of(judged)}

    def of(self, ranks: tuple[int, ...] | list[int]) -> list[PlainRank]:
        """These ranks; all with any judged device time or host time if none are named."""
        return [self.ranks[rank] for rank in ranks] if ranks else list(self.ranks.values())


def read(path: Path) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The events of one of Kineto's files, and what it says beside them."""
    data = path.read_bytes()
    text = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    document = json.loads(text.decode("utf-8", "replace"), strict=False, parse_float=str)
    return (document.pop("traceEvents"), document) if isinstance(document, dict) else (document, {})


def records_of(events: list[dict[str, Any]], offset: int = 0) -> list[Record]:
    """The complete events, on the job's axis."""
    found = []
    for number, event in enumerate(events):
        if not isinstance(event, dict) or event.get("ph") != "X" or "ts" not in event:
            continue
        args = event.get("args") if isinstance(event.get("args"), dict) else {}
        start = nanoseconds(event["ts"]) - offset
        correlation = args.get("correlation")
        found.append(
            Record(
                name=str(event.get("name", "")),
                category=str(event.get("cat", "")).lower(),
                start=start,
                end=start + nanoseconds(event.get("dur") or 0),
                process=event.get("pid"),
                thread=str(event.get("tid")),
                correlation=None if correlation is None else int(correlation),
                number=number,
                args=args,
            )
        )
    return found
