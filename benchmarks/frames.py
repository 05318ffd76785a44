"""What does a frame of the timeline cost while it is panned and zoomed?

A trace is tiled (see tile_trace.py) and written as a report. In headless Chromium the timeline is panned,
then zoomed, by a little in each frame. Counted are the CPU time (user + system) of the browser's processes
per frame, and the time between frames. The least of some windows counts: what else runs on the machine only
adds. Needs Playwright, psutil and Chromium, as the browser tests do.

    python benchmarks/frames.py [trace.json] [--megabytes N] [--seconds N] [--windows N]

Without a trace it repeats a bundled example.
"""

from __future__ import annotations

import argparse
import itertools
import shutil
import tempfile
from pathlib import Path

import psutil
from playwright.sync_api import Page, sync_playwright
from tile_trace import tile

from hta_widgets import Trace, TraceExplorer, examples

MOVE = """([zoom, seconds]) => new Promise((resolve) => {
  const el = document.querySelector('[data-ready=true] .hta-timeline');
  const box = el.getBoundingClientRect();
  el.focus();
  const times = [performance.now()];
  const step = (now) => {
    times.push(now);
    if (now - times[0] > 1000 * seconds) return resolve(times);
    const there = Math.floor(times.length / 40) % 2 ? 1 : -1;
    el.dispatchEvent(new WheelEvent('wheel', {
      bubbles: true, cancelable: true, clientX: box.x + box.width / 2, clientY: box.y + box.height / 2,
      ctrlKey: zoom, deltaX: zoom ? 0 : 12 * there, deltaY: zoom ? 8 * there : 0,
    }));
    requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
})"""


def cpu_seconds() -> float:
    """Of the browser: all processes under this one."""
    spent = 0.0
    for process in psutil.Process().children(recursive=True):
        try:
            if "type=renderer" in " ".join(process.cmdline()) or "type=gpu" in " ".join(process.cmdline()):
                times = process.cpu_times()
                spent += times.user + times.system
        except psutil.NoSuchProcess:
            continue
    return spent


def frame_cost(page: Page, zoom: bool, seconds: float) -> tuple[float, float]:
    """CPU per frame, and the 95th percentile of the time between two, in ms."""
    before = cpu_seconds()
    times = page.evaluate(MOVE, [zoom, seconds])
    frames = len(times) - 1
    between = sorted(b - a for a, b in itertools.pairwise(times))
    return 1000 * (cpu_seconds() - before) / frames, between[int(0.95 * (frames - 1))]


def main() -> None:
    parser = argparse.ArgumentParser(description="What a frame of the timeline costs.")
    parser.add_argument("trace", type=Path, nargs="?", help="default: a bundled example")
    parser.add_argument("--megabytes", type=float, default=100.0)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--windows", type=int, default=4)
    arguments = parser.parse_args()
    source = arguments.trace or next(iter(sorted(examples.path("gpt2_baseline").glob("*.json.gz"))))
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        tile(source, Path(name) / "tiled.json", arguments.megabytes)
        explorer = TraceExplorer(Trace.open(Path(name) / "tiled.json", cache=False))
        report = explorer.to_html(Path(name) / "report.html")
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(report.as_uri())
        page.wait_for_selector("[data-ready=true] .hta-timeline", timeout=120_000)
        label = page.locator(".hta-timeline").first.get_attribute("aria-label") or ""
        print(label.split(".")[0])
        page.locator(".hta-timeline").first.scroll_into_view_if_needed()
        page.wait_for_timeout(1000)
        page.evaluate(MOVE, [True, 1.0])  # some way in, and compiled
        print("| move | CPU ms per frame, least | 95 % between frames, least, ms |")
        print("|---|--:|--:|")
        for move, zoom in (("pan", False), ("zoom", True)):
            found = [frame_cost(page, zoom, arguments.seconds) for _ in range(arguments.windows)]
            print(f"| {move} | {min(cost for cost, _ in found):.1f} | {min(p95 for _, p95 in found):.1f} |")
        browser.close()


if __name__ == "__main__":
    main()
