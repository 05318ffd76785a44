"""One browser, and one JupyterLab in a page of it, for the whole run: starting them costs seconds."""

import json
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, Playwright, expect, sync_playwright

from tests.browser import forked_kernels, four_ranks
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


# Files that show the same notebook, or the same job, one after the other.
TOGETHER = (
    ("diff_viewer", "locked_timelines"),
    ("first_screen", "keyboard", "shell", "steps", "story", "tasks"),
    ("inspector", "memory_panel"),
    ("job_view", "rank_picker"),
)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Of `--dist loadfile`: such files go to one worker, which then opens that once."""
    from xdist.scheduler import LoadFileScheduling

    class Together(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = super()._split_scope(nodeid)
            name = Path(file).stem.removeprefix("test_")
            return next((files[0] for files in TOGETHER if name in files), file)

    return Together(config, log) if config.getoption("dist") == "loadfile" else None


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
    for path in (ROOT / "notebooks").glob("*.ipynb"):
        notebook = json.loads(path.read_text("utf-8"))
        notebook["metadata"]["kernelspec"] = forked_kernels.METADATA
        (root / path.name).write_text(json.dumps(notebook), "utf-8")
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


@pytest.fixture(scope="module")
def day(lab: Lab) -> Iterator[Lab]:
    """JupyterLab in a wider page, with the explorer of four ranks."""
    lab.page.set_viewport_size({"width": 1440, "height": 900})
    four_ranks.show(lab)
    yield lab
    lab.expect_no_errors()
    lab.page.set_viewport_size({"width": 1280, "height": 900})


@pytest.fixture
def root(day: Lab) -> Locator:
    """That explorer at rest."""
    return four_ranks.at_rest(day)


@pytest.fixture(scope="session")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Path]:
    """A job of so many ranks, which is read once."""
    folder = tmp_path_factory.mktemp("jobs")
    return cache(lambda ranks: write_job(folder / f"job{ranks}", ranks, SLOW[ranks]))
