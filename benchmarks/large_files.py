"""Reading long recordings, opening them again, their frame and their lanes, and how each grows."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

from benchmarks.figure import Figure, exponent
from benchmarks.process import Cost, call, cpu, peak, run
from benchmarks.setup import Setup

HTA = """
import json, resource, sys
from hta.trace_analysis import TraceAnalysis
def cpu():
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)
before = cpu()
TraceAnalysis(trace_files={0: sys.argv[1]}, trace_dir="").t.get_trace(0)
print("RESULT", json.dumps({"links": cpu() - before}))
"""
SIZES = (50, 200, 1000, 5000)  # MB
SMALL = (10, 40)
BESIDE_HTA = 200
GOALS = {  # by MB: what: CPU s
    200: {"links": 0.5, "again": 0.05},
    1000: {"links": 2.0, "events()": 0.7},
    5000: {"lanes and levels": 2.5, "lanes again": 0.1},
}
FLOORS = {40: {"links": 70.0, "again": 300.0}, 200: {"links": 250.0, "again": 600.0}}  # by MB
MEMORY_FLOORS = {40: 1.8, 200: 4.0}
MOST_MB = {1000: 1100.0}
MOST_TIMES_COLUMNS = {5000: 1.2}  # memory of opening, without that of Python and its libraries
MOST_TIMES_FRAME = {1000: 1.2}  # memory of `events()` beyond that of the open recording
MOST_WALL_S = {1000: 1.5}  # opening with links, by a clock
EXPONENT = 1.05
Times = dict[str, float]


def measure(setup: Setup) -> list[Figure]:
    """CPU without interpreter and imports; memory of the whole process at its peak."""
    sizes = SMALL if setup.small else SIZES
    beside = sizes[-1] if setup.small else BESIDE_HTA
    figures: list[Figure] = []
    medians: dict[str, list[float]] = {}
    events: list[float] = []
    for size in sizes:
        path = setup.recording(size)
        call(loaded, path, **setup.columns)  # compiles, and fills the cache that is opened again
        call(looked_at, path, **setup.columns)
        ours: list[Cost] = []
        again: list[Cost] = []
        used: list[Cost] = []
        theirs: list[Cost] = []
        for _ in range(setup.rounds):
            ours.append(call(loaded, path, **setup.kernels))
            again.append(call(loaded, path, **setup.columns))
            used.append(call(looked_at, path, **setup.columns))
        if size == beside:  # once: it takes minutes
            theirs.append(run(setup.hta, HTA, path))
        events.append(ours[0].result["events"])
        hta = [cost.result["links"] for cost in theirs]
        goals = {} if setup.small else GOALS.get(size, {})
        name = f"{size} MB ({events[-1]:,.0f} events)"
        rows = {
            "opened": ("opened, CPU s", [cost.result["opened"] for cost in ours], []),
            "links": ("... with links and iterations, CPU s", [cost.result["links"] for cost in ours], hta),
            "again": ("... again, from the cache, CPU s", [cost.result["links"] for cost in again], hta),
            "events()": ("... `events()`, second time, CPU s", [cost.result["frame"] for cost in used], []),
            "lanes and levels": (
                "... lanes and levels of the timeline, second time, CPU s",
                [cost.result["lanes"] for cost in used],
                [],
            ),
            "lanes again": (
                "... lanes and levels from the cache, CPU s",
                [cost.result["lanes again"] for cost in used],
                [],
            ),
        }
        for key, (what, samples, other) in rows.items():
            text = what.replace("opened,", f"{name} opened,")
            figures.append(
                Figure(text, samples, other, goals.get(key), FLOORS[size].get(key) if other else None)
            )
            medians.setdefault(key, []).append(statistics.median(samples))
        if size in MOST_WALL_S and not setup.small:
            walls = [cost.result["wall"] for cost in ours]
            figures.append(Figure("... opened with links, by a clock, s", walls, goal=MOST_WALL_S[size]))
        peaks = [cost.peak for cost in ours]
        other = [cost.peak for cost in theirs]
        figures.append(
            Figure("... memory at the peak, MB", peaks, other, MOST_MB.get(size), MEMORY_FLOORS.get(size))
        )
        if size in MOST_TIMES_COLUMNS:
            shares = [cost.result["opening"] / cost.result["columns"] for cost in ours]
            text = "... memory that opening adds to Python's, times the columns"
            figures.append(Figure(text, shares, goal=MOST_TIMES_COLUMNS[size]))
        if size in MOST_TIMES_FRAME:
            shares = [call(framed, path, **setup.kernels).result for _ in range(setup.rounds)]
            text = "... memory that `events()` adds, times its frame"
            figures.append(Figure(text, shares, goal=MOST_TIMES_FRAME[size]))
    for key, costs in medians.items():
        figures.append(Figure(f"exponent of the events in {key}", [exponent(events, costs)], goal=EXPONENT))
    return figures


def loaded(path: str) -> Times:
    """CPU s until the recording is open, and until its events have their classes, launches and iterations,
    and how long that takes by a clock; MB of its columns, and by how much more memory the process needed at
    most once it was open.
    """
    from hta_widgets.trace.model import Trace

    imported, before, begun = peak(), cpu(), time.monotonic()
    trace = Trace.open(path)
    opened, opening = cpu() - before, peak() - imported
    rank = trace.rank(trace.ranks[0])
    _ = rank.event_class, rank.launch, rank.iteration
    wall = time.monotonic() - begun
    columns = rank.events.header.nbytes / (1 << 20)
    times = {"opened": opened, "links": cpu() - before, "wall": wall}
    return {**times, "events": rank.n, "columns": columns, "opening": opening}


def looked_at(path: str) -> Times:
    """CPU s of the frame of all events and of the timeline's lanes, once all is compiled and imported, and of
    the lanes that an earlier process has kept.
    """
    from hta_widgets.timeline import Pyramid, build_lanes
    from hta_widgets.timeline.kept_lanes import lanes_of, pyramid_of
    from hta_widgets.trace.model import Trace

    trace = Trace.open(path)
    rank = trace.rank(trace.ranks[0])
    _ = rank.launch, rank.iteration, rank.parent
    begun = cpu()
    pyramid_of(trace, lanes_of(trace))
    kept = cpu() - begun
    return {
        "frame": _second(trace.events),
        "lanes": _second(lambda: Pyramid(build_lanes([rank]))),
        "lanes again": kept,
    }


def framed(path: str) -> float:
    """The memory that the frame of all events needs at most beyond the open recording, in frames."""
    from hta_widgets.trace.model import Trace

    trace = Trace.open(path)
    rank = trace.rank(trace.ranks[0])
    _ = rank.launch, rank.iteration, rank.parent
    before = peak()
    frame = trace.events()
    return float((peak() - before) / (frame.memory_usage(deep=True).sum() / (1 << 20)))


def _second(work: Callable[[], object]) -> float:
    work()
    begun = time.process_time()
    work()
    return time.process_time() - begun
