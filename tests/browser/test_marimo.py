"""The explorer in a marimo app: it shows, its panels open, and a click runs the cells that depend on it."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.lab import START_SECONDS, TIMELINE, free_port, open_panel

pytestmark = pytest.mark.browser

APP = Path(__file__).with_name("marimo_app.py")


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a running marimo server, which makes a new session for each page."""
    home = tmp_path_factory.mktemp("marimo")
    url = f"http://127.0.0.1:{(port := free_port())}"
    with (home / "log").open("w") as log:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "marimo", "--quiet", "run", str(APP), "--headless", "--no-token"),
                *("--host=127.0.0.1", f"--port={port}"),
            ],
            stdout=log,
            stderr=subprocess.STDOUT,
            env=os.environ | {f"XDG_{kind}_HOME": str(home) for kind in ("CONFIG", "STATE", "DATA")},
            start_new_session=True,
        )
    try:
        deadline = time.monotonic() + START_SECONDS
        while not _up(url):
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"marimo did not start:\n{(home / 'log').read_text()[-3000:]}")
            time.sleep(0.2)
        yield url
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        process.wait(20)


def _up(url: str) -> bool:
    try:
        urllib.request.urlopen(f"{url}/health", timeout=2).close()
    except OSError:
        return False
    return True


def test_marimo(app: str, page: Page) -> None:
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    for theme in ("light", "dark"):  # the second is another session of the same process
        page.goto(f"{app}?theme={theme}")
        expect(page.locator(TIMELINE)).to_be_visible(timeout=60_000)
        page.locator(".hta-rank-grid button").nth(1).click()
        expect(page.get_by_text(re.compile(r"ranks \(1,\): \d+ events of \[1\]"))).to_be_visible()
        # a panel is made by a click, while no cell runs
        open_panel(page, "kernel types")
        expect(page.locator(".hta-panel")).to_have_count(2)
        expect(page.locator(".hta-panel").last.locator("svg")).not_to_have_count(0, timeout=30_000)
    # marimo's theme reaches into its shadow trees, whatever theme the system prefers
    expect(page.locator(".hta[data-theme=light]")).to_have_count(0)
    explorer = page.locator(".hta-explorer")
    expect(explorer).to_have_css("background-color", "rgb(17, 20, 24)")
    expect(page.locator(".hta-timeline")).to_have_css("background-color", "rgb(17, 20, 24)")
    assert not errors, "\n".join(errors)
