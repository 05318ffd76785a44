"""The explorer's first screen: what comes first, the launcher, the wheel, the whole window."""

import re
from ast import literal_eval
from functools import partial

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.lab import TIMELINE, Lab, eventually, open_panel
from tests.browser.test_story import around

pytestmark = pytest.mark.browser

SCROLLED = "() => document.querySelector('.jp-WindowedPanel-outer').scrollTop"
TOPS = """(root) => ['.hta-header', '.hta-story', '.hta-controls', '.hta-timeline', '.hta-panels']
  .map((name) => root.querySelector(name).getBoundingClientRect().top)"""


def in_order(root: Locator, lowest: int) -> None:
    """Part below part, and the timeline begins above this line."""
    tops = root.evaluate(TOPS)
    assert tops == sorted(tops)
    assert tops[3] < lowest


def test_the_story_comes_first(day: Lab, root: Locator) -> None:
    for width, height, lowest in ((1024, 700, 800), (1440, 900, 700)):
        day.page.set_viewport_size({"width": width, "height": height})
        expect(root.locator(".hta-checks")).to_be_in_viewport(ratio=1)
        eventually(partial(in_order, root, lowest))
    day.shot("first-screen")


def test_what_a_finding_shows_is_in_sight(day: Lab, root: Locator) -> None:
    lanes = root.locator(TIMELINE)
    for width, height in ((1024, 700), (1440, 900)):
        day.page.set_viewport_size({"width": width, "height": height})
        day.page.evaluate("() => document.querySelector('.jp-WindowedPanel-outer').scrollTo(0, 0)")
        root.locator("button.hta-seg").nth(1).click()
        expect(lanes).to_have_attribute("data-place", re.compile(r"\d+ \d+"))
        expect(lanes).to_be_in_viewport(ratio=0.85)
        start, end = map(int, (lanes.get_attribute("data-place") or "").split())
        eventually(partial(around, lanes, start, end, filled=True))
        day.page.keyboard.press("Escape")
        day.expect_kernel("told.shown", -1)


def test_what_python_changes_needs_no_words(day: Lab, root: Locator) -> None:
    told = root.locator(".hta-toast")
    day.kernel("setattr(explorer, 'panels', ['temporal_breakdown', 'comm_comp_overlap'])")
    root.locator(".hta-panel").last.scroll_into_view_if_needed()
    root.locator(".hta-panel").last.hover()
    day.page.mouse.wheel(0, 2000)
    day.kernel("setattr(explorer.selection, 'ranks', (1,))")
    expect(root.locator(".hta-clause")).to_have_text(["rank 1×"])
    expect(told).to_be_empty()


def test_what_an_action_has_done_is_said(day: Lab, root: Locator) -> None:
    told = root.locator(".hta-toast")
    day.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    root.locator(".hta-launch").click()
    root.get_by_role("combobox", name="Panel, event name").fill("markdown")
    root.get_by_role("option").filter(has_text="Copy Markdown").first.click()
    expect(told).to_contain_text("Copy Markdown: copied.")
    told.get_by_role("button", name="Dismiss").click()
    expect(told).to_be_empty()


# What people type, and what they mean.
FOUND_BY = {
    "html": "Save HTML report",
    "csv": "Events",
    "share": "Copy Markdown",
    "report": "Save HTML report",
    "compare": "Steps",
    "gpu util": "GPU utilization",
    "longest kernel": "Kernels",
    "slow": "Steps",
}


def test_the_launcher_goes_anywhere(day: Lab, root: Locator) -> None:
    open_panel(root, "memory bandwidth")
    day.expect_kernel("explorer.panels", ("memory_bandwidth",))
    expect(root.locator(".hta-panel h3")).to_be_focused()
    for text, label in FOUND_BY.items():
        root.locator(".hta-launch").click()
        root.get_by_role("combobox", name="Panel, event name").fill(text)
        expect(root.get_by_role("option").filter(has_text=label).first).to_be_visible()
        if label.lower().startswith(text):
            expect(root.get_by_role("listbox").get_by_role("option").first).to_contain_text(label)
        day.page.keyboard.press("Escape")
    root.locator(".hta-panel-bar button").first.focus()
    day.page.keyboard.press("Control+k")
    day.page.keyboard.type("rank 3")
    day.page.keyboard.press("Enter")
    day.expect_kernel("explorer.selection.ranks", (3,))
    root.locator(".hta-panel-bar button").first.focus()
    day.page.keyboard.press("/")
    day.page.keyboard.type("dataloader")
    choice = root.get_by_role(
        "option", name="enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    ).last
    expect(choice).to_be_visible()
    choice.click()
    day.expect_kernel(
        "explorer.selection.names", ("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",)
    )
    fold = root.locator(".hta-lacking")
    fold.locator("summary").click()
    expect(fold).to_contain_text("with_stack=True")
    assert "module_stacks" in literal_eval(day.kernel("list(explorer.lacking)"))


def test_the_page_scrolls_over_the_timeline_until_it_has_the_focus(day: Lab, root: Locator) -> None:
    lanes = root.locator(TIMELINE)
    day.kernel("setattr(explorer, 'panels', ['temporal_breakdown', 'comm_comp_overlap'])")
    expect(root.locator(".hta-panel")).to_have_count(2)
    root.locator("button.hta-seg").first.focus()
    lanes.hover(position={"x": 500, "y": 150})
    before = day.page.evaluate(SCROLLED)
    day.page.mouse.wheel(0, 100)
    day.page.wait_for_function(f"(before) => ({SCROLLED})() > before", arg=before)
    day.page.evaluate("() => document.querySelector('.jp-WindowedPanel-outer').scrollTo(0, 0)")
    lanes.focus()
    lanes.hover(position={"x": 500, "y": 150})
    before = day.page.evaluate(SCROLLED)
    day.page.mouse.wheel(0, 100)
    view = "timeline.view"
    day.page.keyboard.down("Control")
    day.page.mouse.wheel(0, -200)
    day.page.keyboard.up("Control")
    day.expect_kernel(f"{view}[1] - {view}[0] < 0.8 * (explorer.trace.extent_ns[1])", True)
    assert day.page.evaluate(SCROLLED) == before


def test_it_fills_the_window_and_escape_ends_that(day: Lab, root: Locator) -> None:
    root.get_by_role("button", name="Fill the window").click()
    expect(root).to_have_attribute("data-filled", "")
    day.page.wait_for_function("(root) => root.getBoundingClientRect().top === 0", arg=root.element_handle())
    day.shot("first-screen-filled")
    root.get_by_role("button", name="Fill the window").click()
    expect(root).not_to_have_attribute("data-filled", "")
