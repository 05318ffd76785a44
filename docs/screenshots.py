"""Takes the README's picture from the product itself: `make screenshot`."""

import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.browser.lab import TIMELINE, Lab, chromium_page, jupyter_lab

PICTURE = Path(__file__).parent / "images" / "explorer.png"

CODE = """\
from hta_widgets import TraceExplorer, examples
explorer = TraceExplorer(examples.path("ddp_4ranks"))
explorer"""


def main() -> None:
    PICTURE.parent.mkdir(exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        jupyter_lab(Path(folder)) as server,
        sync_playwright() as playwright,
        chromium_page(playwright) as page,
    ):
        page.set_viewport_size({"width": 1280, "height": 1800})  # the whole explorer, without scrolling
        lab = Lab(server, page)
        lab.open_code(CODE)
        page.wait_for_selector(TIMELINE)
        page.wait_for_function(
            "() => !document.querySelector('.hta [aria-busy=true], .hta[data-status=busy]')"
        )
        page.locator(".jp-OutputArea-output .hta").first.screenshot(path=PICTURE)


if __name__ == "__main__":
    main()
