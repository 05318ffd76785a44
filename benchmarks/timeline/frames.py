"""What a frame costs while one pans and zooms: the browser's processor time, and the time between two frames.

The input is the same for every viewer: a wheel event in each frame at the middle of what is shown, sideways
to pan, with Ctrl to zoom; every 40 frames it turns around.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import psutil
from playwright.sync_api import Page

NEARER = """([x, y, frames]) => new Promise((resolve) => {
  const step = (left) => {
    if (left === 0) return resolve();
    document.elementFromPoint(x, y).dispatchEvent(new WheelEvent('wheel', {
      bubbles: true, cancelable: true, clientX: x, clientY: y, ctrlKey: true, deltaY: -20,
    }));
    requestAnimationFrame(() => step(left - 1));
  };
  step(frames);
})"""

MOVE = """([x, y, zoom, seconds]) => new Promise((resolve) => {
  const times = [performance.now()];
  const step = (now) => {
    times.push(now);
    if (now - times[0] > 1000 * seconds) return resolve(times);
    const there = Math.floor(times.length / 40) % 2 ? 1 : -1;
    document.elementFromPoint(x, y).dispatchEvent(new WheelEvent('wheel', {
      bubbles: true, cancelable: true, clientX: x, clientY: y,
      ctrlKey: zoom, deltaX: zoom ? 0 : 12 * there, deltaY: zoom ? 8 * there : 0,
    }));
    requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
})"""


@dataclass(frozen=True)
class Frames:
    """`cpu_ms` of the browser's processes per frame; 95 % of the times between two are at most `late_ms`."""

    cpu_ms: float
    late_ms: float


def go_nearer(page: Page, at: tuple[float, float], wheel_events: int = 40) -> None:
    """Zoom in: where all of a trace is shown, there is nowhere to pan to."""
    page.mouse.move(*at)
    page.evaluate(NEARER, [*at, wheel_events])
    page.wait_for_timeout(1500)


def frames(page: Page, at: tuple[float, float], *, zoom: bool, seconds: float) -> Frames:
    """Pan or zoom for some seconds with the pointer at a point of the page."""
    page.mouse.move(*at)
    page.evaluate(MOVE, [*at, zoom, 1.0])  # compiled, and what is asked for has come
    before = cpu_seconds()
    times = page.evaluate(MOVE, [*at, zoom, seconds])
    between = sorted(b - a for a, b in itertools.pairwise(times))
    return Frames(1000 * (cpu_seconds() - before) / len(between), between[int(0.95 * (len(between) - 1))])


def renderers() -> list[psutil.Process]:
    """The processes under this one that run and draw pages."""
    found = []
    for process in psutil.Process().children(recursive=True):
        try:
            if any(f"type={kind}" in " ".join(process.cmdline()) for kind in ("renderer", "gpu")):
                found.append(process)
        except psutil.Error:  # it has ended
            continue
    return found


def cpu_seconds() -> float:
    """User and system time of the browser so far."""
    return sum(sum(process.cpu_times()[:2]) for process in renderers())


def megabytes() -> float:
    """What the browser holds in memory."""
    return sum(process.memory_info().rss for process in renderers()) / 1e6
