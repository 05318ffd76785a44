"""One browser, and one JupyterLab in a page of it, for the whole run: starting them costs seconds."""

import shutil
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Playwright, expect, sync_playwright

from tests.browser.lab import Lab, chromium_browser, jupyter_lab, page_of
from tests.job.many_ranks import SLOW, write_job
from tests.support import ROOT

HERE = Path(__file__).parent

# What is expected comes after the kernel has answered: on a busy machine later than the usual 5 s.
expect.set_options(timeout=20_000)


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


@pytest.fixture(scope="session")
def browser(playwright: Playwright) -> Iterator[Browser]:
    with chromium_browser(playwright) as browser:
        yield browser


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    """An empty page for the tests of a file, beside JupyterLab's."""
    with page_of(browser) as page:
        yield page


@pytest.fixture(scope="session")
def lab(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """JupyterLab in its light theme."""
    root = tmp_path_factory.mktemp("lab")
    for notebook in (ROOT / "notebooks").glob("*.ipynb"):
        shutil.copy(notebook, root)
    with jupyter_lab(root) as server, page_of(browser) as page:
        yield Lab(server, page)


@pytest.fixture
def dark_lab(lab: Lab) -> Iterator[Lab]:
    """The same in its dark theme; the notebook is to be opened by the test."""
    if not lab.is_open:
        lab.open_code("pass")
    lab.use_theme(dark=True)
    yield lab
    lab.use_theme(dark=False)


@pytest.fixture(scope="session")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Path]:
    """A job of so many ranks, which is read once."""
    folder = tmp_path_factory.mktemp("jobs")
    return cache(lambda ranks: write_job(folder / f"job{ranks}", ranks, SLOW[ranks]))
