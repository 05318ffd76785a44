"""How quickly does What if answer in a browser while a slider moves, and from which size on is that too slow?

A trace is tiled (see tile_trace.py) to about as many nodes as are asked for, and written as a report, whose
page replays it without a kernel. In headless Chromium a slider is moved, each time to another value; what
counts is the time from the move until the new answer has been drawn. The waterfall follows later, in pieces:
its time is from the move until it stands. Needs Playwright and Chromium, as the browser tests do.

    python benchmarks/what_if_in_browser.py [trace.json] [--nodes N ...] [--moves N] [--busy N]

Without a trace it repeats a bundled example. `--busy`: as many other processes compute all the while.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

from tile_trace import tile

from hta_widgets import Trace, WhatIf, edits, examples
from hta_widgets.analysis.replay.graph import graph_of
from hta_widgets.widgets import what_if_answer

SLIDERS = ("host", "launches", "kernels", "copies", "communication")
SECONDS = 120
SAMPLE_MEGABYTES = 60.0
# ms until another answer is in the page and the frame with it has begun, and until the waterfall stands
MOVE = """([name, value]) => new Promise((resolve) => {
  const widget = document.querySelector('.hta-what-if');
  const slider = widget.querySelector(`[data-control=${name}] input`);
  let begun = 0, answered = 0;
  const bars = { subtree: true, attributeFilter: ['style'] };
  const seen = (select, done) => new MutationObserver((_, own) => {
    own.disconnect();
    requestAnimationFrame(() => setTimeout(() => done(performance.now() - begun)));
  }).observe(widget.querySelector(select), bars);
  seen('.hta-wi-parts', (ms) => { answered = ms; });
  seen('.hta-wi-savings', (ms) => resolve([answered, ms]));
  begun = performance.now();
  slider.value = value;
  slider.dispatchEvent(new Event('input', { bubbles: true }));
})"""


def nodes_of(path: Path) -> int:
    """Of the graph of a trace's first rank."""
    trace = Trace.open(path, cache=False)
    graph = graph_of(trace.rank(trace.ranks[0]))
    return len(graph.time) if graph is not None else 0


def tiled(source: Path, nodes: int, folder: Path) -> Path:
    """The trace, repeated to about as many nodes."""
    sample, target = folder / "sample.json", folder / "tiled.json"
    tile(source, sample, SAMPLE_MEGABYTES)
    tile(source, target, SAMPLE_MEGABYTES * nodes / nodes_of(sample))
    return target


@contextlib.contextmanager
def busy(processes: int) -> Iterator[None]:
    """As many other processes, which compute all the while."""
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(processes)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def measure(source: Path, nodes: int, moves: int, others: int) -> str:
    """A row of the table."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        trace = Trace.open(tiled(source, nodes, folder), cache=False)
        with mock.patch.object(what_if_answer, "MOST_NODES", 1 << 40):
            widget = WhatIf(trace, edits=[edits.host(0.9), edits.kernels(1.25)])
            path = widget.to_html(folder / "report.html")
        if widget.status != "idle":  # a part of a tile may lack the work of its launches
            return f"| {nodes:,} asked for: {widget.message.splitlines()[0]} |"
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(path.as_uri())
        page.wait_for_selector("[data-live=true] .hta-wi-savings [data-whole]", timeout=1000 * SECONDS)
        there = [name for name in SLIDERS if page.locator(f"[data-control={name}] input:enabled").count()]
        spent = []
        with busy(others):
            for move in range(moves):
                value = str(60 + 5 * (move % 27) + 5 * (move % 27 >= 8))
                spent.append(page.evaluate(MOVE, [there[move % len(there)], value]))
                page.wait_for_timeout(300)
        browser.close()
        megabytes = path.stat().st_size / 1e6
    answered, stood = (sorted(column) for column in zip(*spent, strict=True))
    p95 = answered[int(0.95 * (len(answered) - 1))]
    size = f"{widget.about['nodes']:,} | {widget.about['edges']:,} | {megabytes:.1f}"
    middle, later = statistics.median(answered), statistics.median(stood)
    return f"| {size} | {answered[0]:.0f} | {middle:.0f} | {p95:.0f} | {later:.0f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description="How quickly What if answers in a browser.")
    parser.add_argument("trace", type=Path, nargs="?", help="default: a bundled example")
    parser.add_argument("--nodes", type=int, nargs="+", default=[120_000, 500_000])
    parser.add_argument("--moves", type=int, default=40)
    parser.add_argument("--busy", type=int, default=0, help="other processes that compute meanwhile")
    arguments = parser.parse_args()
    source = arguments.trace or next(iter(sorted(examples.path("gpt2_baseline").glob("*.json.gz"))))
    print("| nodes | edges | report, MB | answer, least ms | median | 95 % | waterfall, median ms |")
    print("|--:|--:|--:|--:|--:|--:|--:|")
    for nodes in arguments.nodes:
        print(measure(source, nodes, arguments.moves, arguments.busy), flush=True)


if __name__ == "__main__":
    main()
