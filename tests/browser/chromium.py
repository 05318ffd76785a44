"""Which Chromium the browser tests use: the machine's, else Playwright's own.

``python -m tests.browser.chromium`` makes sure that there is one, or fails and says how to get one: the
browser tests are never skipped.
"""

import shutil
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import Playwright, sync_playwright

NAMES = ("chromium", "google-chrome", "google-chrome-stable", "chromium-browser")

HELP = f"""The browser tests need Chromium or Chrome, and none of {", ".join(NAMES)} is on PATH.
Debian: sudo apt-get install chromium      macOS: brew install --cask google-chrome
Others: https://playwright.dev/python/docs/browsers, then run `playwright install --with-deps chromium`."""


def executable(playwright: Playwright) -> str | None:
    """Path of the browser to drive, or None where there is none."""
    if machine := next(filter(None, map(shutil.which, NAMES)), None):
        return machine
    own = playwright.chromium.executable_path
    return own if Path(own).exists() else None


def main() -> int:
    with sync_playwright() as playwright:
        found = executable(playwright)
        if found is None:
            subprocess.run([sys.executable, "-m", "playwright", "install", "chromium"], check=False)
            found = executable(playwright)
    if found is None:
        sys.stderr.write(f"{HELP}\n")
        return 1
    sys.stdout.write(f"Browser tests use {found}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
