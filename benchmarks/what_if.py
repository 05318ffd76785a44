"""How quickly *What if* answers in a page by itself, in a report of a recording with many nodes.

A slider is moved, each time to another value, until the new answer has been drawn; what each change saves by
itself follows in pieces. Headless Chromium.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import mkdtemp
from unittest import mock

from playwright.sync_api import sync_playwright

from benchmarks.figure import Figure
from benchmarks.setup import Setup
from hta_widgets import WhatIf, edits, examples
from hta_widgets.analysis.replay.graph import graph_of
from hta_widgets.trace.model import Trace
from hta_widgets.widgets import what_if_answer
from tests.browser.lab import chromium_page

SLIDERS = ("host", "launches", "kernels", "copies", "communication")
SECONDS = 120
MOVES = 40
SIZES = (45, 180)  # MB
SMALL = (5,)
QUIET_MS, LONGEST_MS = 500, 10_000
# ms until another answer is in the page and the frame with it has begun, and until nothing changes any more;
# null where the answer is the same
MOVE = """([name, value, quiet, longest]) => new Promise((resolve) => {
  const widget = document.querySelector('.hta-what-if');
  const slider = widget.querySelector(`[data-control=${name}] input`);
  let begun = 0, answered = 0, latest = 0, resting = 0;
  const any = { subtree: true, childList: true, characterData: true, attributes: true };
  const observer = new MutationObserver(() => requestAnimationFrame(() => setTimeout(() => {
    latest = performance.now() - begun;
    answered ||= latest;
    clearTimeout(resting);
    resting = setTimeout(end, quiet);
  })));
  const end = () => { observer.disconnect(); resolve(answered ? [answered, latest] : null); };
  observer.observe(widget.querySelector('.hta-wi-story'), any);
  setTimeout(end, longest);
  begun = performance.now();
  slider.value = value;
  slider.dispatchEvent(new Event('input', { bubbles: true }));
})"""


def measure(setup: Setup) -> list[Figure]:
    """Wall ms of forty moves, those aside that change nothing."""
    source = next(iter(sorted(examples.path("gpt2_baseline").glob("*.json.gz"))))
    return [
        figure
        for megabytes in (SMALL if setup.small else SIZES)
        for figure in _moved(setup.recording(megabytes, source), Path(mkdtemp(dir=setup.folder)))
    ]


def _moved(path: Path, folder: Path) -> list[Figure]:
    trace = Trace.open(path, cache=False)
    graph = graph_of(trace.rank(trace.ranks[0]))
    with mock.patch.object(what_if_answer, "MOST_NODES", 1 << 40):
        widget = WhatIf(trace, edits=[edits.host(0.9), edits.kernels(1.25)])
        report = widget.to_html(folder / "report.html")
    nodes = f"{len(graph.time) if graph is not None else 0:,} nodes"
    if widget.status != "idle":  # a part of a tile may lack the work of its launches
        return [Figure(f"{nodes}: {widget.message.splitlines()[0]}", [])]
    spent = []
    with sync_playwright() as playwright, chromium_page(playwright) as page:
        page.goto(report.as_uri())
        page.wait_for_selector("[data-live=true] .hta-wi-changes", timeout=1000 * SECONDS)
        there = [name for name in SLIDERS if page.locator(f"[data-control={name}] input:enabled").count()]
        for move in range(MOVES):
            value = str(60 + 5 * (move % 27) + 5 * (move % 27 >= 8))
            moved = page.evaluate(MOVE, [there[move % len(there)], value, QUIET_MS, LONGEST_MS])
            spent += [moved] if moved else []
    answered, stood = zip(*spent, strict=True)
    return [
        Figure(f"{nodes}: an answer is drawn, ms", answered),
        Figure("... and what each change saves, ms", stood),
        Figure("... size of the report, MB", [report.stat().st_size / 1e6]),
    ]
