"""How large is an explorer's report, how long does writing it take, and how long opening it in a browser?

A trace is tiled (see tile_trace.py) to about as many slices as are asked for; what is repeated is packed
better than what is not. Writing includes the answers that the report contains, of a recording that is open;
opening ends when the timeline is drawn, in headless Chromium. Needs Playwright and Chromium, as the browser
tests do.

    python benchmarks/reports.py [trace.json] [--slices N ...] [--rounds N]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import expect, sync_playwright
from tile_trace import tile

from hta_widgets import Trace, TraceExplorer, examples

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.browser.lab import TIMELINE, chromium_page

SAMPLE_MEGABYTES = 20.0
LONGEST_MS = 120_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trace", type=Path, nargs="?", help="default: a bundled example")
    parser.add_argument("--slices", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    source = arguments.trace or next(iter(sorted(examples.path("gpt2_baseline").glob("*.json.gz"))))
    print("| slices | report, MB | written in, s | opened in, s |\n|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        path, report = Path(name) / "tiled.json", Path(name) / "report.html"
        tile(source, path, SAMPLE_MEGABYTES)
        sample = Trace.open(path, cache=False).summary["events"]
        for slices in arguments.slices:
            tile(source, path, SAMPLE_MEGABYTES * slices / sample)
            trace = Trace.open(path, cache=False)
            explorer = TraceExplorer(trace)
            begun = time.monotonic()
            explorer.to_html(report, timeout=600)
            written = time.monotonic() - begun
            explorer.close()
            opened = []
            for _ in range(arguments.rounds):
                with chromium_page(playwright) as page:
                    begun = time.monotonic()
                    page.goto(report.as_uri())
                    expect(page.locator(TIMELINE)).to_be_visible(timeout=LONGEST_MS)
                    opened.append(time.monotonic() - begun)
            size = report.stat().st_size / 1e6
            told = f"{trace.summary['events']:,} | {size:.1f} | {written:.1f}"
            print(f"| {told} | {min(opened):.1f}-{max(opened):.1f} |")


if __name__ == "__main__":
    main()
