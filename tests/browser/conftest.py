"""One JupyterLab and one browser page per theme for the whole run: starting them costs seconds."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Playwright, sync_playwright

from tests.browser.lab import Lab, chromium_page, jupyter_lab
from tests.support import ROOT

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Browser tests run last: Playwright's event loop stays in the main thread and would disturb others."""
    items.sort(key=_drives_browser)
    for item in filter(_drives_browser, items):
        item.add_marker(pytest.mark.browser)


def _drives_browser(item: pytest.Item) -> bool:
    return item.path.is_relative_to(HERE)


@pytest.fixture(scope="session")
def playwright() -> Iterator[Playwright]:
    with sync_playwright() as playwright:
        yield playwright


def _lab(playwright: Playwright, root: Path, *, dark: bool) -> Iterator[Lab]:
    for notebook in (ROOT / "notebooks").glob("*.ipynb"):
        shutil.copy(notebook, root)
    with jupyter_lab(root, dark=dark) as server, chromium_page(playwright) as page:
        yield Lab(server, page)


@pytest.fixture(scope="session")
def lab(playwright: Playwright, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """JupyterLab in its light theme."""
    yield from _lab(playwright, tmp_path_factory.mktemp("light"), dark=False)


@pytest.fixture(scope="session")
def dark_lab(playwright: Playwright, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """JupyterLab in its dark theme."""
    yield from _lab(playwright, tmp_path_factory.mktemp("dark"), dark=True)
