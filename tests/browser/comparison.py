"""Opens DiffViewer in JupyterLab for tests, and asks what it shows."""

import json
import os
from ast import literal_eval

from playwright.sync_api import Locator, Page, expect

from tests.browser.lab import TIMELINE, Lab

EXAMPLES = "examples.path('gpt2_ddp'), examples.path('gpt2_fsdp_full_shard')"
OTHER = "gpt2_fsdp_full_shard"

# What the two timelines show, as Python knows it; the browser tells it when the hand rests.
VIEWS = "[list(part.view or ()) for area, part, _ in viewer.parts if area == 'timeline']"

REST = (
    "([selection.clear() for selection in viewer.selections.values()], "
    "setattr(viewer, 'align', 'step'), setattr(viewer, 'locked', True), setattr(viewer, 'line', None))"
)


def open_viewer(lab: Lab, runs: str = EXAMPLES, timelines: int = 2) -> Locator:
    code = f"from hta_widgets import DiffViewer, examples\nviewer = DiffViewer({runs})"
    lab.show(code, "viewer", name="diff.ipynb")
    viewer = lab.page.locator(".hta-diff")
    expect(viewer.locator(TIMELINE)).to_have_count(timelines, timeout=60_000)
    expect(viewer.locator(".hta-panel[data-kind=diff] tbody tr").first).to_be_visible(timeout=30_000)
    return viewer


def tall_shot(lab: Lab, name: str) -> None:
    """A picture of the whole viewer: the notebook's own scrolling would cut it."""
    if "HTA_WIDGETS_SHOTS" not in os.environ:
        return
    size = lab.page.viewport_size
    assert size
    lab.page.set_viewport_size({"width": size["width"], "height": 2600})
    lab.page.wait_for_timeout(500)
    lab.shot(name, lab.page.locator(".hta-diff"))
    lab.page.set_viewport_size(size)


def panel(viewer: Locator, kind: str) -> Locator:
    return viewer.locator(f".hta-panel[data-kind={kind}]")


def views(lab: Lab) -> list[list[int]]:
    """Once the timelines have told theirs."""
    for _ in range(50):
        found: list[list[int]] = json.loads(lab.kernel(VIEWS))
        if all(found):
            return found
        lab.page.wait_for_timeout(100)
    raise AssertionError("a timeline tells no view")


def resting(lab: Lab) -> list[list[int]]:
    """The views once they rest, after the kernel has said what corresponds."""
    return moved(lab, lab.page, [])


def moved(lab: Lab, page: Page, before: list[list[int]]) -> list[list[int]]:
    """The same once each has changed, too."""
    last: list[list[int]] = before
    alike = 0
    for _ in range(150):
        page.wait_for_timeout(100)
        now, asked = literal_eval(lab.kernel(f"({VIEWS}, bool(viewer._rpc_tickets))"))
        alike = alike + 1 if now == last and all(now) and not asked else 0
        if alike >= 4 and all(new != old for new, old in zip(now, before, strict=False)):
            return now
        last = now
    raise AssertionError(f"the timelines stay at {last}")


def all_in_sight(lab: Lab, runs: tuple[str, ...]) -> list[list[int]]:
    """The views, which show all of each run."""
    shown = views(lab)
    for (start, end), run in zip(shown, runs, strict=True):
        first, last = json.loads(lab.kernel(f"list(map(int, viewer.traces[{run!r}].extent_ns))"))
        spare = (last - first) / 50  # a scrollbar that comes late
        assert start <= first + spare, run
        assert last - spare <= end, run
    return shown
