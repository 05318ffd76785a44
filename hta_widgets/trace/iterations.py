"""The iterations of one rank, from the best source in its trace.

In order: the profiler's steps, a serving engine's steps, a repeating annotation, a repeating pattern of work,
the whole recording. The first source that yields an iteration is used; the result names it, with its
confidence, and says how the iterations are known: announced by the program, annotated (spans of one name that
come regularly and hold the work), or guessed. There is always at least one iteration. Windows are disjoint
and sorted.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from hta_widgets.arrays import Bool, Int16, Int32, Int64, UInt8
from hta_widgets.frames import typed_array
from hta_widgets.trace.classify import EventClass, is_optimizer_step
from hta_widgets.trace.periodicity import repeats
from hta_widgets.trace.step_names import ServingStep, profiler_step, runner_scopes, serving_step

T = TypeVar("T")

COLUMNS = {
    "iteration": "int64",
    "label": "str",
    "start_ns": "int64",
    "end_ns": "int64",
    "source": "str",
    "confidence": "str",
    "known": "str",
    "partial": "bool",
    "run": "int64",
    "recorded_until_ns": "int64",
    "phase": "str",
    "batch_size": "Int64",
    "tokens": "Int64",
}

# A first or last step with less than this share of the work of a typical one was cut by the recording.
PARTIAL_SHARE = 0.5
_COMPILED_CALL = re.compile(r"(?:## )?Call CompiledFxGraph|Torch-Compiled Region")
# An annotation is taken for the loop only if its spans cover this share of the launches (or operators).
ANNOTATION_COVERS = 0.5
# Repeats are taken for the loop only if they cover this share of it.
PERIODIC_COVERS = 0.7
# Spans of an annotation are a regular loop if half of them begin within this share of the usual time apart.
REGULAR_SHARE = 0.25
# From this share of a step on, time in which nothing is recorded may be the profiler's, which stops in it.
TAIL_SHARE = 0.03


@dataclass(frozen=True)
class Recorded:
    """The columns of one rank that iterations are found in (row-aligned)."""

    start: Int64
    end: Int64
    name: Int32
    names: list[str]
    thread: Int64
    event_class: UInt8
    is_device: Bool
    on_host: Bool
    depth: Int16

    def annotations(self) -> Int64:
        """Rows of host annotations, by start."""
        rows = np.flatnonzero((self.event_class == EventClass.ANNOTATION) & self.on_host)
        return rows[np.argsort(self.start[rows], kind="stable")]

    def spans(self, codes: Iterable[int]) -> Int64:
        """Rows of host annotations and Python functions of these names, by start."""
        chosen = np.zeros(len(self.names), np.bool_)
        chosen[list(codes)] = True
        kinds = (self.event_class == EventClass.ANNOTATION) | (self.event_class == EventClass.PYTHON)
        rows = np.flatnonzero(kinds & self.on_host & chosen[self.name])
        return rows[np.argsort(self.start[rows], kind="stable")]

    def work(self) -> Int64:
        """Start times of what iterations consist of: launches, else operators, else device events; sorted."""
        for kind in (EventClass.RUNTIME, EventClass.HOST_OP):
            rows = np.flatnonzero(self.event_class == kind)
            if len(rows):
                return np.sort(self.start[rows])
        return np.sort(self.start[self.is_device])


@dataclass(frozen=True)
class Window:
    """One iteration before numbering."""

    start: int
    end: int
    label: str
    number: int | None = None
    step: ServingStep | None = None
    unfinished: bool = False  # its end was not recorded


def find_iterations(events: Recorded) -> pd.DataFrame:
    """The iterations of a rank: one row each, in time order.

    Returns columns iteration (number; the profiler's own where it has one), label, start_ns, end_ns, source
    (``ProfilerStep``, ``serving step``, ``annotation``, ``periodicity``, ``whole trace``), confidence (high,
    medium, low), known (``announced``, ``annotated``, ``guessed``), partial (cut by the recording), run
    (iterations of one run follow each other; between runs the profiler paused), recorded_until_ns (end_ns, or
    of the last of a run the end of what is recorded in it, where the profiler's own time follows), and for
    serving steps phase, batch_size, tokens.
    """
    sources: tuple[tuple[str, str, Callable[[Recorded], list[Window]]], ...] = (
        ("ProfilerStep", "high", _profiler_steps),
        ("serving step", "high", _serving_steps),
        ("annotation", "medium", _repeated_annotation),
        ("periodicity", "low", _periodicity),
        ("whole trace", "low", _whole),
    )
    for source, confidence, find in sources:
        windows = find(events)
        if windows:
            runs = _runs(windows, source)
            partial = _partial(windows, events.work(), source)
            until = _recorded_until(events, windows, runs, source)
            return _frame(windows, source, confidence, _known(windows, source), partial, runs, until)
    return _frame([], "", "", "", [], [], [])


def _profiler_steps(events: Recorded) -> list[Window]:
    numbers = _read(events.names, profiler_step)
    merged: list[Window] = []
    places: dict[int, list[int]] = {}
    for row in events.annotations():
        code = int(events.name[row])
        if code not in numbers:
            continue
        window = _window(events, row, numbers[code])
        if window.start == window.end:  # what Kineto writes of a span that is open when the recording ends
            window = _unfinished(events, window)
        # Several threads may announce the same step: one window.
        alike = places.setdefault(numbers[code], [])
        same = next((at for at in alike if _meet(merged[at], window)), None)
        if same is None:
            alike.append(len(merged))
            merged.append(window)
        else:
            other = merged[same]
            merged[same] = replace(
                other, start=min(other.start, window.start), end=max(other.end, window.end)
            )
    return _disjoint(merged)


def _unfinished(events: Recorded, window: Window) -> Window:
    """A step whose end was not recorded: until the last event of the host."""
    end = int(events.end[events.on_host].max(initial=window.end))
    return replace(window, end=end, unfinished=True)


def _serving_steps(events: Recorded) -> list[Window]:
    steps = _read(events.names, serving_step)
    windows = [
        _window(events, row, None, steps[int(events.name[row])]) for row in events.spans(steps).tolist()
    ]
    # Runners and schedulers may each announce the step, one inside the other: the outer one is the step.
    windows.sort(key=lambda window: (window.start, -window.end))
    outer: list[Window] = []
    for window in windows:
        if not outer or window.end > outer[-1].end:
            outer.append(window)
        elif outer[-1].step and window.step:
            outer[-1] = replace(outer[-1], step=outer[-1].step.filled(window.step))
    return _disjoint(outer) or _runner_steps(events)


def _runner_steps(events: Recorded) -> list[Window]:
    """Steps by the scopes of a model runner, which name the parts of a step: one around each forward pass."""
    rows = events.annotations()
    names = {code: events.names[code] for code in set(events.name[rows].tolist())}
    scopes = runner_scopes(names.values())
    parts = {code: scopes.get(name) for code, name in names.items()}
    steps: list[Window] = []
    begun: int | None = None  # of what prepares the next forward pass
    for row in rows.tolist():
        part, window = parts[int(events.name[row])], _window(events, row)
        if part == "before":
            begun = window.start if begun is None else begun
        elif part == "forward":
            start, begun = window.start if begun is None else begun, None
            steps.append(replace(window, start=start, step=ServingStep("unknown")))
        elif part and steps and begun is None:
            steps[-1] = replace(steps[-1], end=max(steps[-1].end, window.end))
    return _disjoint(steps)


def _repeated_annotation(events: Recorded) -> list[Window]:
    """Steps that end with the optimizer's; else the spans of the annotation that holds most of the work."""
    rows = events.annotations()
    work = events.work()
    if not len(rows) or not len(work):
        return []
    counted: dict[int, list[int]] = {}
    for row in rows:
        counted.setdefault(int(events.name[row]), []).append(int(row))
    for code, spans in counted.items():
        if is_optimizer_step(events.names[code]) and len(spans) > 1 and _apart(events, spans):
            edges = [int(work[0]), *(int(events.end[row]) for row in spans)]
            label = events.names[code]
            return [Window(a, b, f"{label} {k}") for k, (a, b) in enumerate(pairwise(edges)) if a < b]
    best: list[int] = []
    covered = ANNOTATION_COVERS * len(work)
    for code, spans in counted.items():
        if len(spans) < 2 or events.names[code].startswith("nccl:") or not _apart(events, spans):
            continue
        inside = int(
            (np.searchsorted(work, events.end[spans]) - np.searchsorted(work, events.start[spans])).sum()
        )
        # At equal cover the fewer, longer spans are the loop and the others its parts.
        if inside > covered or (inside == covered and best and len(spans) < len(best)):
            best, covered = spans, inside
    return [_window(events, row) for row in best]


def _periodicity(events: Recorded) -> list[Window]:
    """Windows between repeats of the same sequence of top-level operators, else of device work."""
    top = np.flatnonzero((events.event_class == EventClass.HOST_OP) & (events.depth == 0))
    for rows in (_busiest(events, top), _busiest(events, np.flatnonzero(events.is_device))):
        rows = rows[np.argsort(events.start[rows], kind="stable")]
        edges = repeats(events.name[rows])
        # A loop holds the rank's work; one that holds less is a part of the program among others.
        inside = rows[edges[0] : edges[-1]] if len(edges) else rows[:0]
        if len(inside) and _share_within(events, inside) >= PERIODIC_COVERS:
            times = [*(int(events.start[rows[edge]]) for edge in edges if edge < len(rows))]
            if edges[-1] == len(rows):
                times.append(int(events.end[rows].max()))
            return [Window(a, b, f"repeat {k}") for k, (a, b) in enumerate(pairwise(times)) if a < b]
    return []


def _share_within(events: Recorded, rows: Int64) -> float:
    work = events.work()
    first, last = events.start[rows].min(), events.end[rows].max()
    return float(((work >= first) & (work < last)).mean()) if len(work) else 0.0


def _whole(events: Recorded) -> list[Window]:
    rows = np.flatnonzero(events.event_class != EventClass.OTHER)
    if not len(rows):
        rows = np.arange(len(events.start))
    if not len(rows):
        return []
    # Windows are half-open: an event without length at the very end needs one ns more to be inside.
    end = max(int(events.end[rows].max()), int(events.start[rows].max()) + 1)
    return [Window(int(events.start[rows].min()), end, "whole trace")]


def _busiest(events: Recorded, rows: Int64) -> Int64:
    """Those of the rows that lie on the thread (or stream) with the most of them."""
    if not len(rows):
        return rows
    threads, counts = np.unique(events.thread[rows], return_counts=True)
    return rows[events.thread[rows] == threads[np.argmax(counts)]]


def _window(events: Recorded, row: int, number: int | None = None, step: ServingStep | None = None) -> Window:
    label = events.names[int(events.name[row])]
    return Window(int(events.start[row]), int(events.end[row]), label, number, step)


def _read(names: list[str], parse: Callable[[str], T | None]) -> dict[int, T]:
    found = ((code, parse(name)) for code, name in enumerate(names))
    return {code: value for code, value in found if value is not None}


def _meet(window: Window, other: Window) -> bool:
    return window.start < other.end and other.start < window.end


def _apart(events: Recorded, rows: list[int]) -> bool:
    return bool((events.end[rows[:-1]] <= events.start[rows[1:]]).all())


def _disjoint(windows: list[Window]) -> list[Window]:
    """In time order; where two steps overlap (different threads) the earlier ends when the later begins."""
    windows = sorted(windows, key=lambda window: (window.start, window.end))
    clipped = [replace(window, end=min(window.end, after.start)) for window, after in pairwise(windows)]
    return [window for window in clipped + windows[-1:] if window.start < window.end]


def _partial(windows: list[Window], work: Int64, source: str) -> list[bool]:
    """First and last windows with far less work than a typical one; a lone window is not known to be cut."""
    flags = [window.unfinished for window in windows]
    if len(windows) < 2 or source == "serving step":
        return flags  # serving steps differ in size by nature
    inside = np.searchsorted(work, [window.end for window in windows]) - np.searchsorted(
        work, [window.start for window in windows]
    )
    for edge in (0, len(windows) - 1):
        others = np.delete(inside, edge)
        flags[edge] |= bool(inside[edge] < PARTIAL_SHARE * np.median(others))
    return flags


def _known(windows: list[Window], source: str) -> str:
    """How the iterations are known."""
    if source in ("ProfilerStep", "serving step"):
        return "announced"
    # the compiler marks calls of what it compiled: a layer as well as a step
    if source != "annotation" or _COMPILED_CALL.match(windows[0].label):
        return "guessed"
    apart = np.diff([window.start for window in windows])
    usual = float(np.median(apart))
    return "annotated" if np.median(np.abs(apart - usual)) <= REGULAR_SHARE * usual else "guessed"


def _runs(windows: list[Window], source: str) -> list[int]:
    """The run of each window: where the profiler's numbers do not follow each other, it paused in between."""
    if source != "ProfilerStep":
        return [0] * len(windows)
    numbers = [window.number or 0 for window in windows]
    return np.cumsum(np.diff(numbers, prepend=numbers[0] - 1) != 1).tolist()


def _recorded_until(events: Recorded, windows: list[Window], runs: list[int], source: str) -> list[int]:
    """The end of each window; of the last of a run that of its last event, if the profiler stopped after it.

    Nothing is recorded then but the step itself, for longer than at the end of any other step, and no
    operator later.
    """
    ends = [window.end for window in windows]
    if source != "ProfilerStep":
        return ends
    last = [at for at, after in enumerate([*runs[1:], -1]) if runs[at] != after]
    of_step = np.zeros(len(events.names), np.bool_)
    of_step[list(_read(events.names, profiler_step))] = True
    silent = _silent(events, of_step, [windows[at] for at in last])
    lengths = [windows[at].end - windows[at].start for at in last]
    early = [
        (at, ns, length)
        for at, ns, length in zip(last, silent.tolist(), lengths, strict=True)
        if TAIL_SHARE * length < ns < length
    ]
    if not early:  # as mostly: the others need not be looked at
        return ends
    of_all = _silent(events, of_step, windows)
    operators = events.start[events.event_class == EventClass.HOST_OP]
    for at, ns, length in early:
        until = windows[at + 1].start if at + 1 < len(windows) else np.inf
        if ((operators >= ends[at]) & (operators < until)).any():
            continue
        if ns - np.delete(of_all, at).max(initial=0) > TAIL_SHARE * length:
            ends[at] -= ns
    return ends


def _silent(events: Recorded, of_step: Bool, windows: list[Window]) -> Int64:
    """How long before the end of each window the last event that begins in it ends, those of steps aside.

    0 in one without events. The windows follow each other.
    """
    begin, end = np.array([(window.start, window.end) for window in windows], np.int64).T
    rows = np.flatnonzero((events.start >= begin[0]) & (events.start < end[-1]))
    rows = rows[(events.event_class[rows] != EventClass.OTHER) & ~of_step[events.name[rows]]]
    inside = np.searchsorted(begin, events.start[rows], "right") - 1
    within = events.start[rows] < end[inside]
    last = begin.copy()
    np.maximum.at(last, inside[within], events.end[rows[within]])
    filled = np.bincount(inside[within], minlength=len(begin)) > 0
    return np.where(filled, np.maximum(end - last, 0), 0)


def _frame(
    windows: list[Window], source: str, confidence: str, known: str,
    partial: list[bool], runs: list[int], recorded_until: list[int],
) -> pd.DataFrame:  # fmt: skip
    used: set[int] = set()
    numbers = []
    following = max((window.number for window in windows if window.number is not None), default=-1) + 1
    for window in windows:
        number = window.number
        if number is None or number in used:  # a profiler that was restarted counts from zero again
            number, following = following, following + 1
        used.add(number)
        numbers.append(number)
    steps = [window.step for window in windows]
    values: dict[str, list[Any]] = {
        "iteration": numbers,
        "label": [window.label for window in windows],
        "start_ns": [window.start for window in windows],
        "end_ns": [window.end for window in windows],
        "source": [source] * len(windows),
        "confidence": [confidence] * len(windows),
        "known": [known] * len(windows),
        "partial": partial,
        "run": runs,
        "recorded_until_ns": recorded_until,
        "phase": [step.phase if step else None for step in steps],
        "batch_size": [step.batch_size if step else None for step in steps],
        "tokens": [step.tokens if step else None for step in steps],
    }
    # as arrays: a job may have a thousand ranks, and aligning series takes longer than making the frame
    columns = {name: typed_array(values[name], dtype) for name, dtype in COLUMNS.items()}
    return pd.DataFrame(columns, copy=False)
