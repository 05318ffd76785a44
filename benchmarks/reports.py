"""How large an explorer's report is, how long writing it takes, and how long opening it in a browser.

What is repeated is packed better than what is not. Writing includes the answers that the report contains, of
a recording that is open; opening ends when the timeline is drawn, in headless Chromium.
"""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import mkdtemp

from playwright.sync_api import expect, sync_playwright

from benchmarks.figure import Figure
from benchmarks.setup import Setup
from hta_widgets import Trace, TraceExplorer, examples
from tests.browser.lab import TIMELINE, chromium_page

SIZES = (45, 450)  # MB
SMALL = (5,)
LONGEST_MS = 120_000


def measure(setup: Setup) -> list[Figure]:
    """Of one rank of a training job, with the panels that are open at the start."""
    source = next(iter(sorted(examples.path("gpt2_baseline").glob("*.json.gz"))))
    figures = []
    report = Path(mkdtemp(dir=setup.folder)) / "report.html"
    for megabytes in SMALL if setup.small else SIZES:
        trace = Trace.open(setup.recording(megabytes, source), cache=False)
        explorer = TraceExplorer(trace)
        begun = time.monotonic()
        explorer.to_html(report, timeout=600)
        written = time.monotonic() - begun
        explorer.close()
        opened = []
        for _ in range(setup.rounds):
            with sync_playwright() as playwright, chromium_page(playwright) as page:
                begun = time.monotonic()
                page.goto(report.as_uri())
                expect(page.locator(TIMELINE)).to_be_visible(timeout=LONGEST_MS)
                opened.append(time.monotonic() - begun)
        slices = trace.summary["events"]
        figures += [
            Figure(f"{slices:,} slices: size of the file, MB", [report.stat().st_size / 1e6]),
            Figure("... written in, s", [written]),
            Figure("... opened and drawn in, s", opened),
        ]
    return figures
