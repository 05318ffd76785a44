"""How quickly does the explorer follow: a job of 1 M events, opened from the cache, selected and stormed.

Everything but the browser: the work of the parts, from the change of a trait until each part shown has its
answer. Wall time, and CPU of the process: it says more on a machine that is busy.

    python benchmarks/explorer.py [--events N] [--panels KIND ...]
"""

from __future__ import annotations

import argparse
import gzip
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple
from unittest import mock

from scopes import SOURCE, scopes
from tile_trace import tile

from hta_widgets import Trace, TraceExplorer
from hta_widgets.analysis.registry import ANALYSES
from hta_widgets.trace.scope import Scope
from hta_widgets.widgets.part import Part

STORM = 200


def parts(explorer: TraceExplorer) -> list[Part]:
    return [part for _, part in explorer.parts]


def rest(explorer: TraceExplorer) -> None:
    """Wait until no part is computing."""
    while explorer.status == "busy" or any(part.status == "busy" for part in parts(explorer)):
        time.sleep(0.0005)


class Cost(NamedTuple):
    """ms."""

    wall: float
    cpu: float


def timed(action: Callable[[], object]) -> Cost:
    begin, spent = time.perf_counter(), time.process_time()
    action()
    return Cost(1000 * (time.perf_counter() - begin), 1000 * (time.process_time() - spent))


def row(what: str, costs: Sequence[Cost], choose: Callable[[Sequence[float]], float] = max) -> str:
    wall, cpu = (choose(column) for column in zip(*costs, strict=True))
    return f"| {what} | {wall:.0f} | {cpu:.0f} |"


def measure(path: Path, panels: list[str] | None) -> str:
    """A markdown table."""
    more = {} if panels is None else {"panels": panels}

    def opened() -> TraceExplorer:
        explorer = TraceExplorer(path, **more)
        explorer.wait()
        while not explorer.parts:
            time.sleep(0.0005)
        return explorer

    explorer = opened()  # fills the cache, compiles
    rest(explorer)
    explorer.close()
    first_parts = timed(lambda: opened().close())
    explorer = opened()
    all_answers = timed(lambda: rest(explorer))
    chosen = list(scopes(explorer.trace))

    def change(scope: Scope) -> None:
        with explorer.selection.hold_trait_notifications():
            explorer.selection.iterations = scope.iterations or ()
            explorer.selection.window = scope.window_ns
            explorer.selection.streams = scope.streams or ()
        rest(explorer)

    change(chosen[0])
    changes = [timed(lambda scope=scope: change(scope)) for scope in chosen[1:]]  # type: ignore[misc]
    rank_trace = explorer.trace.rank(explorer.trace.ranks[0])
    filters = [
        Scope(streams=(stream,)) for stream in sorted(set(rank_trace.stream[rank_trace.is_device].tolist()))
    ]
    filtered = [timed(lambda scope=scope: change(scope)) for scope in filters]  # type: ignore[misc]
    explorer.selection.clear()
    rest(explorer)
    first, last = explorer.trace.extent_ns
    asked = mock.Mock(wraps=ANALYSES["temporal_breakdown"].function)
    entry = ANALYSES["temporal_breakdown"]
    object.__setattr__(entry, "function", asked)

    def storm() -> None:
        for step in range(1, STORM + 1):
            explorer.selection.window = (first, first + step * (last - first) // STORM)
        rest(explorer)

    stormed = timed(storm)
    assert explorer.frame("temporal_breakdown")["window_ns"].iloc[0] == last - first
    kinds = ", ".join(part.kind for part in parts(explorer) if hasattr(part, "kind"))
    return "\n".join(
        [
            f"{explorer.trace.summary['events']} events; panels: {kinds}",
            "",
            "| what | ms | CPU, ms |",
            "|---|--:|--:|",
            row("opened from the cache: the parts are there", [first_parts]),
            row("... and all have answered, the first time on this trace", [all_answers]),
            row("another selection, median", changes, statistics.median),
            row(f"another selection, slowest of {len(changes)}", changes),
            row(f"a stream never chosen before, slowest of {len(filtered)}", filtered),
            row(f"{STORM} selections at once ({asked.call_count} computed for one panel)", [stormed]),
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Time how the explorer follows its selection.")
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--panels", nargs="*", default=None)
    arguments = parser.parse_args()
    megabytes = len(gzip.decompress(SOURCE.read_bytes())) / 1e6
    events = Trace.open(SOURCE, cache=False).summary["events"]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rank-0.json"
        tile(SOURCE, path, megabytes * arguments.events / events)
        print(measure(path, arguments.panels))


if __name__ == "__main__":
    main()
