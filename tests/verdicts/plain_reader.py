"""Reads a recording the slow and obvious way: what a reader with a pencil would count.

It shares no code and no rule with the package, so that its numbers can judge what the package says. Times are
integer nanoseconds, taken from the decimal text of the file.
"""

import gzip
import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cache, cached_property
from itertools import islice, pairwise
from pathlib import Path

Window = tuple[int, int]
Thread = tuple[object, object]

# What Kineto calls kernels, copies and fills, now and in 2021. MTIA has one category for all that streams do.
KERNELS = {"kernel", "mtia_ccp_events"}
COPIES = {"gpu_memcpy", "gpu_memset", "memcpy", "memset", "mlu_memcpy", "mlu_memset"}
MTIA_COPY = "dma_request"
MTIA_WAITS = {"event_wait", "event_record"}
CALLS = {"cuda_runtime", "cuda_driver", "mtia_runtime", "mlu_runtime", "runtime", "hpu_op"}
HOST = CALLS | {"cpu_op", "operator", "user_annotation", "python_function"}

COMMUNICATION = re.compile(
    r"nccl|rccl|cross_device_reduce|all_?reduce|all_?gather|reduce_?scatter"
    r"|(?:deep_ep|pplx)::.*(?:dispatch|combine)",
    re.IGNORECASE,
)
STEP = re.compile(r"ProfilerStep#|execute_(\d+_)?context_|step\[")
LOADER = re.compile(r"DataLoader|dataloader\.py|_next_data")
SYNCHRONISING = re.compile(r"(cuda|hip)(\w*Synchronize|Memcpy|MemcpyWithStream|Memset|Free)(_v2)?$")


@dataclass(frozen=True)
class Event:
    name: str
    category: str
    start: int
    end: int
    process: object
    thread: object
    correlation: int | None

    @property
    def window(self) -> Window:
        return self.start, self.end

    @cached_property
    def kind(self) -> str:
        """``copying``, ``communicating`` or ``computing``; empty for what no device does."""
        if self.category in COPIES or (self.category in KERNELS and self.name == MTIA_COPY):
            return "copying"
        if self.category not in KERNELS or self.name in MTIA_WAITS:
            return ""
        return "communicating" if _communicates(self.name) else "computing"


@cache
def _communicates(name: str) -> bool:
    return COMMUNICATION.search(name) is not None


@dataclass(frozen=True)
class Idle:
    """Time in which the device does nothing, and why.

    Before the work that ends the gap was launched, the host was ``synchronising``, ``loading`` data,
    ``running`` something else, or ``nothing_recorded`` tells what it did. From its launch on, the work is
    ``launching``, or ``queued`` if it was launched before the gap began. Who launched it may be
    ``unrecorded``, and after the last work of the recording there is ``no_work_due``.
    """

    start: int
    end: int
    why: str
    before: Event | None  # the work that ends the gap
    thread: Thread | None = None  # the host thread that tells why


class Rank:
    """One file of a recording."""

    def __init__(self, events: Iterable[Event]) -> None:
        self.events = sorted(events, key=lambda event: (event.start, -event.end))

    @cached_property
    def work(self) -> list[Event]:
        return [event for event in self.events if event.kind]

    @cached_property
    def calls(self) -> dict[int, Event]:
        """The call that launched the work of a correlation: the outermost, where calls are nested."""
        calls: dict[int, Event] = {}
        for event in self.events:
            if event.category in CALLS and event.correlation:
                calls.setdefault(event.correlation, event)
        return calls

    def launch(self, work: Event) -> Event | None:
        return self.calls.get(work.correlation) if work.correlation else None

    @cached_property
    def steps(self) -> list[Event]:
        """The steps that launch device work, in order of time; of steps inside steps the innermost."""
        steps = [
            event
            for event in self.events
            if event.category in HOST and STEP.match(event.name) and self.launched_in(event)
        ]
        last = steps[-1:]
        return [step for step, after in pairwise(steps) if after.start >= step.end] + last

    @cached_property
    def threads(self) -> dict[Thread, list[Event]]:
        """What each host thread did, without the annotations that are open during whole steps."""
        threads: dict[Thread, list[Event]] = {}
        for event in self.events:
            if event.category in HOST and not STEP.match(event.name):
                threads.setdefault((event.process, event.thread), []).append(event)
        return threads

    @cached_property
    def doings(self) -> dict[Thread, dict[str, list[Window]]]:
        """When each host thread synchronised, loaded data, or ran anything; the first that holds counts."""
        return {
            thread: {
                "synchronising": union(event.window for event in events if SYNCHRONISING.match(event.name)),
                "loading": union(event.window for event in events if LOADER.search(event.name)),
                "running": union(event.window for event in events),
            }
            for thread, events in self.threads.items()
        }

    @cached_property
    def busy(self) -> dict[str, list[Window]]:
        """When the device computes, communicates and copies, and when it does any of these."""
        kinds = ("computing", "communicating", "copying")
        busy = {kind: union(event.window for event in self.work if event.kind == kind) for kind in kinds}
        return {**busy, "any": union(event.window for event in self.work)}

    @property
    def extent(self) -> Window:
        """From the first to the last device work."""
        return min(event.start for event in self.work), max(event.end for event in self.work)

    @cached_property
    def launches(self) -> list[tuple[Event, Event]]:
        """Device work, and the call that launched it."""
        return [(work, call) for work in self.work if (call := self.launch(work))]

    def launched_in(self, step: Event) -> list[Event]:
        """Device work whose launch began inside the step, in the step's process."""
        return [
            work
            for work, call in self.launches
            if call.process == step.process and step.start <= call.start < step.end
        ]

    def host_windows(self) -> list[Window]:
        return [step.window for step in self.steps]

    def device_windows(self) -> list[Window]:
        """A step lasts on the device from the end of the work before it until the end of its own.

        So neighbours meet and never overlap, whatever is launched early on another stream. The first step
        begins with its first work, or when work ends that was launched before it.
        """
        windows: list[Window] = []
        for step in self.steps:
            own = self.launched_in(step)
            start = windows[-1][1] if windows else max(min(work.start for work in own), self._left_over(own))
            windows.append((start, max(start, *(work.end for work in own))))
        return windows

    def _left_over(self, first: list[Event]) -> int:
        """When the work ends that streams did before the first step's, and nobody knows who launched."""
        begins: dict[tuple[object, object], int] = {}
        for work in first:
            begins.setdefault((work.process, work.thread), work.start)
        left = [
            work.end
            for work in self.work
            if self.launch(work) is None and work.start < begins.get((work.process, work.thread), 0)
        ]
        return max(left, default=0)

    def shares(self, windows: list[Window]) -> dict[str, int]:
        """Nanoseconds of the windows by what the device does; where it does two things, the first counts."""
        shares: dict[str, int] = {}
        taken: list[Window] = []
        for kind in ("computing", "communicating", "copying"):
            alone = subtract(self.busy[kind], taken)
            shares[kind] = sum(length(overlap(alone, window)) for window in windows)
            taken = union([*taken, *self.busy[kind]])
        shares["idle"] = length(windows) - sum(shares.values())
        return shares

    def unrecorded(self) -> tuple[int, int]:
        """Device events whose launch is not in the file, and their time."""
        alone = [event for event in self.work if self.launch(event) is None]
        return len(alone), sum(event.end - event.start for event in alone)

    def idle(self, window: Window) -> Iterator[Idle]:
        """The idle time of a window, piece by piece; why a gap is there does not depend on the window."""
        whole = min(window[0], self.work[0].start), max(window[1], self.extent[1])
        for start, end in subtract([whole], self.busy["any"]):
            if start < window[1] and end > window[0]:
                for piece in self._explain(start, end, self._next(end)):
                    for part in overlap([(piece.start, piece.end)], window):
                        yield replace(piece, start=part[0], end=part[1])

    def _next(self, time: int) -> Event | None:
        """The first device work that takes time and starts at ``time`` or later."""
        first = bisect_left(self.work, time, key=lambda event: event.start)
        return next((event for event in islice(self.work, first, None) if event.end > event.start), None)

    def _explain(self, start: int, end: int, before: Event | None) -> Iterator[Idle]:
        if before is None:
            yield Idle(start, end, "no_work_due", None)
            return
        call = self.launch(before)
        if call is None:
            yield Idle(start, end, "unrecorded", before)
            return
        if call.start < start:
            yield Idle(start, end, "queued", before, (call.process, call.thread))
            return
        launched = min(call.start, end)
        yield from self._host(start, launched, before, (call.process, call.thread))
        if launched < end:
            yield Idle(launched, end, "launching", before, (call.process, call.thread))

    def _host(self, start: int, end: int, before: Event, own: Thread) -> Iterator[Idle]:
        """Before the launch: the launching thread tells why, or another one where that does nothing."""
        others = [thread for thread in self.threads if thread != own and thread[0] == own[0]]
        left = [(start, end)]
        for thread in (own, *others):
            for why, when in self.doings.get(thread, {}).items():
                for piece in left:
                    yield from (Idle(*part, why, before, thread) for part in overlap(when, piece))
                left = subtract(left, when)
        yield from (Idle(*piece, "nothing_recorded", before) for piece in left)


def read(path: Path) -> list[Rank]:
    """The ranks of a recording: one for each of Kineto's files in a folder, or the file itself."""
    files = [path] if path.is_file() else sorted([*path.glob("*.json"), *path.glob("*.json.gz")])
    return [rank for file in files if (rank := read_file(file))]


@cache
def read_file(file: Path) -> Rank | None:
    """One file, or nothing if it is JSON of another kind."""
    document = _parse(file)
    return Rank(_events(document["traceEvents"])) if "traceEvents" in document else None


def _parse(file: Path) -> dict[str, list[dict[str, object]]]:
    text = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
    return json.loads(text, parse_float=Decimal)


def _events(records: list[dict[str, object]]) -> Iterator[Event]:
    for record in records:
        if record.get("ph") != "X" or "ts" not in record:
            continue
        args = record.get("args") or {}
        start = nanoseconds(record["ts"])
        correlation = args.get("correlation")
        yield Event(
            name=str(record.get("name", "")),
            category=str(record.get("cat", "")).lower(),
            start=start,
            end=start + nanoseconds(record.get("dur", 0)),
            process=record.get("pid"),
            thread=str(record.get("tid")),
            correlation=None if correlation is None else int(correlation),
        )


def nanoseconds(microseconds: object) -> int:
    return round((microseconds if isinstance(microseconds, Decimal) else Decimal(str(microseconds))) * 1000)


def union(windows: Iterable[Window]) -> list[Window]:
    merged: list[Window] = []
    for start, end in sorted(windows):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        elif end > start:
            merged.append((start, end))
    return merged


def overlap(windows: list[Window], window: Window) -> list[Window]:
    """The parts of ``windows``, a union, inside ``window``."""
    first = bisect_right(windows, window[0], key=lambda part: part[1])
    last = bisect_left(windows, window[1], key=lambda part: part[0])
    return [(max(start, window[0]), min(end, window[1])) for start, end in windows[first:last]]


def subtract(windows: Iterable[Window], away: list[Window]) -> list[Window]:
    """The parts of ``windows`` outside ``away``, which is a union."""
    left = []
    for start, end in windows:
        for cut, until in overlap(away, (start, end)):
            if cut > start:
                left.append((start, cut))
            start = until
        if end > start:
            left.append((start, end))
    return left


def length(windows: Iterable[Window]) -> int:
    return sum(end - start for start, end in windows)
