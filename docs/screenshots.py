"""Takes the pictures of the README and of the site from the product itself: `make screenshot`.

One JupyterLab and one explorer on a bundled example; each panel is opened alone, in both themes. Then a
viewer of two runs, and the panels of one of four.
"""

from __future__ import annotations

import base64
import tempfile
from pathlib import Path

from playwright.sync_api import Locator, Page, sync_playwright

from docs import shown
from docs.analysis_pages import EXAMPLE, example_of, example_path
from docs.comparison_pages import EXAMPLES, has_picture
from hta_widgets.analysis import COMPARISONS
from hta_widgets.widgets.panels import available_panels
from tests.browser.lab import TIMELINE, Lab, chromium_page, jupyter_lab

IMAGES = Path(__file__).parent / "images"
THEMES = ("light", "dark")

CODE = """\
from hta_widgets import TraceExplorer, edits
explorer = TraceExplorer({path!r})
explorer.edits = [edits.host(0.5), edits.kernels(2.0), edits.communication(0.5)]
explorer"""

COMPARISON = """\
from hta_widgets import DiffViewer, examples
viewer = DiffViewer({{name: examples.path(example) for name, example in {runs!r}.items()}})
viewer"""
PAIR = {"DDP": "gpt2_ddp", "FSDP": "gpt2_fsdp_full_shard"}

EXPLORER = ".jp-OutputArea-output .hta"
HEIGHT, HIGH = 2600, 3200  # the whole explorer, and the whole viewer, without scrolling
WIDE, NARROW = 1240, 800  # two panels side by side; one
TALLEST = 520  # of a longer panel, the top
SHARPNESS = 1.25  # pixels of a picture per CSS pixel
QUALITY = 40

# The panels are these, and each has its answer: in words, in rows, or why there is none.
ANSWERED = """(kinds) => {
  const panels = [...document.querySelectorAll('.hta-panel')];
  return panels.map((panel) => panel.dataset.kind).join() === kinds.join()
    && panels.every((panel) => panel.querySelector('section > p, [role=row], .hta-notice, .hta-wi-rows'))
    && !document.querySelector('.hta [aria-busy=true], .hta[data-status=busy]');
}"""

# Below JupyterLab's bars and, of a part of an explorer, below the line that stays in sight.
IN_SIGHT = """(element) => element.scrollIntoView({
  block: element.offsetHeight > window.innerHeight / 2 ? 'start' : 'center',
})"""

AT_REST = "() => !document.querySelector('.hta [aria-busy=true], .hta[data-status=busy]')"


def main() -> None:
    for folder in ("panels", "comparisons"):
        (IMAGES / folder).mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        jupyter_lab(Path(folder)) as server,
        sync_playwright() as playwright,
        chromium_page(playwright) as page,
    ):
        camera = Camera(page)
        lab = Lab(server, page)
        kinds = [entry["kind"] for entry in available_panels()]
        for example in dict.fromkeys([EXAMPLE, *map(example_of, kinds)]):
            lab.open_code(CODE.format(path=str(example_path(example))))
            page.wait_for_selector(TIMELINE)
            if example == EXAMPLE:
                _take_first_screen(lab, camera)
            for theme in THEMES:
                _light(lab, theme)
                if example == EXAMPLE:
                    camera.resize(WIDE)
                    _take_what_if(lab, camera, theme)
                camera.resize(NARROW)
                for kind in kinds:
                    if example_of(kind) == example:
                        _open(lab, [kind])
                        camera.take(page.locator(".hta-panel").first, _panel(kind, theme), TALLEST)
            _light(lab, "light")
        _take_comparisons(lab, camera)
    shown.write()


def _take_first_screen(lab: Lab, camera: Camera) -> None:
    """In both themes before anything else is done: the bar keeps the panels that were open."""
    camera.resize(WIDE)
    for theme in THEMES:
        _light(lab, theme)
        _open(lab, ["temporal_breakdown", "comm_comp_overlap"])
        camera.take(lab.page.locator(EXPLORER).first, IMAGES / f"explorer-{theme}.webp")
        camera.take(lab.page.locator("[data-area=timeline]").first, _panel("timeline", theme))


def _take_what_if(lab: Lab, camera: Camera, theme: str) -> None:
    """The timeline at the replayed times, and the map of speeds below the sliders."""
    view = "next(part for area, part in explorer.parts if area == 'timeline')"
    lab.kernel(f"setattr({view}, 'times', 'what_if')")
    lab.page.wait_for_selector("[data-ready=true][data-times=what_if]")
    _open(lab, ["what_if"])
    camera.take(lab.page.locator("[data-area=timeline]").first, _panel("timeline_what_if", theme))
    camera.resize(NARROW)
    lab.page.wait_for_selector(".hta-wi-where svg")
    camera.take(lab.page.locator(".hta-wi-where").first, _panel("speed_map", theme))
    camera.resize(WIDE)
    lab.kernel(f"setattr({view}, 'times', 'recorded')")
    lab.page.wait_for_selector("[data-ready=true][data-times=recorded]")


def _panel(name: str, theme: str) -> Path:
    return IMAGES / "panels" / f"{name}-{theme}.webp"


def _open(lab: Lab, kinds: list[str]) -> None:
    """Have the explorer show these panels, and wait until they have come to rest."""
    lab.kernel(f"setattr(explorer, 'panels', {kinds!r})")
    lab.page.mouse.move(0, 0)
    lab.page.wait_for_function(ANSWERED, arg=kinds)
    lab.page.wait_for_timeout(300)  # fonts, transitions


class Camera:
    """Writes pictures of a page as WebP, which Playwright itself does not."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._session = page.context.new_cdp_session(page)
        self.resize(WIDE)

    def resize(self, width: int, height: int = HEIGHT) -> None:
        """Give the page this width."""
        self._page.set_viewport_size({"width": width, "height": height})
        metrics = {"width": width, "height": height, "deviceScaleFactor": SHARPNESS, "mobile": False}
        self._session.send("Emulation.setDeviceMetricsOverride", metrics)
        self._page.wait_for_timeout(500)  # the timeline draws anew

    def take(self, what: Locator, path: Path, tallest: float = HIGH) -> None:
        """Write a picture of one element, of at most this height in CSS pixels."""
        what.evaluate(IN_SIGHT)
        box = what.bounding_box()
        assert box is not None, f"{path.stem} is not visible"
        clip = {**box, "height": min(box["height"], tallest), "scale": 1}
        answer = self._session.send(
            "Page.captureScreenshot", {"format": "webp", "quality": QUALITY, "clip": clip}
        )
        path.write_bytes(base64.b64decode(answer["data"]))


def _take_comparisons(lab: Lab, camera: Camera) -> None:
    """The viewer of two runs, down to its timelines, and the panels of a viewer of four."""
    viewer, panel = lab.page.locator(".hta-diff").first, ".hta-diff .hta-panel[data-kind={}]"
    _open_viewer(lab, PAIR)
    camera.resize(WIDE, HIGH)
    for theme in THEMES:
        _light(lab, theme)
        camera.take(viewer, IMAGES / f"comparison-{theme}.webp")
    _open_viewer(lab, EXAMPLES)
    camera.resize(NARROW)
    for theme in THEMES:
        _light(lab, theme)
        for kind in filter(has_picture, COMPARISONS):
            item = lab.page.locator(panel.format(kind)).first
            camera.take(item, IMAGES / "comparisons" / f"{kind}-{theme}.webp", TALLEST)
    _light(lab, "light")


def _open_viewer(lab: Lab, runs: dict[str, str]) -> None:
    lab.open_code(COMPARISON.format(runs=runs))
    lab.page.wait_for_selector(".hta-diff .hta-panel[data-kind=diff] tbody tr")


def _light(lab: Lab, theme: str) -> None:
    """Change the theme, over which JupyterLab shows a splash screen for a while."""
    lab.use_theme(dark=theme == "dark")
    lab.page.wait_for_selector("#jupyterlab-splash", state="detached")
    lab.page.wait_for_function(AT_REST)
    lab.page.wait_for_timeout(300)  # transitions


if __name__ == "__main__":
    main()
