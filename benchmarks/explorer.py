"""How quickly the explorer follows its selection: everything but the browser.

From the change of a trait until each part that is shown has its answer.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.figure import Figure
from benchmarks.process import call
from benchmarks.selections import scopes
from benchmarks.setup import Setup
from hta_widgets import TraceExplorer, examples
from hta_widgets.trace.scope import Scope
from hta_widgets.widgets.story import Story

STORM = 200
SMALL = 100_000
Times = dict[str, list[float]]


@dataclass(frozen=True)
class Goals:
    """In ms: all parts have answered, without a cache and with it; another selection, at the median and the
    slowest; the same with the story.
    """

    cold: float | None = None
    again: float | None = None
    middle: float | None = None
    slowest: float | None = None
    middle_story: float | None = None
    slowest_story: float | None = None


SIZES = {
    1_000_000: Goals(again=600, middle=50, slowest=100, middle_story=62),
    3_000_000: Goals(cold=3100, again=770, middle=77, slowest=77, slowest_story=310),
}


def measure(setup: Setup) -> list[Figure]:
    """Wall ms, of a recording that is not in the cache yet, and of one that is."""
    figures = []
    for events, goals in ({SMALL: Goals()} if setup.small else SIZES).items():
        path = setup.recording_of(events)
        call(answered, examples.path("ddp_4ranks"), **setup.columns)  # compiles
        cold = call(answered, path, **setup.columns).result
        runs: list[dict[str, Any]] = [
            call(answered, path, **setup.columns).result for _ in range(setup.rounds)
        ]

        def of(name: str, runs: list[dict[str, Any]] = runs) -> list[float]:
            return [value for times in runs for value in times[name]]

        def slowest(name: str, runs: list[dict[str, Any]] = runs) -> list[float]:
            return [max(times[name]) for times in runs]

        figures += [
            Figure(
                f"{runs[0]['events'][0]:,} events, without a cache: all parts have answered, ms",
                cold["answered"],
                goal=goals.cold,
            ),
            Figure("... with a cache: the parts are there, ms", of("parts")),
            Figure("... and all have answered, ms", of("answered"), goal=goals.again),
            Figure("... another selection, all parts but the story, ms", of("other"), goal=goals.middle),
            Figure("... the slowest, ms", slowest("other"), goal=goals.slowest),
            Figure("... and the story, ms", of("other_story"), goal=goals.middle_story),
            Figure("... the slowest, ms", slowest("other_story"), goal=goals.slowest_story),
            Figure(
                "... a stream never chosen before, all but the story, ms", of("stream"), goal=goals.middle
            ),
            Figure("... and the story, ms", of("stream_story")),
            Figure(f"... {STORM} selections at once, ms", of("storm")),
        ]
    return figures


def answered(path: str) -> Times:
    """Wall ms in a kernel that has drawn another explorer before."""
    warm = _opened(examples.path("ddp_4ranks"))
    _rest(warm)
    warm.close()
    times: Times = {}
    begun = time.perf_counter()
    explorer = _opened(path)
    times["parts"] = [1000 * (time.perf_counter() - begun)]
    _rest(explorer)
    times["answered"] = [1000 * (time.perf_counter() - begun)]
    times["events"] = [explorer.trace.summary["events"]]
    chosen = list(scopes(explorer.trace))
    _choose(explorer, chosen[0])
    _rest(explorer)
    times["other"], times["other_story"] = _followed(explorer, chosen[1:])
    rank_trace = explorer.trace.rank(explorer.trace.ranks[0])
    streams = sorted(set(rank_trace.stream[rank_trace.is_device].tolist()))
    times["stream"], times["stream_story"] = _followed(
        explorer, [Scope(streams=(stream,)) for stream in streams]
    )
    explorer.selection.clear()
    _rest(explorer)
    first, last = explorer.trace.extent_ns

    def storm() -> None:
        for step in range(1, STORM + 1):
            explorer.selection.window = (first, first + step * (last - first) // STORM)
        _rest(explorer)

    times["storm"] = [_ms(storm)]
    assert explorer.frame("temporal_breakdown")["window_ns"].iloc[0] == last - first
    return times


def _opened(path: Any) -> TraceExplorer:
    """An explorer whose parts are there."""
    explorer = TraceExplorer(path)
    explorer.wait()
    while not explorer.parts:
        time.sleep(0.0005)
    return explorer


def _followed(explorer: TraceExplorer, chosen: Sequence[Scope]) -> tuple[list[float], list[float]]:
    """Wall ms from each selection until all parts but the story, which gives way, have answered; and it."""
    before, after = [], []
    for scope in chosen:
        begun = time.perf_counter()
        _choose(explorer, scope)
        _rest(explorer, without=Story)
        before.append(1000 * (time.perf_counter() - begun))
        _rest(explorer)
        after.append(1000 * (time.perf_counter() - begun))
    return before, after


def _choose(explorer: TraceExplorer, scope: Scope) -> None:
    with explorer.selection.hold_trait_notifications():
        explorer.selection.iterations = scope.iterations or ()
        explorer.selection.window = scope.window_ns
        explorer.selection.streams = scope.streams or ()


def _rest(explorer: TraceExplorer, without: type | tuple[()] = ()) -> None:
    """Wait until no part is computing, or none but those of a type."""
    while explorer.status == "busy" or any(
        part.status == "busy" for _, part in explorer.parts if not isinstance(part, without)
    ):
        time.sleep(0.0005)


def _ms(action: Callable[[], object]) -> float:
    begun = time.perf_counter()
    action()
    return 1000 * (time.perf_counter() - begun)
