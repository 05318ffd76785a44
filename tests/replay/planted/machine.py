"""Runs a program: a host whose threads take turns, and a device with streams.

Every moment remembers the one that it had to wait for, so a run knows its own critical path.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from examples.simulator.truth import Kind, Occupation, occupation
from tests.replay.planted.program import (
    DEVICE,
    MAIN,
    Allocate,
    Call,
    Enter,
    HandOver,
    Launch,
    Leave,
    Program,
    Record,
    Spend,
    Synchronise,
    Wait,
    Work,
)

__all__ = ["BEGIN_NS", "Called", "Executed", "Moment", "Range", "Run", "Waited", "run"]

BEGIN_NS = 1_000_000


class Moment(NamedTuple):
    """A time, what it follows, and what the time between the two is spent on."""

    ns: int
    cause: Moment | None = None
    spent_on: str = ""

    def after(self, ns: int, spent_on: str) -> Moment:
        return Moment(self.ns + ns, self, spent_on)


class Range(NamedTuple):
    """An operator or annotation."""

    category: str
    name: str
    thread: int
    begin: int
    end: int


class Called(NamedTuple):
    """A call of the runtime."""

    name: str
    thread: int
    begin: int
    end: int
    correlation: int


class Executed(NamedTuple):
    """Device work, the call that launched it, and the step that was under way then (-1: none).

    `operation` is the place of the launch in the program.
    """

    work: Work
    begin: int
    end: int
    correlation: int
    step: int
    operation: int


class Waited(NamedTuple):
    """What the profiler records of a wait: of `stream` for the event that call `record` recorded on `on`.

    A wait of the host for the device or for an event is on no stream: -1, as Kineto writes it.
    """

    kind: str
    call: Called
    stream: int
    on: int = -1
    record: int = -1


@dataclass
class Run:
    """What happened, in ns."""

    ranges: list[Range] = field(default_factory=list)
    calls: list[Called] = field(default_factory=list)
    work: list[Executed] = field(default_factory=list)
    waits: list[Waited] = field(default_factory=list)
    last: Moment = field(default_factory=lambda: Moment(BEGIN_NS))

    @property
    def extent_ns(self) -> int:
        """From the beginning to when both host and device are done."""
        return self.last.ns - BEGIN_NS

    def path(self) -> Counter[str]:
        """ns of the critical path by what they are spent on; they sum to the extent."""
        found: Counter[str] = Counter()
        for moment in _back(self.last):
            if moment.cause is not None:
                found[moment.spent_on] += moment.ns - moment.cause.ns
        return found

    def occupation(self, window: tuple[int, int]) -> Occupation:
        """How the device spends a window."""
        intervals: dict[Kind, list[tuple[int, int]]] = {"compute": [], "communication": [], "memory": []}
        for done in self.work:
            kind = done.work.kind
            of: Kind = "memory" if kind == "copy" or kind == "fill" else kind
            intervals[of].append((done.begin, done.end))
        return occupation(intervals, window)

    def steps(self) -> dict[int, tuple[int, int]]:
        """Begin and end of each step on the host, to where the next one begins."""
        marks = sorted(
            (int(name.removeprefix("ProfilerStep#")), begin, end)
            for _, name, _, begin, end in self.ranges
            if name.startswith("ProfilerStep#")
        )
        ends = [*(begin for _, begin, _ in marks[1:]), *(end for _, _, end in marks[-1:])]
        return {step: (begin, end) for (step, begin, _), end in zip(marks, ends, strict=True)}

    def busiest_stream(self) -> int:
        """The stream with most work."""
        busy: Counter[int] = Counter()
        for done in self.work:
            busy[done.work.stream] += done.end - done.begin
        return busy.most_common(1)[0][0]

    def device_steps(self, stream: int) -> dict[int, tuple[int, int]]:
        """Begin and end of each step on the device.

        A step begins with its first work on the stream and ends where the next one begins, the last with its
        last work on any stream.
        """
        first, last = dict[int, int](), dict[int, int]()
        for done in self.work:
            last[done.step] = max(last.get(done.step, 0), done.end)
            if done.work.stream == stream:
                first[done.step] = min(first.get(done.step, done.begin), done.begin)
        steps = sorted(first)
        found: dict[int, tuple[int, int]] = {}
        for step, following in zip(steps, [*steps[1:], None], strict=True):
            found[step] = first[step], last[step] if following is None else first[following]
        return found


def _back(moment: Moment | None) -> Iterator[Moment]:
    while moment is not None:
        yield moment
        moment = moment.cause


def _latest(*moments: Moment) -> Moment:
    return max(moments, key=lambda moment: moment.ns)


@dataclass
class _Event:
    stream: int
    correlation: int
    done: Moment | None


class _Machine:
    """The state of a run."""

    def __init__(self, queue: int) -> None:
        self.run = Run()
        self.now = Moment(BEGIN_NS)  # of the thread whose turn it is
        self.thread = MAIN
        self.step = -1
        self.opened: dict[int, list[tuple[Enter, int]]] = {}
        self.free: dict[int, Moment] = {}  # when each stream is done with what was launched
        self.held: dict[int, list[Moment]] = {}  # what the next work on each stream has to wait for
        self.events: dict[int, _Event] = {}
        self.queue = queue
        self.done: list[Moment] = []  # when each place of the launch queue is free again: a ring, in order

    def call(self, name: str, begin: int) -> Called:
        """A call that ends now."""
        called = Called(name, self.thread, begin, self.now.ns, len(self.run.calls) + 1)
        self.run.calls.append(called)
        return called

    def enter(self, operation: Enter) -> None:
        if operation.name.startswith("ProfilerStep#"):
            self.step = int(operation.name.removeprefix("ProfilerStep#"))
        self.opened.setdefault(self.thread, []).append((operation, self.now.ns))

    def leave(self) -> None:
        opened, begin = self.opened[self.thread].pop()
        if opened.name.startswith("ProfilerStep#"):
            self.step = -1
        self.run.ranges.append(Range(opened.category, opened.name, self.thread, begin, self.now.ns))

    def allocate(self, operation: Allocate) -> None:
        begin = self.now.ns
        if operation.waits:
            self.now = _latest(self.now, *self.free.values())
        self.now = self.now.after(operation.own_ns, "host")
        self.call(operation.name, begin)

    def launch(self, operation: Launch, index: int) -> None:
        begin = self.now.ns
        if len(self.done) >= self.queue:
            self.now = _latest(self.now, self.done[-self.queue])
        launched, executed = self.now, list[tuple[Work, int, int]]()
        for work in operation.work:
            reasons = [] if executed else [launched.after(work.latency_ns, "launch")]
            reasons += [held.after(work.gap_ns, "gap") for held in self.held.pop(work.stream, [])]
            if work.stream in self.free:
                reasons.append(self.free[work.stream].after(work.gap_ns, "gap"))
            start = _latest(*reasons)
            end = start.after(work.ns, work.kind)
            self.free[work.stream] = end
            executed.append((work, start.ns, end.ns))
        self.done.append(_latest(end, *self.done[-1:]))
        self.now = self.now.after(operation.own_ns, "host")
        if operation.blocking:
            self.now = _latest(self.now, end.after(operation.tail_ns, "return"))
        called = self.call(operation.name, begin)
        self.run.work += [Executed(*done, called.correlation, self.step, index) for done in executed]

    def record(self, operation: Record) -> None:
        begin = self.now.ns
        self.now = self.now.after(operation.own_ns, "host")
        called = self.call("cudaEventRecordWithFlags", begin)
        done = self.free.get(operation.stream)
        self.events[operation.event] = _Event(operation.stream, called.correlation, done)

    def wait(self, operation: Wait) -> None:
        begin, event = self.now.ns, self.events[operation.event]
        self.now = self.now.after(operation.own_ns, "host")
        called = self.call("cudaStreamWaitEvent", begin)
        if event.done is not None:
            self.held.setdefault(operation.stream, []).append(event.done)
        waited = Waited("Stream Wait Event", called, operation.stream, event.stream, event.correlation)
        self.run.waits.append(waited)

    def synchronise(self, operation: Synchronise) -> None:
        begin = self.now.ns
        awaited: list[Moment] = []
        event = self.events[operation.event] if operation.event is not None else None
        if event is not None:
            awaited = [event.done] if event.done is not None else []
        elif operation.stream == DEVICE:
            awaited = list(self.free.values())
        elif operation.stream in self.free:
            awaited = [self.free[operation.stream]]
        self.now = self.now.after(operation.own_ns, "host")
        if operation.waits:
            self.now = _latest(self.now, *(done.after(operation.tail_ns, "return") for done in awaited))
        called = self.call(operation.name, begin)
        if event is not None:
            self.run.waits.append(Waited("Event Sync", called, DEVICE, event.stream, event.correlation))
        elif operation.stream == DEVICE:
            self.run.waits.append(Waited("Context Sync", called, DEVICE))
        elif operation.stream is not None:
            self.run.waits.append(Waited("Stream Sync", called, operation.stream))


def run(program: Program) -> Run:
    """Run a program."""
    machine = _Machine(program.queue)
    for index, operation in enumerate(program.operations):
        match operation:
            case Spend(ns):
                machine.now = machine.now.after(ns, "host")
            case Enter():
                machine.enter(operation)
            case Leave():
                machine.leave()
            case Call(name, own_ns):
                begin = machine.now.ns
                machine.now = machine.now.after(own_ns, "host")
                machine.call(name, begin)
            case Allocate():
                machine.allocate(operation)
            case Launch():
                machine.launch(operation, index)
            case Record():
                machine.record(operation)
            case Wait():
                machine.wait(operation)
            case Synchronise():
                machine.synchronise(operation)
            case HandOver(thread, ns):
                machine.now = machine.now.after(ns, "host")
                machine.thread = thread
    machine.run.last = _latest(machine.now, *machine.free.values())
    return machine.run
